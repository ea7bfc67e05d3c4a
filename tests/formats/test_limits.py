# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of limits in docs/formats.md says what the constants in the code say."""

import os
import re
import sys
import unittest

ROOT = os.environ["VLM_SOURCE_DIR"]
ROW = re.compile(r"^\| (.+) \| (\d+)( MiB)? \| `(\w+)` in `([\w/.-]+)` \|$")


def constant(path, name):
    """The value of #define NAME, of decimal numbers, shifts and brackets."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        found = re.search(r"^#define %s (.+?)(?: /\*.*)?$" % name, f.read(), re.M)
    text = re.sub(r"(\d)u\b", r"\1", found.group(1))
    if not re.fullmatch(r"[\d<() ]+", text):
        raise AssertionError("%s: %s is %s" % (path, name, text))
    return eval(text, {"__builtins__": {}})


class Limits(unittest.TestCase):
    def test_table(self):
        with open(os.path.join(ROOT, "docs", "formats.md"), encoding="utf-8") as f:
            section = f.read().split("\n## Limits\n")[1].split("\n## ")[0]
        lines = [line for line in section.splitlines() if line.startswith("|")][2:]
        self.assertGreater(len(lines), 30)
        for line in lines:
            with self.subTest(line):
                row = ROW.match(line)
                self.assertIsNotNone(row)
                _, number, unit, name, path = row.groups()
                self.assertEqual(int(number) << (20 if unit else 0), constant(path, name))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
