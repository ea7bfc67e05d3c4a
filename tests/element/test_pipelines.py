#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pipelines of docs/element.md come to their end.

Left out are those that have none by themselves (the network camera) and those with an element that
is not installed here.
"""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "element.md"
PATIENCE = 120
INPUT = (
    "concat name=c ! jpegenc ! matroskamux ! filesink location=in.mkv "
    "videotestsrc pattern=ball num-buffers=60 ! c. videotestsrc pattern=red num-buffers=60 ! c."
)


def read_pipelines():
    section = DOCS.read_text().split("## Pipelines")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.S).group(1).replace("\\\n", " ")
    return [line for line in block.splitlines() if line.startswith("gst-launch-1.0 ")]


class Pipelines(unittest.TestCase):
    def test_documented(self):
        pipelines = [line for line in read_pipelines() if "udp" not in line]
        self.assertGreater(len(pipelines), 10)
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/hls")
            subprocess.run(["gst-launch-1.0", "-q", *shlex.split(INPUT)], cwd=folder, check=True)
            for line in pipelines:
                with self.subTest(line):
                    self.run_line(line, folder)

    def run_line(self, line, folder):
        done = subprocess.run(
            shlex.split(line),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        missing = re.search('no element "(.*)"', done.stdout)
        if missing and missing.group(1) != "vlmcaption":
            print(f"no {missing.group(1)}: {line}")
            return
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("WARN", done.stdout)


if __name__ == "__main__":
    unittest.main()
