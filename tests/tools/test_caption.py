# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-caption: dumps against the goldens, the two ways of captioning, errors."""

import json
import os
import shutil

from toolkit import CAPTION, DEMO_MODEL, GOLDEN, SMALL, ToolTest, caption, draw, fnv1a64, load_dump, main, noise
from toolkit import run, write_rgb_png

CASES = ("text", "text-system", "1x1", "300x100", "tiled-1024x544-halves")


def golden_cases(model):
    with open(os.path.join(GOLDEN, "cases", model + ".json"), encoding="utf-8") as f:
        return json.load(f)["cases"]


class Dump(ToolTest):
    def check_case(self, case):
        out, pictures = self.path(case["name"]), []
        for i, picture in enumerate(case["pictures"]):
            pictures.append(self.path("%s-%d.png" % (case["name"], i)))
            write_rgb_png(pictures[-1], picture["w"], picture["h"], draw(picture))
        system = ["--system-prompt", case["system"]] if case["system"] else []
        caption("--prompt", case["prompt"], *system, "--max-tokens", "48", "--dump", out, *pictures)
        dump = load_dump(out)
        expected = {"input_ids", "output_ids", "logits"}
        for i, crop in enumerate(case["crops"]):
            names = ["%s_%03d" % (kind, i) for kind in ("crop", "patches", "tower")]
            expected.update(names)
            pixels, patches, tower = (dump[name] for name in names)
            rows = crop["patches_h"] * crop["patches_w"]
            self.assertEqual((pixels.dtype, pixels.shape), ("|u1", (crop["h"], crop["w"], 3)))
            self.assertEqual((patches.dtype, patches.shape), ("<f4", (rows, 768)))
            self.assertEqual((tower.dtype, tower.shape), ("<f4", (rows, crop["tower"]["cols"])))
            self.assertEqual(fnv1a64(pixels.bytes), crop["crop_fnv"])
        if case["crops"]:
            expected.add("image_embeds")
            tokens = sum(crop["projector"]["of"] for crop in case["crops"])
            self.assertEqual(dump["image_embeds"].shape, (tokens, case["crops"][0]["projector"]["cols"]))
            self.assertEqual(dump["image_embeds"].dtype, "<f4")
        self.assertEqual(set(dump), expected)
        self.assertEqual(dump["input_ids"].dtype, "<i4")
        self.assertEqual(dump["input_ids"].values.tolist(), case["ids"])
        self.assertEqual(dump["output_ids"].dtype, "<i4")
        self.assertEqual(dump["output_ids"].values.tolist(), case["greedy"])
        self.assertEqual((dump["logits"].dtype, dump["logits"].shape), ("<f4", (case["logits"]["cols"],)))

    def test_golden_cases(self):
        cases = {case["name"]: case for case in golden_cases("lfm25")}
        for name in CASES:
            with self.subTest(name):
                self.check_case(cases[name])

    def test_two_pictures_in_one_prompt(self):
        pixels = [noise(1, 256 * 256 * 3), noise(2, 256 * 256 * 3)]
        files = [self.path("first.png"), self.path("second.png")]
        for path, data in zip(files, pixels):
            write_rgb_png(path, 256, 256, data)
        caption("--prompt", "Compare.", "--max-tokens", "1", "--dump", self.path("d"), *files)
        dump = load_dump(self.path("d"))
        self.assertEqual([dump["crop_%03d" % i].bytes for i in range(2)], pixels)
        self.assertEqual(dump["image_embeds"].shape[0], 128)
        self.assertEqual(dump["input_ids"].values.tolist().count(396), 128)
        self.assertNotIn("crop_002", dump)


