# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model: tokens, against the goldens of the tokenizers library."""

import errno
import json
import os

from toolkit import GOLDEN, MODEL_TOOL, SMALL, ToolTest, main, run


def lines(texts):
    return "".join(json.dumps(text) + "\n" for text in texts)


class Tokens(ToolTest):
    def golden(self, name):
        """A directory that holds one golden tokenizer, and its cases."""
        folder = os.path.join(GOLDEN, "tokenizer")
        os.symlink(os.path.join(folder, name + ".tokenizer.json"), self.path("tokenizer.json"))
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as f:
            return self.path(), json.load(f)

    def test_tokenize_json(self):
        folder, golden = self.golden("base")
        texts, expected = [], []
        for entry in golden["encode"]:
            texts.append(entry["text"] if "text" in entry else bytes.fromhex(entry["hex"]).decode())
            expected.append(entry.get("special", entry["plain"]))
        self.assertGreater(len(texts), 2000)
        out, _ = run(MODEL_TOOL, "tokenize", "--json", folder, stdin=lines(texts))
        found = [[int(word) for word in line.split(" ")] if line else [] for line in out.decode().split("\n")]
        self.assertEqual(found.pop(), [])
        self.assertEqual(len(found), len(expected))
        for text, ids, wanted in zip(texts, found, expected):
            self.assertEqual(ids, wanted, repr(text))

    def test_plain_lines(self):
        texts = ["Hello  world", "", " a\tb ", "wörld <image> 日本", "no newline at the end"]
        plain, _ = run(MODEL_TOOL, "tokenize", SMALL, stdin="\n".join(texts))
        quoted, _ = run(MODEL_TOOL, "tokenize", "--json", SMALL, stdin=lines(texts))
        self.assertEqual(plain, quoted)
        self.assertEqual(plain.count(b"\n"), len(texts))
        back, _ = run(MODEL_TOOL, "detokenize", SMALL, stdin=plain)
        self.assertEqual(back.decode(), "\n".join(texts) + "\n")

    def test_round_trip(self):
        texts = ["a\nb\r\n", "\t \u00a0", "<|im_end|>text<image>", "😀 e\u0301", '"quoted" \\ back', "x" * 5000]
        ids, _ = run(MODEL_TOOL, "tokenize", "--json", SMALL, stdin=lines(texts))
        back, _ = run(MODEL_TOOL, "detokenize", "--json", SMALL, stdin=ids)
        self.assertEqual([json.loads(line) for line in back.decode().splitlines()], texts)

    def test_errors(self):
        for stdin, where in (('"a"\nb\n', "line 2"), ('17\n', "line 1"), ('"open\n', "line 1"), ('"a" "b"\n', "line 1")):
            _, errors = run(MODEL_TOOL, "tokenize", "--json", SMALL, stdin=stdin, status=1)
            self.assertIn(where, errors)
        for stdin in ("1 2\n3 x\n", "1\n-1\n", "1\n99999999999\n", "1\n1,2\n"):
            _, errors = run(MODEL_TOOL, "detokenize", SMALL, stdin=stdin, status=1)
            self.assertIn("line 2", errors)
        _, errors = run(MODEL_TOOL, "tokenize", self.path("nowhere"), status=1)
        self.assertIn("nowhere", errors)
        for wrong in ([], ["frobnicate", "x"], ["tokenize"], ["tokenize", "a", "b"], ["synth", "x"]):
            run(MODEL_TOOL, *wrong, status=2)
        _, errors = run(MODEL_TOOL, "synth", "--preset", "lfm9", self.path("x"), status=1)
        self.assertIn("lfm9", errors)
        self.assertIn("lfm2.5-vl-450m", errors)

    def test_nul_among_ids(self):
        for line in (b"1\0\n", b"\0\n", b"1 \0 2\n"):
            out, errors = run(MODEL_TOOL, "detokenize", SMALL, stdin=b"17\n" + line, status=1)
            self.assertIn("line 2", errors)
            self.assertIn("NUL", errors)
            self.assertEqual(out.count(b"\n"), 1)

    def test_unknown_ids(self):
        with open(os.path.join(SMALL, "tokenizer.json"), encoding="utf-8") as f:
            tokenizer = json.load(f)
        added = [token["id"] for token in tokenizer["added_tokens"]]
        size = 1 + max(added + list(tokenizer["model"]["vocab"].values()))
        last, _ = run(MODEL_TOOL, "detokenize", SMALL, stdin="%d\n" % (size - 1))
        self.assertGreater(len(last), 1)
        for unknown in (size, 2 ** 31 - 1, 2 ** 32 + 17):
            for options in ([], ["--json"]):
                out, errors = run(MODEL_TOOL, "detokenize", *options, SMALL, stdin="17\n17 %d\n" % unknown, status=1)
                self.assertIn("line 2", errors)
                self.assertIn("id %d " % unknown, errors)
                self.assertIn(" %d ids" % size, errors)
                self.assertEqual(out.count(b"\n"), 1)

    def test_unreadable_input(self):
        folder = os.open(self.path(), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        for command in ("tokenize", "detokenize"):
            _, errors = run(MODEL_TOOL, command, SMALL, stdin=folder, status=1)
            self.assertIn("standard input: " + os.strerror(errno.EISDIR), errors)
            self.assertEqual(run(MODEL_TOOL, command, SMALL), (b"", ""))

    def test_output_full(self):
        self.loses_output(MODEL_TOOL, "--version")
        for command, line in (("tokenize", "word\n"), ("detokenize", "17\n")):
            # Held back to the end, and far more than is held back.
            self.loses_output(MODEL_TOOL, command, SMALL, stdin=line)
            self.loses_output(MODEL_TOOL, command, SMALL, stdin=line * 20000)


if __name__ == "__main__":
    main()
