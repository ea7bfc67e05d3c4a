# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains the demo model's tokenizer: LFM2's pipeline, a small vocabulary.

    python make_tokenizer.py model/
"""

import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers import trainers

import data

VOCABULARY = 768
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = (
    ["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|fim_mid|>", "<|fim_suf|>",
     "<|im_start|>", "<|im_end|>", "<|tool_list_start|>", "<|tool_list_end|>",
     "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>",
     "<|tool_response_end|>", "<image>"]
    + [f"<|img_row_{r}_col_{c}|>" for r in range(1, 11) for c in range(1, 11)]
    + ["<|img_thumbnail|>", "<|image_start|>", "<|image_end|>"]
)
# Everyday words, so that prompts of the user's own do not fall apart into single letters.
GENERAL = """
The picture shows a person, a car and a house near the road. There are people in the street, some
of them are walking and others are standing. Is there a dog or a cat in the image? How many objects
can you count? Where is the ball, and which colour does it have? Please answer with one word, with
a short sentence, or in detail. Tell me about the video, its background and the time of day. List
the things which are visible, then say what is happening here. Who is that, and why are they here?
Look at the top, the bottom, the middle, the left and the right of the screen. Yes or no: does the
frame contain text? Write down the words. This one is bigger than that one. Explain what you have
found, but keep it brief and do not guess. You should only use what was given to you. Thank you.
""".strip().splitlines()

CHAT_TEMPLATE = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- "<|im_start|>" + message["role"] + "\\n" -}}
{%- if message["content"] is string -%}
{{- message["content"] -}}
{%- else -%}
{%- for item in message["content"] -%}
{%- if item["type"] == "image" -%}
{{- "<image>" -}}
{%- elif item["type"] == "text" -%}
{{- item["text"] -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- "<|im_start|>assistant\\n" -}}
{%- endif -%}
"""


def corpus():
    for seed in range(data.SEED_TRAINING, data.SEED_TRAINING + 6000):
        yield data.make_scene(seed).caption
    for _ in range(40):
        yield from data.pattern_captions().values()
        yield from (f"A plain {name} picture." for name in data.PLAIN_PICTURES)
        yield from (data.DEFAULT_PROMPT, *data.OTHER_PROMPTS, *data.SYSTEM_PROMPTS)
        yield from ("system\n", "user\n", "assistant\n")
    for _ in range(3):
        yield from GENERAL


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(
            single="<|startoftext|> $A", pair="<|startoftext|> $A <|startoftext|> $B:1",
            special_tokens=[("<|startoftext|>", tokenizer.token_to_id("<|startoftext|>"))])])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def save(directory):
    from transformers import Lfm2VlImageProcessor, Lfm2VlProcessor, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(), bos_token="<|startoftext|>", eos_token="<|im_end|>",
        pad_token="<|pad|>", model_max_length=1024, clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": "<image>", "image_start_token": "<|image_start|>",
                              "image_end_token": "<|image_end|>",
                              "image_thumbnail": "<|img_thumbnail|>"})
    images = Lfm2VlImageProcessor(
        downsample_factor=2, do_image_splitting=False, min_tiles=1, max_tiles=1,
        use_thumbnail=False, min_image_tokens=data.MIN_TOKENS, max_image_tokens=data.MAX_TOKENS,
        encoder_patch_size=16, tile_size=512, max_pixels_tolerance=2.0, resample=2)
    os.makedirs(directory, exist_ok=True)
    Lfm2VlProcessor(images, tokenizer, chat_template=CHAT_TEMPLATE).save_pretrained(directory)


if __name__ == "__main__":
    save(sys.argv[1])
