# SPDX-License-Identifier: LGPL-2.1-or-later
"""tools/first-contact on small models: what is sound is told to be, and what is not is named."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from toolkit import DEMO_MODEL, GOLDEN, MODEL_TOOL, SMALL

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "first-contact")


class FirstContact(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.report = os.path.join(self.directory, "report.md")

    def copy(self, model=SMALL):
        path = os.path.join(self.directory, "model")
        shutil.copytree(model, path)
        return path

    def run_on(self, model, status):
        done = subprocess.run(
            [sys.executable, SCRIPT, "--programs", os.path.dirname(MODEL_TOOL), "--report", self.report, model],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        out = done.stdout.decode("utf-8", "replace")
        self.assertEqual(done.returncode, status, out)
        with open(self.report, encoding="utf-8") as f:
            return out, f.read()

    def change(self, model, name, change):
        path = os.path.join(model, name)
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
        change(value)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(value, f)

    def test_sound(self):
        out, report = self.run_on(SMALL, 0)
        self.assertIn("normalizer: null", out)
        self.assertIn("ignore_merges: False", out)
        self.assertIn("the one of the 65k vocabulary", out)
        self.assertRegex(out, r"ok +0 of \d+ pieces")
        self.assertRegex(out, r"skipped +golden ids: they are for 65536 ids, this vocabulary has \d+")
        self.assertRegex(out, r"ok +disc\.png: ")
        self.assertIn('"family": "lfm2_vl"', report)

    def test_one_file(self):
        path = os.path.join(self.directory, "m.slm")
        subprocess.run([MODEL_TOOL, "convert", "--type", "int8", DEMO_MODEL, path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        out, _ = self.run_on(path, 0)
        self.assertRegex(out, r"ok +slm, lfm2_vl, ")
        self.assertIn("no tokenizer.json beside the model", out)

    def test_text_only(self):
        out, _ = self.run_on(os.path.join(GOLDEN, "models", "text-only"), 0)
        self.assertRegex(out, r"skipped +a model for text only")

    def test_golden_ids(self):
        """A vocabulary of the published size that is not the published one."""
        model = self.wide_vocabulary()
        out, report = self.run_on(model, 1)
        self.assertRegex(out, r'FAILED +ids of "Hello, world!"')
        self.assertIn("expected [36309, 521, 2031, 510]", report)

    def wide_vocabulary(self):
        """A tiny model whose vocabulary is filled up to the size of the published one."""
        path = os.path.join(self.directory, "wide")
        subprocess.run([MODEL_TOOL, "synth", "--preset", "tiny", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.change(path, "config.json", lambda config: config["text_config"].update(vocab_size=65536))

        def fill(tokenizer):
            vocabulary = tokenizer["model"]["vocab"]
            used = set(vocabulary.values()) | {token["id"] for token in tokenizer["added_tokens"]}
            vocabulary.update({"zz%d" % i: i for i in range(65536) if i not in used})

        self.change(path, "tokenizer.json", fill)
        self.widen_embedding(os.path.join(path, "model.safetensors"))
        return path

    def widen_embedding(self, path):
        with open(path, "rb") as f:
            data = f.read()
        length = struct.unpack("<Q", data[:8])[0]
        header, payload = json.loads(data[8:8 + length]), data[8 + length:]
        parts, offset = [], 0
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            part = payload[slice(*entry["data_offsets"])]
            if name.endswith("embed_tokens.weight"):
                rows, columns = entry["shape"]
                part += bytes(len(part) // rows * (65536 - rows))
                entry["shape"] = [65536, columns]
            entry["data_offsets"] = [offset, offset + len(part)]
            offset += len(part)
            parts.append(part)
        text = json.dumps(header).encode()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))

    def test_regex(self):
        model = self.copy()

        def change(tokenizer):
            tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"

        self.change(model, "tokenizer.json", change)
        out, report = self.run_on(model, 0)
        self.assertIn("not one that we know", out)
        self.assertIn(r"\p{L}+|\p{N}|[^\p{L}\p{N}]+", report)

    def test_template(self):
        model = self.copy()
        with open(os.path.join(model, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write("{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}")
        try:
            import jinja2  # noqa: F401
        except ImportError:
            out, _ = self.run_on(model, 0)
            self.assertRegex(out, r"skipped +the template is not rendered")
            return
        out, report = self.run_on(model, 1)
        self.assertIn("the template is not one that we know", out)
        self.assertIn("[user] Hi.", report)

    def test_damage(self):
        model = self.copy()
        path = os.path.join(model, "model.safetensors")
        with open(path, "r+b") as f:
            f.seek(-2, os.SEEK_END)
            f.write(b"\xff\x7f")  # a NaN in both halves and bfloat16
        out, report = self.run_on(model, 1)
        self.assertRegex(out, r"FAILED +verify found problems")
        self.assertIn("NaN", report)

    def test_no_model(self):
        out, _ = self.run_on(os.path.join(self.directory, "nothing"), 1)
        self.assertRegex(out, r"FAILED +it is not taken: .*nothing")


if __name__ == "__main__":
    unittest.main()
