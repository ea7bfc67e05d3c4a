# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes one checkpoint of random weights in the form of each contestant. Run in the environment of the peers.

    peers_models.py WORK LLAMA_QUANTIZE PART...

WORK/hf holds the checkpoint; PART is gguf, onnx or openvino. Each part is made in a folder of another name that is
renamed when all is there, so what exists is whole.
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "golden"))


def read_checkpoint(folder):
    """Settings, and all tensors in float32."""
    from safetensors.torch import load_file

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    weights = load_file(os.path.join(folder, "model.safetensors"))
    return config, {name.replace(".vision_model.", "."): value.float() for name, value in weights.items()}


def make_gguf(work, folder, quantise):
    """model-Q4_0.gguf, by llama.cpp's own quantiser from halves, and mmproj-Q8_0.gguf."""
    import gguf
    import golden_gguf_model as golden

    config, weights = read_checkpoint(os.path.join(work, "hf"))
    config["text_config"].setdefault("rope_parameters", {"rope_theta": config["text_config"].get("rope_theta")})
    with open(os.path.join(work, "hf", "tokenizer.json"), encoding="utf-8") as f:
        tokenizer = json.load(f)
    halves = os.path.join(folder, "model-F16.gguf")
    text = gguf.GGUFWriter(halves, "lfm2")
    vision = gguf.GGUFWriter(os.path.join(folder, "mmproj-Q8_0.gguf"), "clip")
    golden.add_text_settings(text, config)
    golden.add_tokens(text, tokenizer)
    golden.add_vision_settings(vision, config)
    kinds = (gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.Q8_0)
    golden.write_tensors(text, vision, weights, kinds, "token_embd_norm")
    golden.finish(text)
    golden.finish(vision)
    subprocess.run([quantise, halves, os.path.join(folder, "model-Q4_0.gguf"), "Q4_0", "2"], check=True)
    os.remove(halves)


def make_onnx(work, folder, _):
    import peers_graphs

    peers_graphs.export(*read_checkpoint(os.path.join(work, "hf")), folder)
    peers_graphs.quantise_onnx(folder)


def make_openvino(work, folder, _):
    import peers_graphs

    for name in ("tower", "decoder"):
        os.link(os.path.join(work, "onnx", name + ".onnx"), os.path.join(folder, name + ".onnx"))
    peers_graphs.compress_openvino(folder)


MAKERS = {"gguf": make_gguf, "onnx": make_onnx, "openvino": make_openvino}


def main():
    work, quantise, *parts = sys.argv[1:]
    for part in parts:
        made, folder = os.path.join(work, part), os.path.join(work, part + ".part")
        if os.path.exists(made):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        MAKERS[part](work, folder, quantise)
        os.rename(folder, made)


if __name__ == "__main__":
    main()