class Answers(ToolTest):
    def picture(self, name, seed):
        write_rgb_png(self.path(name), 40, 30, noise(seed, 40 * 30 * 3))
        return self.path(name)

    def test_element_and_engine_agree(self):
        """With --timings the engine is called directly: same pixels, same answer."""
        a, b = self.picture("a.png", 3), self.picture("b.png", 4)
        plain, _ = caption("--model", DEMO_MODEL, a, b)
        direct, timings = caption("--model", DEMO_MODEL, "--timings", a, b)
        self.assertEqual(plain, direct)
        self.assertIn("peak memory", timings)
        for stage in ("image", "vision", "prefill", "decode", "total"):
            self.assertIn(stage, timings)
        lines = plain.split(b"\n")
        self.assertTrue(lines[0].startswith(a.encode() + b": "))
        self.assertTrue(any(line.startswith(b.encode() + b": ") for line in lines))
        alone, _ = caption("--model", DEMO_MODEL, a)
        self.assertEqual(alone, lines[0][len(a) + 2:] + b"\n")

    def test_cut_answer(self):
        """The element ends a caption that the limit cuts at a word; the engine's answer goes on."""
        a = self.picture("a.png", 3)
        options = ("--model", DEMO_MODEL, "--max-tokens", "3")
        plain, _ = caption(*options, a)
        direct, _ = caption(*options, "--timings", a)
        self.assertTrue(plain.endswith("\N{HORIZONTAL ELLIPSIS}\n".encode()), plain)
        self.assertTrue(direct.startswith(plain[:-len("\N{HORIZONTAL ELLIPSIS}\n".encode())]), direct)
        self.assertNotIn("\N{HORIZONTAL ELLIPSIS}".encode(), direct)

    def test_vision_part(self):
        """Of a GGUF model whose files lie apart."""
        folder = os.path.join(GOLDEN, "models", "gguf-q8_0")
        os.makedirs(self.path("apart"))
        for name in ("model-Q8_0.gguf", "apart/mmproj.gguf"):
            shutil.copy(os.path.join(folder, name if "/" not in name else "mmproj-Q8_0.gguf"), self.path(name))
        a = self.picture("a.png", 3)
        for way in ((), ("--timings",)):
            together, _ = caption("--max-tokens", "6", *way, a, model=folder)
            apart, _ = caption("--max-tokens", "6", *way, "--mmproj", self.path("apart", "mmproj.gguf"), a,
                               model=self.path("model-Q8_0.gguf"))
            self.assertEqual(apart, together)

    def test_text_only(self):
        first, _ = caption("--prompt", "Who is on the left?", "--max-tokens", "8")
        again, _ = caption("--prompt", "Who is on the left?", "--max-tokens", "8", "--threads", "2")
        self.assertEqual(first, again)
        self.assertTrue(first.endswith(b"\n"))

    def test_seed(self):
        sample = ("--temperature", "1.5", "--prompt", "Say something.", "--max-tokens", "16")
        texts = {seed: caption(*sample, "--seed", seed)[0] for seed in ("1", "2", "3")}
        self.assertEqual(texts["1"], caption(*sample, "--seed", "1")[0])
        self.assertGreater(len(set(texts.values())), 1)

    def test_environment_names_the_model(self):
        expected, _ = caption("--prompt", "Hi", "--max-tokens", "6")
        env = {"VLMCAPTION_MODEL": SMALL}
        found, _ = run(CAPTION, "--temperature", "0", "--prompt", "Hi", "--max-tokens", "6", env=env)
        self.assertEqual(found, expected)

    def test_image_settings(self):
        picture = self.picture("a.png", 5)
        caption("--prompt", "x", "--max-tokens", "1", "--min-image-tokens", "16", "--max-image-tokens", "32",
                "--dump", self.path("d"), picture)
        self.assertTrue(16 <= load_dump(self.path("d"))["image_embeds"].shape[0] <= 32)
        big = self.path("big.png")
        write_rgb_png(big, 1024, 544, b"\x10\x20\x30" * (1024 * 544))
        for tiling, crops in (("on", 3), ("off", 1)):
            out = self.path(tiling)
            caption("--prompt", "x", "--max-tokens", "1", "--tiling", tiling, "--dump", out, big)
            self.assertEqual(sum(name.startswith("crop_") for name in load_dump(out)), crops)


