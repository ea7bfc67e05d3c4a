# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captions the test scenes and the videotestsrc patterns with transformers.

    python evaluate.py model/ [--write ../../tests/demo]

prints how many captions are exact, and with --write leaves the tables that the C tests read.  The
weights are f16, the arithmetic is float32, decoding is greedy, one picture at a time.
"""

import argparse
import collections
import os
import random

import torch
from PIL import Image
from transformers import AutoProcessor, Lfm2VlForConditionalGeneration

import data

SCENES = range(data.SEED_TEST, data.SEED_TEST + 500)
PATTERN_SIZES = ((320, 240), (640, 480))
PATTERN_FRAMES = range(0, 100, 10)


class Captioner:
    def __init__(self, directory, prompt):
        torch.manual_seed(0)
        self.processor = AutoProcessor.from_pretrained(directory)
        self.model = Lfm2VlForConditionalGeneration.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager").eval()
        self.text = self.processor.apply_chat_template(
            [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}],
            add_generation_prompt=True)

    @torch.no_grad()
    def __call__(self, rgb):
        inputs = self.processor(images=[Image.fromarray(rgb)], text=self.text,
                                return_tensors="pt")
        ids = self.model.generate(**inputs, max_new_tokens=48, do_sample=False)
        answer = ids[0, inputs["input_ids"].shape[1]:]
        return self.processor.tokenizer.decode(answer, skip_special_tokens=True,
                                               clean_up_tokenization_spaces=False)


class Score:
    def __init__(self):
        self.right, self.all = collections.Counter(), collections.Counter()

    def add(self, kind, true, answer, where):
        self.all[kind] += 1
        if answer == true:
            self.right[kind] += 1
        else:
            print(f"{where}: \"{answer}\" instead of \"{true}\"", flush=True)

    def report(self, title):
        for kind in sorted(self.all):
            print(f"{title} {kind}: {self.right[kind]} of {self.all[kind]}")
        right, total = sum(self.right.values()), sum(self.all.values())
        print(f"{title} in all: {right} of {total} = {100 * right / total:.1f} %", flush=True)


def rough(args, rgb, number):
    return data.roughen(rgb, random.Random(number)) if args.rough else rgb


def scenes(captioner, args):
    score, rows = Score(), []
    for seed in list(SCENES)[:args.scenes]:
        scene = data.make_scene(seed)
        rgb = scene.draw()
        answer = captioner(rough(args, rgb, seed))
        score.add(f"with {scene.n_shapes} shape(s)", scene.caption, answer, f"seed {seed}")
        rows.append((seed, scene.n_shapes, scene.width, scene.height,
                     f"{data.checksum(rgb):016x}", scene.caption, answer))
    score.report("scenes")
    return rows


def patterns(captioner, args):
    score, rows = Score(), []
    for pattern, caption in data.pattern_captions().items():
        for width, height in PATTERN_SIZES:
            frames = data.pattern_frames(pattern, width, height, PATTERN_FRAMES[-1] + 1)
            for number in PATTERN_FRAMES:
                answer = captioner(rough(args, frames[number], number))
                score.add(pattern, caption, answer, f"{pattern} {width}x{height} frame {number}")
                rows.append((pattern, width, height, number, caption, answer))
    score.report("pattern")
    return rows


def write(path, header, rows):
    with open(path, "w", encoding="utf-8") as out:
        for row in [header] + rows:
            print(*row, sep="\t", file=out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--write", help="directory for scenes.tsv and patterns.tsv")
    parser.add_argument("--prompt", default=data.DEFAULT_PROMPT)
    parser.add_argument("--scenes", type=int, default=len(SCENES))
    parser.add_argument("--rough", action="store_true", help="spoil pictures as lossy video does")
    parser.add_argument("--no-patterns", action="store_true")
    args = parser.parse_args()
    captioner = Captioner(args.model, args.prompt)
    scene_rows = scenes(captioner, args)
    pattern_rows = [] if args.no_patterns else patterns(captioner, args)
    if args.write:
        write(os.path.join(args.write, "scenes.tsv"),
              ("seed", "shapes", "width", "height", "fnv1a64", "caption", "transformers"),
              scene_rows)
        write(os.path.join(args.write, "patterns.tsv"),
              ("pattern", "width", "height", "frame", "caption", "transformers"), pattern_rows)


if __name__ == "__main__":
    main()
