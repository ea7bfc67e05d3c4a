# SPDX-License-Identifier: LGPL-2.1-or-later
"""A minute of video with twelve known scenes: every output says the same of it, and it is true."""

import json

from media import CAPTION, Sheet, caption, ffmpeg, probe, read_db, read_jsonl, read_srt, scenes
from toolkit import ToolTest, main, run

try:
    import webvtt
except ImportError:
    webvtt = None

SEEDS = range(1, 13)
LENGTH = 5.0
FRAME = 0.1


def seconds(time):
    """Of hh:mm:ss.fff; the package's own seconds are whole ones in some of its releases."""
    hours, minutes, rest = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


class Scenes(ToolTest):
    def check_cues(self, cues, expected, what):
        self.assertEqual([text for _, _, text in cues], [text for _, _, text in expected], what)
        for cue, truth in zip(cues, expected):
            self.assertAlmostEqual(cue[0], truth[0], delta=FRAME, msg=what)
            self.assertAlmostEqual(cue[1], truth[1], delta=FRAME, msg=what)

    def make_video(self):
        """The scenes of two seconds, shown for five; returns what is to be seen."""
        plain = self.path("plain.webm")
        truth = scenes(plain, SEEDS)
        ffmpeg("-itsscale", LENGTH / 2, "-i", plain, "-c", "copy", self.path("minute.webm"))
        return [(start * LENGTH / 2, end * LENGTH / 2, text) for start, end, text in truth]

    def check_search(self, truth):
        for start, _, text in truth:
            out, _ = run(CAPTION, "search", "--json", self.path("o.db"), text)
            hit = json.loads(out)[0]
            self.assertEqual(hit["text"], text)
            self.assertAlmostEqual(hit["start"], start, delta=FRAME)
            self.assertAlmostEqual(hit["end"], start + LENGTH, delta=FRAME)

    def test_twelve_scenes(self):
        truth = self.make_video()
        video = self.path("minute.webm")
        self.assertAlmostEqual(float(probe(video, "-show_format")["format"]["duration"]), 60, delta=FRAME)
        lines, errors = caption("--scenes", "--srt", self.path("o.srt"), "--vtt", self.path("o.vtt"),
                                "--jsonl", self.path("o.jsonl"), "--html", self.path("o.html"),
                                "--db", self.path("o.db"), "--mkv", self.path("o.mkv"), video)
        self.assertIn("1 captioned; 12 captions, 1:00 of video", errors)
        self.assertEqual([line.split("  ", 1)[1] for line in lines], [text for _, _, text in truth])

        self.check_cues(read_srt(self.path("o.srt")), truth, "srt")
        self.check_cues([(seconds(cue.start), seconds(cue.end), " ".join(cue.lines))
                         for cue in webvtt.read(self.path("o.vtt"))], truth, "vtt")
        vtt = probe(self.path("o.vtt"), "-show_entries", "packet=pts_time,duration_time")["packets"]
        self.assertEqual([float(p["pts_time"]) for p in vtt], [start for start, _, _ in read_srt(self.path("o.srt"))])

        objects = read_jsonl(self.path("o.jsonl"))
        ends = [o["pts"] for o in objects[1:]] + [60.0]
        self.check_cues([(o["pts"], end, o["text"]) for o, end in zip(objects, ends)], truth, "jsonl")
        for o in objects:
            self.assertEqual((o["file"], o["finish-reason"], o["model"], o["still"]), (video, "stop", "built-in", False))
            self.assertGreater(o["tokens"], 0)
            self.assertGreater(o["latency"], 0)
            self.assertIsNone(o["utc"])

        captions, inputs = read_db(self.path("o.db"))
        self.assertEqual([(pts, text) for _, pts, text in captions], [(o["pts"], o["text"]) for o in objects])
        self.assertAlmostEqual(inputs[video][0] / 1e9, 60, delta=FRAME)
        self.assertEqual(inputs[video][1], 1)

        sheet = Sheet(self.path("o.html")).cues
        self.assertEqual([(name, text) for name, _, text, _ in sheet], [(video, text) for _, _, text in truth])
        for (_, start, _, thumbnail), o in zip(sheet, objects):
            self.assertAlmostEqual(start, o["pts"], delta=0.001)
            self.assertTrue(thumbnail.startswith("/9j/"))
        self.assertEqual(len({thumbnail for _, _, _, thumbnail in sheet}), 12)

        streams = probe(self.path("o.mkv"), "-show_streams")["streams"]
        self.assertEqual([s["codec_type"] for s in streams], ["video", "subtitle"])
        packets = probe(self.path("o.mkv"), "-select_streams", "s", "-show_entries", "packet=pts_time")["packets"]
        self.assertEqual(len(packets), 12)
        for packet, (start, _, _) in zip(packets, truth):
            self.assertAlmostEqual(float(packet["pts_time"]), start, delta=FRAME)

        self.check_search(truth)


if __name__ == "__main__":
    main()
