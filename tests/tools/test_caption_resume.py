# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs that are killed or interrupted at any moment and gone on with end as undisturbed ones do."""

import os
import random
import signal
import subprocess
import time

import webvtt

from media import (H264, Sheet, caption, colours, picture, read_db, read_jsonl, read_srt, start)
from toolkit import ToolTest, main

NAMES = ["red", "green", "blue", "black", "white", "red"]
KILLS = 10
# After so many in a row a run is let through, however slow the machine is.
IN_A_ROW = 6


class Resume(ToolTest):
    """Two videos and a picture; the second one starts late and has no index to seek in."""

    def setUp(self):
        super().setUp()
        self.inputs = [self.path("a.mp4"), self.path("b.ts"), self.path("c.png")]
        colours(self.inputs[0], NAMES, seconds=0.8, options=(*H264, "-g", "20"))
        colours(self.inputs[1], NAMES[::-1], seconds=0.8, options=(*H264, "-g", "10", "-output_ts_offset", "7"))
        picture(self.inputs[2], "blue")

    def arguments(self, folder, *options):
        out = self.path(folder)
        os.makedirs(out, exist_ok=True)
        return ["--jsonl", out + "/o.jsonl", "--srt", out + "/", "--vtt", out + "/", "--html", out + "/o.html",
                *options, *self.inputs]

    def read(self, folder, db=True):
        """Everything that a run left, but for what differs between any two runs."""
        out = self.path(folder)
        rows = [{key: value for key, value in row.items() if key != "latency"} for row in read_jsonl(out + "/o.jsonl")]
        # With several jobs, or one store behind the other, only the order within an input is fixed.
        rows.sort(key=lambda row: (row["file"], row["pts"]))
        result = {"jsonl": rows, "html": Sheet(out + "/o.html").cues}
        for name in ("a", "b"):
            result["srt " + name] = read_srt("%s/%s.srt" % (out, name))
            result["vtt " + name] = [(cue.start, cue.end, cue.text) for cue in webvtt.read("%s/%s.vtt" % (out, name))]
        if db:
            result["db"] = read_db(out + "/o.db")
        return result

    def check_equal(self, got, expected):
        self.assertEqual(set(got), set(expected))
        for key, value in expected.items():
            self.assertEqual(got[key], value, key)

    def kill_until_done(self, folder, longest, *options):
        """Starts and kills a run at random moments until one gets through; returns how many did not."""
        kills, resume = 0, ()
        while True:
            process = start(*self.arguments(folder, *options, *resume))
            try:
                process.communicate(timeout=random.uniform(0.05, longest) if kills < IN_A_ROW else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            if process.returncode == 0:
                return kills
            self.assertEqual(process.returncode, -signal.SIGKILL)
            kills += 1
            resume = ("--resume",)

    def disturb(self, *options):
        """Many kills; each time the outcome is that of a run without any."""
        began = time.monotonic()
        caption(*self.arguments("whole", *options))
        longest = (time.monotonic() - began) * 0.8
        expected = self.read("whole", "--db" in options)
        kills, n = 0, 0
        while kills < KILLS:
            folder = "killed-%d" % n
            kills += self.kill_until_done(folder, longest, *[str(o).replace("whole", folder) for o in options])
            self.check_equal(self.read(folder, "--db" in options), expected)
            n += 1
            self.assertLess(n, 10 * KILLS)

    def test_kill_every(self):
        random.seed(7)
        self.disturb("--every", "0.3", "--db", self.path("whole", "o.db"))

    def test_kill_scenes(self):
        """Where the JSON Lines are all that is left, thumbnails too."""
        random.seed(8)
        self.disturb("--scenes", "--jobs", "2")


if __name__ == "__main__":
    main()
