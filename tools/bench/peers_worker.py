# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs graphs in ONNX Runtime or OpenVINO, one at a time and on demand. Run in the environment of the peers.

    peers_worker.py onnx|openvino WORK THREADS DECODED_TOKENS PROMPT_TOKENS
    peers_worker.py gguf MODEL.gguf MMPROJ.gguf
    peers_worker.py check TOWER.onnx DUMP

The first form loads all graphs, prints what they are as one line of JSON, then reads the number of one a line and
prints how long it took. The second prints what the files of a GGUF model hold. The third fails unless the graph makes
of the patches that vlm-caption --dump wrote what that wrote as their tokens.
"""

import json
import os
import re
import sys
import time

import numpy as np

LAYER = re.compile(r"layers\.(\d+)[./]")
PATCHES, PATCH_VALUES = 1024, 768
ONNX_FORMS = (("dynamic8", "dynamic int8"), ("blocks8", "8-bit blocks"), ("blocks4", "4-bit blocks"))
# OpenVINO's: what is not computed in integers, values of a row of activations with one scale, and a name for both.
OPENVINO_FORMS = (("f32", 32, "groups of 32"), ("f32", 64, "groups of 64"), ("bf16", 0, "bf16"))
MOST_DISTANT = 1e-3  # relative, of the floats' features from the engine's


class Onnx:
    """A graph of ONNX Runtime."""

    def __init__(self, path, threads, _):
        import onnx
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.threads = self.session.get_session_options().intra_op_num_threads
        graph = onnx.load(path).graph
        self.names = [node.name for node in graph.node]
        self.weight_bytes = sum(len(tensor.raw_data) for tensor in graph.initializer)
        self.norm_width = next((t.dims[0] for t in graph.initializer if t.name == "post_layernorm.weight"), None)

    def infer(self, values):
        return self.session.run(None, {"x": values})[0]

    def kernels(self):
        """It does not tell."""
        return None


class OpenVino:
    """A graph of OpenVINO with activations rounded in groups, or all in bf16."""

    def __init__(self, path, threads, form):
        import openvino

        precision, group, _ = form
        core = openvino.Core()
        model = core.read_model(path)
        compiled = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": group})
        self.threads = compiled.get_property("INFERENCE_NUM_THREADS")
        self.request = compiled.create_infer_request()
        self.names = [op.get_friendly_name() for op in model.get_ops()]
        self.weight_bytes = os.path.getsize(path.removesuffix(".xml") + ".bin")
        self.norm_width = next((list(op.get_output_shape(0))[-1] for op in model.get_ops()
                                if op.get_friendly_name() == "post_layernorm.weight"), None)

    def infer(self, values):
        self.request.infer({0: values})
        return self.request.get_output_tensor(0).data

    def kernels(self):
        """Those of the linear layers in the last run; before it, a shape may be open, and they with it."""
        graph = self.request.get_compiled_model().get_runtime_model()
        return sorted({facts["primitiveType"].astype(str) for op in graph.get_ops()
                       if (facts := op.get_rt_info())["layerType"].astype(str) == "FullyConnected"})


class Job:
    """A stage of one graph: what it is, and how long it takes once."""

    def __init__(self, graph, name, stage, values, repeats, shape):
        self.graph, self.values, self.repeats = graph, values, repeats
        layers = len({match.group(1) for match in map(LAYER.search, graph.names) if match})
        side = "vision" if stage == "vision" else "text"
        output = graph.infer(values)
        shape = dict(shape, threads=graph.threads, **{side + "_layers": layers})
        if stage == "vision":
            shape.update(patches=values.shape[1], image_tokens=output.shape[1], vision_width=int(graph.norm_width))
        else:
            shape.update(text_width=values.shape[2])
        self.facts = {"stage": stage, "name": name, "shape": shape, "parts": "all" if side == "vision" else
                      "linear layers only", "token_bytes": graph.weight_bytes if stage == "decode" else None,
                      "kernels": graph.kernels()}

    def measure(self):
        """Seconds of one repeat; one that does not count goes ahead."""
        self.graph.infer(self.values)
        since = time.perf_counter()
        for _ in range(self.repeats):
            self.graph.infer(self.values)
        return (time.perf_counter() - since) / self.repeats


def graphs_of(kind, work):
    """(class, file, option, name) of each."""
    if kind == "onnx":
        return [(Onnx, "%s/onnx/%s-%s.onnx" % (work, graph, form), None, "ONNX Runtime, " + label)
                for graph in ("tower", "decoder")
                for form, label in ONNX_FORMS
                if (graph, form) != ("tower", "blocks4")]
    return [(OpenVino, "%s/openvino/%s-%s.xml" % (work, graph, weights), form, "OpenVINO, %s, %s" % (weights, form[2]))
            for graph in ("tower", "decoder") for weights in ("int8", "int4") for form in openvino_forms()
            if (graph, weights) != ("tower", "int4")]


def openvino_forms():
    """Those that this processor, or the level that it is held to, has instructions for."""
    import openvino

    has_bf16 = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return [form for form in OPENVINO_FORMS if form[0] != "bf16" or has_bf16]


def jobs_of(kind, work, threads, decoded, prompt):
    random = np.random.default_rng(1)
    jobs = []
    for cls, path, option, name in graphs_of(kind, work):
        graph = cls(path, threads, option)
        if "/tower" in path:
            patches = random.uniform(-1, 1, (1, PATCHES, PATCH_VALUES)).astype(np.float32)
            jobs.append(Job(graph, name, "vision", patches, 1, {}))
            continue
        with open(os.path.join(work, "hf", "config.json"), encoding="utf-8") as f:
            width = json.load(f)["text_config"]["hidden_size"]
        rows = random.standard_normal((1, prompt, width)).astype(np.float32)
        jobs.append(Job(graph, name, "prefill", rows, 1, {"prefilled_tokens": prompt}))
        jobs.append(Job(graph, name, "decode", rows[:, :1], decoded, {"decoded_tokens": decoded}))
    return jobs


def serve(kind, work, *numbers):
    # What the libraries themselves print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    jobs = jobs_of(kind, work, *map(int, numbers))
    print(json.dumps([job.facts for job in jobs]), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(jobs[int(line)].measure()), file=answers, flush=True)


def field(reader, key):
    return reader.get_field(key).contents()


def describe_gguf(model, mmproj):
    """The shape of a pair, and the bytes of matrices that each token reads."""
    import gguf

    text, vision = gguf.GGUFReader(model), gguf.GGUFReader(mmproj)
    matrices = [t for t in text.tensors if len(t.shape) == 2 and "shortconv.conv" not in t.name]
    print(json.dumps({
        "text_layers": int(field(text, "lfm2.block_count")), "text_width": int(field(text, "lfm2.embedding_length")),
        "vision_layers": int(field(vision, "clip.vision.block_count")),
        "vision_width": int(field(vision, "clip.vision.embedding_length")),
        "patches_a_token": int(field(vision, "clip.vision.projector.scale_factor")) ** 2,
        "token_bytes": int(sum(t.n_bytes for t in matrices))}))


def check_tower(path, dump):
    """The same weights, put in the same places, give the same features."""
    patches, wanted = (np.load(os.path.join(dump, name)) for name in ("patches_000.npy", "image_embeds.npy"))
    found = Onnx(path, 0, None).infer(patches.reshape(1, PATCHES, PATCH_VALUES)).reshape(wanted.shape)
    distance = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    if not distance <= MOST_DISTANT:
        sys.exit("%s is %.2g away from the engine, at most %.2g is expected" % (path, distance, MOST_DISTANT))
    print("%s is %.2g away from the engine" % (path, distance))


if __name__ == "__main__":
    others = {"gguf": describe_gguf, "check": check_tower}
    if sys.argv[1] in others:
        others[sys.argv[1]](*sys.argv[2:])
    else:
        serve(*sys.argv[1:])
