# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model convert: what stands in the files that it writes, and what it leaves behind when it may not."""

import errno
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import container
from toolkit import CAPTION, GOLDEN, MODEL_TOOL, SMALL, ToolTest, caption, main, noise, run, write_rgb_png
from toolkit import MODELS as SMALL_MODELS

ROOT = os.path.dirname(os.path.dirname(GOLDEN))
DEMO = os.path.join(ROOT, "tools", "demo-model", "model")
MODELS = [DEMO] + SMALL_MODELS
SETTINGS = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "processor_config.json",
            "preprocessor_config.json", "generation_config.json")

TEXT_MATRIX = re.compile(r"model\.(language_model\.)?(embed_tokens|layers\.\d+\.(self_attn\.(q|k|v|out)_proj|"
                         r"conv\.(in|out)_proj|feed_forward\.w[123]))\.weight|lm_head\.weight")
VISION_MATRIX = re.compile(r"model\.vision_tower\.(vision_model\.)?encoder\.layers\.\d+\."
                           r"(self_attn\.(q|k|v|out)_proj|mlp\.fc[12])\.weight|"
                           r"model\.multi_modal_projector\.linear_[12]\.weight")


def convert(source, target, kind, *options, **kwargs):
    return run(MODEL_TOOL, "convert", "--type", kind, *options, source, target, **kwargs)


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


class ConvertTest(ToolTest):
    def left_behind(self, folder, before):
        self.assertEqual(sorted(os.listdir(folder)), sorted(before))

    def refuses(self, source, target, *options, names, status=1):
        """Fails with a message that has all the names, and leaves everything in target's folder as it was."""
        folder = os.path.dirname(target)
        before = {name: os.stat(os.path.join(folder, name)) for name in os.listdir(folder)}
        _, errors = run(MODEL_TOOL, "convert", *options, source, target, status=status)
        for name in names:
            self.assertIn(name, errors)
        self.left_behind(folder, before)
        for name, stat in before.items():
            self.assertEqual(os.stat(os.path.join(folder, name)).st_mtime_ns, stat.st_mtime_ns)
        return errors

    def copy(self, source=SMALL, name="copy"):
        return shutil.copytree(source, self.path(name))

    def change(self, folder, name, values, dtype="F32"):
        """Rewrites a directory's weights with one tensor of other values, all as F32. values: index to float."""
        path = os.path.join(folder, "model.safetensors")
        tensors = {}
        for key, tensor in container.read(path)[0].items():
            floats = tensor.values()
            if key == name:
                for index, value in values.items():
                    floats[index] = value
            tensors[key] = (dtype, tensor.shape, struct.pack("<%df" % len(floats), *floats))
        container.write(path, tensors)