class Errors(ToolTest):
    def fails(self, *args, names, status=1, model=SMALL, env=None):
        out, errors = caption(*args, model=model, status=status, env=env)
        for name in names:
            self.assertIn(name, errors)
        return out

    def setUp(self):
        super().setUp()
        self.good = self.path("good.png")
        write_rgb_png(self.good, 32, 32, noise(6, 32 * 32 * 3))

    def test_cpu_levels(self):
        self.fails("--prompt", "x", names=["VLM_CPU=quantum"], env={"VLM_CPU": "quantum"})
        self.fails(self.good, names=["VLM_CPU=quantum"], env={"VLM_CPU": "quantum"})
        foreign = "avx2" if os.uname().machine == "aarch64" else "neon"
        self.fails("--prompt", "x", names=["VLM_CPU=" + foreign], env={"VLM_CPU": foreign})
        caption("--prompt", "x", "--max-tokens", "1", env={"VLM_CPU": "scalar"})

    def test_model(self):
        missing = self.path("nowhere")
        self.fails("--prompt", "x", names=[missing], model=missing)
        self.fails(self.good, names=[missing], model=missing)
        os.mkdir(self.path("empty"))
        self.fails("--prompt", "x", names=[self.path("empty")], model=self.path("empty"))

    def test_pictures(self):
        with open(self.path("text.png"), "wb") as f:
            f.write(b"this is no picture\n" * 20)
        open(self.path("empty.png"), "wb").close()
        with open(self.good, "rb") as f, open(self.path("cut.png"), "wb") as g:
            g.write(f.read()[:60])
        for name in ("missing.png", "text.png", "empty.png", "cut.png"):
            with self.subTest(name):
                self.fails(self.path(name), names=[name])
                self.fails("--dump", self.path("d"), self.path(name), names=[name])
        out = self.fails("--max-tokens", "3", self.path("missing.png"), self.good, names=["missing.png"])
        self.assertTrue(out.startswith(self.good.encode() + b": "))

    def test_no_regular_file(self):
        """A pipe that nobody writes to would be waited for; a link to a file is as good as the file."""
        os.mkfifo(self.path("pipe.png"))
        os.mkdir(self.path("folder.png"))
        os.symlink(self.path("pipe.png"), self.path("link-to-pipe.png"))
        os.symlink(self.good, self.path("link-to-file.png"))
        for name in ("pipe.png", "folder.png", "link-to-pipe.png"):
            for way in ([], ["--dump", self.path("d")]):
                with self.subTest(name=name, way=way):
                    empty_folder = name == "folder.png" and not way
                    reason = "there is nothing in this folder" if empty_folder else "it is no regular file"
                    self.fails(*way, self.path(name), names=[name + ": " + reason])
        self.fails("/dev/null", names=["/dev/null: it is no regular file"])
        caption("--max-tokens", "1", self.path("link-to-file.png"))

    def test_output_full(self):
        command = (CAPTION, "--model", SMALL, "--max-tokens", "2")
        self.loses_output(CAPTION, "--version")
        self.loses_output(*command, "--prompt", "x")
        self.loses_output(*command, self.good)
        self.loses_output(*command, "--timings", self.good, self.good)
        self.loses_output(*command, "--prompt", "x", "--dump", self.path("d"), self.good)
        shutil.copy(self.good, self.path("second.png"))
        errors = self.loses_output(*command, self.good, self.path("second.png"))
        self.assertIn("second.png: not captioned", errors)

    def test_too_long_for_a_crop(self):
        write_rgb_png(self.path("long.png"), 1, 20000, b"\x80" * 60000)
        self.fails(self.path("long.png"), names=["long.png", "8192"])
        self.fails("--dump", self.path("d"), self.path("long.png"), names=["long.png", "8192"])

    def test_pictures_for_a_text_model(self):
        text = os.path.join(GOLDEN, "models", "text-only")
        self.fails("--dump", self.path("d"), self.good, names=["good.png", "text model"], model=text)
        caption("--prompt", "x", "--max-tokens", "2", model=text)

    def test_usage(self):
        for wrong in (["--max-tokens", "0"], ["--top-p", "2"], ["--tiling", "perhaps"], ["--nonsense"],
                      ["--threads", "-2"], ["--precision", "sloppy"]):
            self.fails(*wrong, self.good, names=[wrong[0].lstrip("-")], status=2)
        self.fails(names=["INPUT"], status=2)
        self.assertIn(b"INPUT", run(CAPTION, "--help")[0])
        self.assertRegex(run(CAPTION, "--version")[0], rb"^vlm-caption \d+\.\d+\.\d+\n$")

    def test_ranges(self):
        """Wrong numbers are refused before a model is looked for; the limits themselves are taken."""
        ranges = (("--max-tokens", ("0", "-2"), ("1", "7"), "at least 1"),
                  ("--temperature", ("-0.5", "100.00001", "nan"), ("0", "100"), "0 to 100"),
                  ("--top-k", ("-2",), ("0", "5"), "at least 0"),
                  ("--top-p", ("-0.1", "1.001", "nan"), ("0", "1"), "0 to 1"),
                  ("--min-p", ("-0.1", "1.001"), ("0", "1"), "0 to 1"),
                  ("--repetition-penalty", ("0", "0.0099", "100.1"), ("0.01", "100"), "0.01 to 100"),
                  ("--seed", ("-2",), ("0", "9223372036854775807"), "at least 0"),
                  ("--min-image-tokens", ("0", "8193"), ("1", "8192"), "1 to 8192"),
                  ("--max-image-tokens", ("0", "8193", "2147483647"), ("1", "8192"), "1 to 8192"),
                  ("--threads", ("-1", "-2", "1025"), ("0", "1024"), "0 to 1024"))
        nowhere = self.path("nowhere")
        for option, wrong, right, expected in ranges:
            for value in wrong:
                with self.subTest(option, value=value):
                    message = "%s is %s, expected %s\n" % (option, value, expected)
                    self.fails("%s=%s" % (option, value), "-p", "x", names=[message], status=2, model=nowhere)
            for value in right:
                with self.subTest(option, value=value):
                    self.fails("%s=%s" % (option, value), "-p", "x", names=[nowhere], model=nowhere)

    def test_limits_reach_the_engine(self):
        """What the command line takes, the engine and the element take too."""
        for pair in (("--top-p", "0"), ("--repetition-penalty", "0.01"), ("--repetition-penalty", "100"),
                     ("--min-image-tokens", "1"), ("--max-image-tokens", "8192"), ("--threads", "1024")):
            with self.subTest(pair):
                caption(*pair, "--max-tokens", "1", "--temperature", "1", "--timings", self.good)
                caption(*pair, "--max-tokens", "1", "--temperature", "1", self.good)

    def test_dump_folder(self):
        self.fails("--prompt", "x", "--dump", os.path.join(self.good, "d"), names=["good.png"])


if __name__ == "__main__":
    main()
