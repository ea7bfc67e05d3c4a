# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tower with its projector, and the linear layers of the decoder, as ONNX and OpenVINO graphs."""

import os

import onnx
import torch
import torch.nn.functional as F
from torch import nn

PATCHES_A_SIDE = 32  # 512 x 512 pixels in patches of 16
TOWER = "model.vision_tower."
PROJECTOR = "model.multi_modal_projector."
TEXT = "model.language_model."


class Block(nn.Module):
    def __init__(self, width, hidden, heads, eps):
        super().__init__()
        self.heads = heads
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        n, width = x.shape[1:]
        y = self.layer_norm1(x)
        q, k, v = (p(y).view(1, n, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        weights = torch.softmax(q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5, -1)
        x = x + self.out_proj((weights @ v).transpose(1, 2).reshape(1, n, width))
        return x + self.fc2(F.gelu(self.fc1(self.layer_norm2(x)), approximate="tanh"))


class Tower(nn.Module):
    """Normalised patches [1, side * side, 768] to image tokens [1, side * side / 4, width of the decoder]."""

    def __init__(self, config, weights):
        super().__init__()
        vision, width = config["vision_config"], config["vision_config"]["hidden_size"]
        self.width = width
        self.patch_embedding = nn.Linear(768, width)
        self.layers = nn.ModuleList(Block(width, vision["intermediate_size"], vision["num_attention_heads"],
                                          vision["layer_norm_eps"]) for _ in range(vision["num_hidden_layers"]))
        self.post_layernorm = nn.LayerNorm(width, vision["layer_norm_eps"])
        self.linear_1 = nn.Linear(4 * width, config["projector_hidden_size"])
        self.linear_2 = nn.Linear(config["projector_hidden_size"], config["text_config"]["hidden_size"])
        table = weights[TOWER + "embeddings.position_embedding.weight"].reshape(1, 16, 16, width).permute(0, 3, 1, 2)
        table = F.interpolate(table, size=(PATCHES_A_SIDE, PATCHES_A_SIDE), mode="bilinear", antialias=True)
        self.register_buffer("positions", table.flatten(2).transpose(1, 2), persistent=False)
        self.load_state_dict({name_in_tower(name): value for name, value in weights.items()
                              if name.startswith((TOWER, PROJECTOR)) and "position_embedding" not in name})

    def forward(self, x):
        x = self.patch_embedding(x) + self.positions
        for layer in self.layers:
            x = layer(x)
        half = PATCHES_A_SIDE // 2
        x = self.post_layernorm(x).view(half, 2, half, 2, self.width).permute(0, 2, 1, 3, 4)
        return self.linear_2(F.gelu(self.linear_1(x.reshape(1, half * half, 4 * self.width))))


def name_in_tower(name):
    name = name.removeprefix(TOWER).removeprefix(PROJECTOR).removeprefix("embeddings.").removeprefix("encoder.")
    return name.replace(".self_attn.", ".").replace(".mlp.", ".")


class LinearLayer(nn.Module):
    """The matrices of one layer of the decoder, with no more between them than ties them together."""

    def __init__(self, width, kind, weights, prefix):
        super().__init__()
        self.width, self.attends = width, kind == "full_attention"
        part = "self_attn" if self.attends else "conv"
        names = ("q_proj", "k_proj", "v_proj", "out_proj") if self.attends else ("in_proj", "out_proj")
        for name in names:
            setattr(self, name, linear(weights["%s%s.%s.weight" % (prefix, part, name)]))
        for name in ("w1", "w2", "w3"):
            setattr(self, name, linear(weights["%sfeed_forward.%s.weight" % (prefix, name)]))

    def forward(self, x):
        y = F.layer_norm(x, (self.width,))
        if self.attends:
            y = self.q_proj(y) + torch.cat([self.k_proj(y), self.v_proj(y)], -1)
        else:
            b, c, z = self.in_proj(y).split(self.width, -1)
            y = c * (b * z)
        x = x + self.out_proj(y)
        y = F.layer_norm(x, (self.width,))
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class LinearLayers(nn.Module):
    """All matrices of the decoder, the head for the last token only: rows of its width to logits."""

    def __init__(self, config, weights):
        super().__init__()
        text = config["text_config"]
        self.width = text["hidden_size"]
        self.layers = nn.ModuleList(LinearLayer(self.width, kind, weights, "%slayers.%d." % (TEXT, i))
                                    for i, kind in enumerate(text["layer_types"]))
        self.head = linear(weights[TEXT + "embed_tokens.weight"])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(F.layer_norm(x, (self.width,))[:, -1:])


def linear(weight):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return layer


def export(config, weights, folder):
    """tower.onnx and decoder.onnx, in floats."""
    tower, decoder = Tower(config, weights).eval(), LinearLayers(config, weights).eval()
    with torch.no_grad():
        torch.onnx.export(tower, (torch.zeros(1, PATCHES_A_SIDE ** 2, 768),), os.path.join(folder, "tower.onnx"),
                          input_names=["x"], opset_version=17, dynamo=False)
        torch.onnx.export(decoder, (torch.zeros(1, 256, decoder.width),), os.path.join(folder, "decoder.onnx"),
                          input_names=["x"], dynamic_axes={"x": {1: "n"}}, opset_version=17, dynamo=False)


def quantise_onnx(folder):
    """*-dynamic8.onnx (8 bits a row, activations rounded on the way), *-blocks8.onnx and *-blocks4.onnx."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    for name in ("tower", "decoder"):
        source = os.path.join(folder, name + ".onnx")
        quantize_dynamic(source, os.path.join(folder, name + "-dynamic8.onnx"), per_channel=True,
                         weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
        for bits in (4, 8):
            made = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, accuracy_level=4,
                                        bits=bits)
            made.process()
            made.model.save_model_to_file(os.path.join(folder, "%s-blocks%d.onnx" % (name, bits)), False)


def compress_openvino(folder):
    """*-int8.xml and *-int4.xml (groups of 64, head and embedding too)."""
    import nncf
    import openvino

    kinds = {"int8": (nncf.CompressWeightsMode.INT8_SYM, {}),
             "int4": (nncf.CompressWeightsMode.INT4_SYM, {"group_size": 64, "ratio": 1.0, "all_layers": True})}
    core = openvino.Core()
    for name in ("tower", "decoder"):
        for kind, (mode, more) in kinds.items():
            model = core.read_model(os.path.join(folder, name + ".onnx"))
            openvino.save_model(nncf.compress_weights(model, mode=mode, **more),
                                os.path.join(folder, "%s-%s.xml" % (name, kind)), compress_to_fp16=False)