class Types(ConvertTest):
    def check_tensor(self, out, name, source, wanted):
        """The tensor is stored as wanted; returns the names that it takes."""
        tensor = out[name]
        if wanted == "f16":
            self.assertEqual((tensor.dtype, tensor.shape), ("F16", source.shape), name)
            return {name}
        rows, columns = source.shape
        scale = out[name + ".scale"]
        groups = (columns + 63) // 64
        self.assertEqual((tensor.dtype, tensor.shape),
                         ("I8", (rows, columns)) if wanted == "int8" else ("U8", (rows, (columns + 1) // 2)), name)
        self.assertEqual((scale.dtype, scale.shape),
                         ("F16", (rows,)) if wanted == "int8" else ("F16", (rows, groups)), name)
        return {name, name + ".scale"}

    def check_file(self, path, source, text, vision):
        out, metadata = container.read(path)
        tensors = container.read_directory(source)
        self.assertEqual(metadata["format"], "pt")
        seen = set()
        for name, tensor in tensors.items():
            kind = text if TEXT_MATRIX.fullmatch(name) else vision if VISION_MATRIX.fullmatch(name) else "f16"
            seen |= self.check_tensor(out, name, tensor, kind)
        for name in SETTINGS:
            if os.path.exists(os.path.join(source, name)):
                self.assertEqual(out["files/" + name].data, read_bytes(os.path.join(source, name)), name)
                seen.add("files/" + name)
        padding = {name for name in out if name.startswith("padding/")}
        self.assertEqual(set(out), seen | padding)
        for name, tensor in out.items():
            if name in padding:
                self.assertEqual(tensor.data, bytes(len(tensor.data)))
                self.assertLess(len(tensor.data), 64)
            else:
                self.assertEqual(tensor.offset % 64, 0, name)

    def test_types(self):
        """Which tensor gets which type, in every golden model: names of both generations, shards, separate head."""
        for source in MODELS:
            for kind in ("f16", "int8", "int4"):
                with self.subTest(os.path.basename(source), kind=kind):
                    path = self.path("m.slm")
                    convert(source, path, kind)
                    self.check_file(path, source, kind, "f16" if kind == "f16" else "int8")

    def test_vision_type(self):
        for kind, vision in (("int4", "f16"), ("int8", "f16"), ("f16", "int8")):
            path = self.path("m.slm")
            convert(SMALL, path, kind, "--vision-type", vision)
            self.check_file(path, SMALL, kind, vision)

    def test_unused_tensors(self):
        """A head that repeats the embedding, and a pooling head, are left out."""
        convert(SMALL, self.path("m.slm"), "int4")
        folder = self.copy()
        weights = os.path.join(folder, "model.safetensors")
        tensors = {name: (tensor.dtype, tensor.shape, tensor.data)
                   for name, tensor in container.read(weights)[0].items()}
        tensors["lm_head.weight"] = tensors["model.language_model.embed_tokens.weight"]
        level = "vision_model." if any(".vision_model." in name for name in tensors) else ""
        tensors["model.vision_tower.%shead.probe" % level] = ("F16", (1, 1, 4), bytes(8))
        container.write(weights, tensors)
        convert(folder, self.path("n.slm"), "int4")
        self.assertEqual(read_bytes(self.path("n.slm")), read_bytes(self.path("m.slm")))

    def test_same_bytes(self):
        """Neither threads, nor CPU level, nor what was at the target before, matter."""
        for kind in ("f16", "int8", "int4"):
            files = []
            for options, env in (((), {}), (("--threads", "1"), {"VLM_CPU": "scalar"}), (("--threads", "3"), {})):
                convert(DEMO, self.path("m.slm"), kind, *options, env=env)
                files.append(read_bytes(self.path("m.slm")))
            self.assertEqual(files[0], files[1])
            self.assertEqual(files[0], files[2])

    def test_builtin_model(self):
        """The file that is compiled into the plugin is what becomes of the trained model."""
        convert(DEMO, self.path("m.slm"), "int8")
        shipped = os.path.join(ROOT, "engine", "builtin", "model.slm")
        self.assertEqual(read_bytes(self.path("m.slm")), read_bytes(shipped))

    def test_runs(self):
        """Every type answers; halves of bfloat16 weights answer as those do."""
        write_rgb_png(self.path("p.png"), 48, 32, noise(3, 48 * 32 * 3))
        for kind in ("f16", "int8", "int4"):
            convert(SMALL, self.path("m.slm"), kind)
            out, _ = caption("--max-tokens", "5", "--prompt", "x", model=self.path("m.slm"))
            run(CAPTION, "--model", self.path("m.slm"), "--max-tokens", "5", self.path("p.png"))
            if kind == "f16":
                self.assertEqual(out, caption("--max-tokens", "5", "--prompt", "x")[0])

    def test_safetensors_package(self):
        try:
            from safetensors import safe_open
        except ImportError:
            self.skipTest("the Python package safetensors is not there")
        for kind in ("f16", "int8", "int4"):
            convert(DEMO, self.path("m.slm"), kind)
            mine, metadata = container.read(self.path("m.slm"))
            with safe_open(self.path("m.slm"), framework="numpy") as f:
                self.assertEqual(f.metadata(), metadata)
                self.assertEqual(set(f.keys()), set(mine))
                for name in f.keys():
                    array = f.get_tensor(name)
                    self.assertEqual(array.shape, mine[name].shape)
                    self.assertEqual(array.tobytes(), mine[name].data)


class Values(ConvertTest):
    TENSORS = ("model.language_model.layers.0.conv.in_proj.weight",
               "model.language_model.layers.0.feed_forward.w2.weight",
               "model.multi_modal_projector.linear_1.weight")
    PLAIN = ("model.language_model.layers.0.conv.conv.weight", "model.language_model.embedding_norm.weight",
             "model.vision_tower.embeddings.position_embedding.weight",
             "model.vision_tower.embeddings.patch_embedding.weight")

    def check(self, source, kind):
        path = self.path("m.slm")
        convert(source, path, kind)
        out, given = container.read(path)[0], container.read_directory(source)
        for name in self.PLAIN + (self.TENSORS if kind == "f16" else ()):
            wanted = b"".join(container.f16(x) for x in given[name].values())
            self.assertEqual(out[name].data, wanted, name)
        for name in self.TENSORS if kind != "f16" else ():
            int4 = kind == "int4" and TEXT_MATRIX.fullmatch(name)
            pack = container.pack_int4 if int4 else container.pack_int8
            integers, scales = pack(given[name].values(), given[name].shape[1])
            self.assertEqual(out[name].data, integers, name)
            self.assertEqual(out[name + ".scale"].data, scales, name)

    def test_half(self):
        self.check(DEMO, "f16")

    def test_int8(self):
        self.check(DEMO, "int8")

    def test_int4(self):
        self.check(DEMO, "int4")

    def test_from_float32_and_bfloat16(self):
        """Values that need rounding to halves, on the way to them and on the way to integers."""
        for name in ("lfm25", "ids-moved"):
            source = os.path.join(GOLDEN, "models", name)
            for kind in ("f16", "int4"):
                path = self.path("m.slm")
                convert(source, path, kind)
                out, given = container.read(path)[0], container.read_directory(source)
                checked = 0
                for key, tensor in given.items():
                    if len(tensor.data) > 40000:
                        continue
                    checked += 1
                    if kind == "int4" and TEXT_MATRIX.fullmatch(key):
                        integers, scales = container.pack_int4(tensor.values(), tensor.shape[1])
                        self.assertEqual((out[key].data, out[key + ".scale"].data), (integers, scales), key)
                    elif kind == "f16":
                        self.assertEqual(out[key].data, b"".join(container.f16(x) for x in tensor.values()), key)
                self.assertGreater(checked, 10)

    def test_special_rows(self):
        """Zeros, ties, and scales that are subnormal halves."""
        name = "model.language_model.layers.0.feed_forward.w1.weight"
        folder = self.copy()
        columns = container.read_directory(folder)[name].shape[1]
        values = {}
        for i in range(columns):
            values[i] = 0.0
            values[columns + i] = (i % 255 - 127) / 2 if i else 127.0
            values[2 * columns + i] = (i - columns / 2) * 1e-8
            values[3 * columns + i] = -((i % 8) - 0.5) * 3e-4
        self.change(folder, name, values)
        given = container.read_directory(folder)[name]
        for kind, pack in (("int8", container.pack_int8), ("int4", container.pack_int4)):
            convert(folder, self.path("m.slm"), kind)
            out = container.read(self.path("m.slm"))[0]
            integers, scales = pack(given.values(), columns)
            self.assertEqual(out[name].data, integers)
            self.assertEqual(out[name + ".scale"].data, scales)


class Keep(ConvertTest):
    def test_keep(self):
        """What is integers stays, and so it does when nothing is said; floats become halves."""
        for kind in ("int8", "int4"):
            convert(SMALL, self.path("m.slm"), kind)
            convert(self.path("m.slm"), self.path("kept.slm"), "keep")
            run(MODEL_TOOL, "convert", self.path("m.slm"), self.path("silent.slm"))
            for name in ("kept.slm", "silent.slm"):
                self.assertEqual(read_bytes(self.path(name)), read_bytes(self.path("m.slm")))
        convert(SMALL, self.path("half.slm"), "f16")
        convert(SMALL, self.path("kept.slm"), "keep")
        self.assertEqual(read_bytes(self.path("kept.slm")), read_bytes(self.path("half.slm")))


class Refusals(ConvertTest):
    def test_usage(self):
        target = self.path("m.slm")
        self.refuses(SMALL, target, names=["has floats only, so a type of the text weights is needed"])
        self.refuses(SMALL, target, "--type", "int5", names=["--type is int5, expected f16, int8, int4 or keep"],
                     status=2)
        self.refuses(SMALL, target, "--type", "int8", "--threads", "-1", names=["--threads"], status=2)
        _, errors = run(MODEL_TOOL, "convert", "--type", "f16", SMALL, status=2)
        self.assertIn("a model and a file to write", errors)

    def test_four_bit_vision(self):
        self.refuses(SMALL, self.path("m.slm"), "--type", "int4", "--vision-type", "int4",
                     names=["vision weights is int4", "below 8 bits"])

    def test_sources(self):
        self.refuses(self.path("nowhere"), self.path("m.slm"), "--type", "f16", names=["nowhere"])
        folder = self.copy()
        os.remove(os.path.join(folder, "tokenizer.json"))
        self.refuses(folder, self.path("m.slm"), "--type", "f16", names=["tokenizer.json"])

    def test_targets(self):
        folder = self.copy()
        for target in (os.path.join(folder, "model.safetensors"), os.path.join(folder, "config.json")):
            self.refuses(folder, target, "--type", "f16", names=[target, "part of the model"])
        os.link(os.path.join(folder, "model.safetensors"), self.path("link.slm"))
        self.refuses(folder, self.path("link.slm"), "--type", "f16", names=["part of the model"])
        self.refuses(folder, folder, "--type", "f16", names=["is a directory"])
        os.mkfifo(self.path("fifo"))
        self.refuses(folder, self.path("fifo"), "--type", "f16", names=["no regular file"])
        _, errors = convert(folder, self.path("no", "such", "m.slm"), "f16", status=1)
        self.assertIn(self.path("no", "such", "m.slm"), errors)

    def test_beside_the_source(self):
        """A new file in the model's own directory is no part of it."""
        folder = self.copy()
        convert(folder, os.path.join(folder, "m.slm"), "int8")
        run(MODEL_TOOL, "verify", os.path.join(folder, "m.slm"))
        run(MODEL_TOOL, "verify", folder)

    def test_empty_settings(self):
        """What is optional may be empty, and is left out then."""
        folder = self.copy()
        with open(os.path.join(folder, "chat_template.jinja"), "w"):
            pass
        convert(folder, self.path("m.slm"), "f16")
        self.assertNotIn("files/chat_template.jinja", container.read(self.path("m.slm"))[0])

    def test_replaces(self):
        target = self.path("m.slm")
        with open(target, "wb") as f:
            f.write(b"something else")
        convert(SMALL, target, "int4")
        run(MODEL_TOOL, "verify", target)
        self.left_behind(self.path(), ["m.slm"])

    def test_values(self):
        norm = "model.language_model.layers.0.ffn_norm.weight"
        matrix = "model.language_model.layers.0.feed_forward.w1.weight"
        for name, index, value, kind, parts in (
                (norm, 3, float("nan"), "f16", ["has NaN at [3]"]),
                (norm, 0, 65520.0, "f16", ["has 65520 at [0]", "65504"]),
                (norm, 5, -1e9, "int8", ["has -1e+09 at [5]"]),
                (matrix, 130, float("-inf"), "int4", ["has -Inf at [", "a finite number"]),
                (matrix, 7, float("inf"), "f16", ["has Inf at [0, 7]"]),
                (matrix, 9, 1e30, "int8", ["scale"])):
            with self.subTest(name, value=value):
                folder = self.copy(name="copy%s" % time.monotonic_ns())
                self.change(folder, name, {index: value})
                self.refuses(folder, self.path("m.slm"), "--type", kind, names=[name] + parts)

    def test_largest_half(self):
        folder = self.copy()
        name = "model.language_model.layers.0.ffn_norm.weight"
        self.change(folder, name, {0: 65519.99, 1: -65504.0, 2: 1e-8, 3: 3e-8})
        convert(folder, self.path("m.slm"), "f16")
        values = container.read(self.path("m.slm"))[0][name].values()
        self.assertEqual(values[:4], [65504.0, -65504.0, 0.0, 2.0 ** -24])


class Twice(ConvertTest):
    def test_same_type_is_a_copy(self):
        for kind, options in (("f16", ()), ("int8", ()), ("int4", ()), ("int4", ("--vision-type", "f16"))):
            convert(SMALL, self.path("a.slm"), kind, *options)
            convert(self.path("a.slm"), self.path("b.slm"), kind, *options)
            self.assertEqual(read_bytes(self.path("a.slm")), read_bytes(self.path("b.slm")))

    def test_halves_become_integers(self):
        """f16 to int4 is the first rounding to integers: what a directory of halves gives too."""
        convert(DEMO, self.path("half.slm"), "f16")
        convert(self.path("half.slm"), self.path("a.slm"), "int4")
        convert(DEMO, self.path("b.slm"), "int4")
        self.assertEqual(read_bytes(self.path("a.slm")), read_bytes(self.path("b.slm")))

    def test_second_rounding(self):
        convert(SMALL, self.path("int4.slm"), "int4")
        convert(SMALL, self.path("int8.slm"), "int8")
        for source, options in (("int4.slm", ("--type", "int8")), ("int4.slm", ("--type", "f16")),
                                ("int8.slm", ("--type", "int4")),
                                ("int4.slm", ("--type", "int4", "--vision-type", "f16"))):
            self.refuses(self.path(source), self.path("m.slm"), *options,
                         names=["quantised a second time", "requantise", "tensor model."])

    def test_itself(self):
        convert(SMALL, self.path("m.slm"), "int8")
        self.refuses(self.path("m.slm"), self.path("m.slm"), "--type", "int8", names=["part of the model"])

    def test_requantise(self):
        name = "model.language_model.layers.0.feed_forward.w1.weight"
        columns = container.read_directory(SMALL)[name].shape[1]
        for first, second, pack in (("int4", "int8", container.pack_int8), ("int8", "int4", container.pack_int4)):
            convert(SMALL, self.path("a.slm"), first)
            convert(self.path("a.slm"), self.path("b.slm"), second, "--requantise")
            before, after = container.read(self.path("a.slm"))[0], container.read(self.path("b.slm"))[0]
            values = container.unpack(before[name], before[name + ".scale"], columns)
            self.assertEqual((after[name].data, after[name + ".scale"].data), pack(values, columns))
            run(MODEL_TOOL, "verify", self.path("b.slm"))


class Progress(ConvertTest):
    def test_bar(self):
        """A terminal sees a bar that is gone at the end; nothing else is told how far it is."""
        ours, theirs = pty.openpty()
        done = subprocess.run([MODEL_TOOL, "convert", "--type", "int8", SMALL, self.path("m.slm")], stderr=theirs,
                              stdout=subprocess.PIPE, timeout=60, check=True)
        os.close(theirs)
        shown = os.read(ours, 100000).decode()
        os.close(ours)
        bars = re.findall(r"\rconverting \[(#*)(\.*)\] +(\d+) %", shown)
        self.assertGreater(len(bars), 2, shown)
        for full, rest, percent in bars:
            self.assertEqual((len(full) + len(rest), len(full)), (40, int(percent) * 40 // 100))
        self.assertEqual(bars[-1][2], "100")
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.assertRegex(done.stdout.decode(), r"^.*m\.slm: \d+\.\d\d MiB\n$")
        self.assertNotIn("\r", convert(SMALL, self.path("n.slm"), "int8")[1])


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))


class FullDisk(ConvertTest):
    def test_file_size_limit(self):
        with open(self.path("m.slm"), "wb") as f:
            f.write(b"before")
        done = subprocess.run([MODEL_TOOL, "convert", "--type", "f16", SMALL, self.path("m.slm")],
                              stderr=subprocess.PIPE, preexec_fn=limit_file_size, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"m.slm", done.stderr)
        self.assertIn(os.strerror(errno.EFBIG).encode(), done.stderr)
        self.left_behind(self.path(), ["m.slm"])
        self.assertEqual(read_bytes(self.path("m.slm")), b"before")

    def test_small_file_system(self):
        small = self.path("small")
        os.makedirs(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", small],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("a file system of that size can only be mounted by root")
        try:
            self.refuses(SMALL, os.path.join(small, "m.slm"), "--type", "f16",
                         names=["m.slm", os.strerror(errno.ENOSPC)])
        finally:
            subprocess.run(["umount", small], check=True)


class FullSize(ConvertTest):
    """One checkpoint of the published size, 0.9 GB, for everything that takes a while."""

    # MiB of weights, published for other files of the same tensors and types.
    SIZES = {"f16": 856, "int8": 430, "int4": 271}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vlm-convert-", dir=os.environ.get("VLM_SCRATCH"))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = os.path.join(cls.folder.name, "model")
        run(MODEL_TOOL, "synth", "--preset", "lfm2.5-vl-450m", cls.model)

    def test_sizes_time_and_memory(self):
        tokenizer = os.path.getsize(os.path.join(self.model, "tokenizer.json"))
        for kind, size in self.SIZES.items():
            start = time.monotonic()
            process = subprocess.Popen([MODEL_TOOL, "convert", "--type", kind, "--threads", "2", self.model,
                                        self.path("m.slm")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            print("%s: %.1f s, %.1f s of CPU, %.0f MB" % (
                kind, time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
            found = (os.path.getsize(self.path("m.slm")) - tokenizer) / 2.0 ** 20
            self.assertLess(abs(found / size - 1), 0.01, kind)
            self.assertLess(usage.ru_maxrss * 1024, 1.5e9)
            # The time on the clock is up to the disk and to who else is at work.
            self.assertLess(usage.ru_utime + usage.ru_stime, 20)
        info = json.loads(run(MODEL_TOOL, "info", "--json", self.path("m.slm"))[0])
        self.assertEqual(info["published"]["name"], "LFM2.5-VL-450M")
        self.assertEqual(info["published"]["deviations"], [])
        os.remove(self.path("m.slm"))

    def has_begun(self, process):
        """Whether the new file is there: by a name beside its later one, or open without any."""
        folder = "/proc/%d/fd" % process.pid
        return os.listdir(self.path()) or any(os.readlink(os.path.join(folder, name)).startswith(self.path())
                                              for name in os.listdir(folder))

    def interrupt(self, number):
        """Sends a signal once the new file has begun."""
        process = subprocess.Popen([MODEL_TOOL, "convert", "--type", "int4", "--threads", "1", self.model,
                                    self.path("m.slm")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        begun = False
        while process.poll() is None and not begun:
            try:
                begun = self.has_begun(process)
            except FileNotFoundError:  # a descriptor that was closed meanwhile
                pass
            time.sleep(0.001)
        self.assertNotIn("m.slm", os.listdir(self.path()))
        process.send_signal(number)
        errors = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 128 + number, errors)
        self.assertIn("cancelled", errors)
        self.left_behind(self.path(), [])

    def test_ctrl_c(self):
        self.interrupt(signal.SIGINT)
        self.interrupt(signal.SIGTERM)


if __name__ == "__main__":
    main()
