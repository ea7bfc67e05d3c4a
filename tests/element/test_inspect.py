#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What gst-inspect-1.0 prints of the element and what docs/element.md says of it agree."""

import pathlib
import re
import subprocess
import sys
import unittest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "element.md"
INHERITED = {"name", "parent"}


def inspect():
    return subprocess.run(
        ["gst-inspect-1.0", "--no-colors", "vlmcaption"], check=True, capture_output=True, text=True
    ).stdout


def read_inspected():
    """Name -> (flags, default as printed) of every property."""
    properties = {}
    name = None
    section = ""
    for line in inspect().splitlines():
        if re.match(r"^[A-Z].*:", line):
            section = line
        if not section.startswith("Element Properties"):
            continue
        head = re.match(r"^  ([a-z][a-z0-9-]*)\s*: ", line)
        if head:
            name = head.group(1)
            properties[name] = ["", None]
        elif name and line.strip().startswith("flags:"):
            properties[name][0] = line.strip()
        elif name and "Default:" in line:
            properties[name][1] = line.split("Default:", 1)[1].strip()
    return {key: value for key, value in properties.items() if key not in INHERITED}


def read_rows(first_cell):
    """The cells of the table whose head row starts with this cell."""
    rows = []
    inside = False
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] == first_cell:
            inside = True
        elif inside and line.startswith("| ---"):
            continue
        elif inside and line.startswith("|"):
            rows.append(cells)
        else:
            inside = False
    return rows


def read_documented():
    """Name -> (default, changeable) of every property in the table."""
    properties = {}
    for cells in read_rows("Property"):
        for name in re.findall(r"`([a-z0-9-]+)`", cells[0]):
            assert name not in properties, name + " stands there twice"
            properties[name] = (cells[1], cells[2])
    return properties


def normalise(documented):
    """A default of the table as gst-inspect-1.0 prints it."""
    seconds = re.fullmatch(r"([0-9.]+) s", documented)
    if documented == "unset":
        return "null"
    if seconds:
        return str(int(float(seconds.group(1)) * 1e9))
    return documented.strip("`")


def printed(default):
    """The value in what gst-inspect-1.0 prints: 0, "auto", (0) "auto", or 0, "auto"."""
    quoted = re.search(r'"(.*)"', default)
    return quoted.group(1) if quoted else default.split()[0]


class Inspect(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.inspected = read_inspected()
        cls.documented = read_documented()

    def test_names(self):
        self.assertGreater(len(self.inspected), 20)
        self.assertEqual(sorted(self.inspected), sorted(self.documented))

    def test_defaults(self):
        for name, (default, changeable) in self.documented.items():
            if changeable == "read-only":
                continue
            with self.subTest(name):
                found = printed(self.inspected[name][1])
                expected = normalise(default)
                try:
                    self.assertEqual(float(found), float(expected))
                except ValueError:
                    self.assertEqual(found, expected)

    def test_changeable(self):
        for name, (_, changeable) in self.documented.items():
            flags = self.inspected[name][0]
            with self.subTest(name):
                if changeable == "read-only":
                    self.assertNotIn("writable", flags)
                else:
                    self.assertIn(changeable, flags)

    def test_signals_and_pads(self):
        text = inspect()
        tail = re.split(r"^Element (?:Actions|Signals):$", text, flags=re.MULTILINE)[1:]
        signals = re.findall(r'^  "([a-z-]+)"', "".join(tail), flags=re.MULTILINE)
        self.assertEqual(signals, [cells[0].strip("`") for cells in read_rows("Signal")])
        for pad in re.findall(r"(?:SRC|SINK) template: '([a-z_%]+)'", text):
            self.assertIn("`%s`" % pad, DOCS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
