# SPDX-License-Identifier: LGPL-2.1-or-later
"""SRT and VTT files, read by other people's parsers: texts and times come back as they went in."""

import html
import json
import os
import re
import shutil
import subprocess
import unicodedata
import unittest

from toolkit import ToolTest, main, run

try:
    import webvtt
except ImportError:
    webvtt = None
try:
    import srt
except ImportError:
    srt = None
try:
    import gi
    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
    Gst.init(None)
except (ImportError, ValueError):
    Gst = None

WRITE_CUES = os.environ["VLM_WRITE_CUES"]
FFMPEG, FFPROBE = shutil.which("ffmpeg"), shutil.which("ffprobe")
WORD_JOINER = "\u2060"

# What is markup somewhere, looks like a time, or is hard to break.
TEXTS = [
    "A red circle is left of a blue square.",
    "Two lines,\nthe second below the first.",
    "A sign says <i>open</i> & <b>closed</b>, <font color=red>red</font>, < i>not</ i>",
    "a --> b --> c",
    "&lt;i&gt; &amp; &nbsp; &#60; &quot;",
    "{\\an8}top {b}bold{/b} {y:i}old",
    "C:\\new\\Nothing\\hard",
    "00:00:01,000 --> 00:00:02,000",
    "42",
    "blank\n\n\n  \nlines\r\n\r\nof every \u2028 \u2029 kind\x85\x0b\x0cthere",
    "control\x01\x02\x1b[31mcharacters\x7f\x9f",
    "A sentence that is so long that it takes more than a single line of forty-two columns, and then some.",
    "一辆红色的汽车停在白色的房子旁边,一只猫坐在窗台上看着街道。街道上没有人,只有树影。",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "NOTE this is no comment",
    "STYLE ::cue { color: red }",
    "WEBVTT",
    "emoji 👩‍👩‍👧 and عربي text, שלום",
    "- dash",
    "ends with space   ",
]


def cues():
    """Of uneven lengths, with fractions of milliseconds, and beyond an hour."""
    result, at = [], 1_000_400_000
    for i, text in enumerate(TEXTS):
        end = at + 1_733_333_333 + i * 600_000_000_000 // 3
        result.append({"pts": at, "end": end, "text": text})
        at = end if i % 3 else end + 999_600_000
    return result


def ms(ns):
    return (ns + 500_000) // 1_000_000


def columns(line):
    return sum(0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in line)


def clean(text):
    """What is left of a text when it is shown, without white space."""
    text = "".join(c for c in text if unicodedata.category(c) != "Cc" or c.isspace())
    return "".join(text.split())


def seen(text):
    """The same of a text in a subtitle: without joiners, and with plain braces."""
    return "".join(text.replace(WORD_JOINER, "").replace("｛", "{").replace("｝", "}").split())


def texts_of_ffmpeg(path):
    """The text of each cue in ASS, as ffmpeg understands the file."""
    out = subprocess.run([FFMPEG, "-v", "error", "-i", path, "-f", "ass", "-"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, check=True).stdout.decode("utf-8")
    lines = out.replace("\r\n", "\n").split("\n")
    return [line.split(",", 9)[9] for line in lines if line.startswith("Dialogue:")]


def texts_of_gstreamer(path):
    """The text of each cue in Pango's markup, as subparse understands the file."""
    pipeline = Gst.parse_launch("filesrc name=source ! subparse ! text/x-raw,format=pango-markup ! appsink name=sink sync=false")
    pipeline.get_by_name("source").set_property("location", path)
    pipeline.set_state(Gst.State.PLAYING)
    sink, result = pipeline.get_by_name("sink"), []
    while True:
        sample = sink.emit("try-pull-sample", 5 * Gst.SECOND)
        if sample is None:
            break
        buffer = sample.get_buffer()
        result.append(buffer.extract_dup(0, buffer.get_size()).decode("utf-8"))
    pipeline.set_state(Gst.State.NULL)
    return result


def packets(path):
    """(start, end) in ms of each packet of subtitles, says ffprobe."""
    out = run(FFPROBE, "-v", "error", "-show_packets", "-of", "json", path)[0]
    return [(round(float(p["pts_time"]) * 1000), round(float(p["pts_time"]) * 1000 + float(p["duration_time"]) * 1000))
            for p in json.loads(out)["packets"]]


class Subtitles(ToolTest):
    def setUp(self):
        super().setUp()
        self.cues = cues()
        self.times = [(ms(cue["pts"]), ms(cue["end"])) for cue in self.cues]

    def write(self, kind, content=None):
        path = self.path("out." + kind)
        run(WRITE_CUES, kind, path, stdin=json.dumps(content or self.cues))
        return path

    def read(self, path):
        with open(path, encoding="utf-8", newline="") as f:
            text = f.read()
        self.assertFalse(text.startswith("\ufeff"))
        self.assertNotIn("\r", text)
        return text

    def blocks(self, text, point):
        """(start, end, lines) of every block of an SRT or VTT file, by the letter of the grammar."""
        result = []
        for block in text.split("\n\n"):
            lines = block.rstrip("\n").split("\n")
            if point == ",":
                self.assertEqual(lines.pop(0), str(len(result) + 1))
            time = r"(\d\d):([0-5]\d):([0-5]\d)%s(\d\d\d)" % re.escape(point)
            match = re.fullmatch(time + " --> " + time, lines.pop(0))
            self.assertIsNotNone(match, block)
            numbers = [int(group) for group in match.groups()]
            start, end = (((h * 60 + m) * 60 + s) * 1000 + t for h, m, s, t in (numbers[:4], numbers[4:]))
            self.assertTrue(lines, block)
            if point == ".":
                lines = [self.vtt_text(line) for line in lines]
            for line in lines:
                self.assertTrue(line.strip(), block)
                self.assertLessEqual(columns(line), 42, line)
            result.append((start, end, lines))
        return result

    def vtt_text(self, line):
        self.assertIsNone(re.search(r"[<>]|&(?!amp;|lt;|gt;)", line))
        return line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

    def check_times(self, found):
        self.assertEqual(found, self.times)
        for (_, end), (start, _) in zip(found, found[1:]):
            self.assertLessEqual(end, start)

    def test_srt_grammar(self):
        blocks = self.blocks(self.read(self.write("srt")), ",")
        self.check_times([block[:2] for block in blocks])
        for cue, (_, _, lines) in zip(self.cues, blocks):
            self.assertEqual(seen(" ".join(lines)), clean(cue["text"]))
            # What no player can take for a tag, a command or an entity.
            self.assertIsNone(re.search(r"<[^\u2060]|[{}]|\\[^\u2060]|&#?\w+;|-->", " ".join(lines)), lines)

    def test_vtt_grammar(self):
        text = self.read(self.write("vtt"))
        self.assertTrue(text.startswith("WEBVTT\n\n"))
        blocks = self.blocks(text[len("WEBVTT\n\n"):], ".")
        self.check_times([block[:2] for block in blocks])
        for cue, (_, _, lines) in zip(self.cues, blocks):
            self.assertEqual("".join("".join(lines).split()), clean(cue["text"]))

    @unittest.skipUnless(webvtt, "needs python3-webvtt")
    def test_vtt_webvtt(self):
        captions = webvtt.read(self.write("vtt"))
        self.assertEqual(len(captions), len(self.cues))
        for (start, end), cue, caption in zip(self.times, self.cues, captions):
            # That parser gives whole seconds.
            self.assertEqual(int(caption.start_in_seconds), start // 1000)
            self.assertEqual(int(caption.end_in_seconds), end // 1000)
            self.assertEqual(clean(self.vtt_text(caption.raw_text)), clean(cue["text"]))

    @unittest.skipUnless(srt, "needs python3-srt")
    def test_srt_srt(self):
        with open(self.write("srt"), encoding="utf-8") as f:
            found = list(srt.parse(f.read(), ignore_errors=False))
        self.check_times([tuple(round(t.total_seconds() * 1000) for t in (cue.start, cue.end)) for cue in found])
        for cue, parsed in zip(self.cues, found):
            self.assertEqual(seen(parsed.content), clean(cue["text"]))

    @unittest.skipUnless(FFPROBE, "needs ffmpeg")
    def test_ffprobe(self):
        for kind in ("srt", "vtt"):
            self.check_times(packets(self.write(kind)))

    @unittest.skipUnless(FFMPEG, "needs ffmpeg")
    def test_srt_ffmpeg(self):
        """Translated to ASS, where every tag that was understood would be gone or become a command."""
        found = texts_of_ffmpeg(self.write("srt"))
        self.assertEqual(len(found), len(self.cues))
        for cue, text in zip(self.cues, found):
            self.assertNotIn("{", text)
            self.assertEqual(seen(text.replace("\\N", " ")), clean(cue["text"]))

    @unittest.skipUnless(FFMPEG, "needs ffmpeg")
    def test_vtt_ffmpeg(self):
        found = texts_of_ffmpeg(self.write("vtt"))
        self.assertEqual(len(found), len(self.cues))
        for cue, text in zip(self.cues, found):
            if "\\" not in cue["text"] and "{" not in cue["text"]:
                self.assertEqual(seen(text.replace("\\N", " ")), clean(cue["text"]))

    @unittest.skipUnless(Gst, "needs python3-gst-1.0")
    def test_srt_gstreamer(self):
        """GStreamer's parser makes Pango's markup of it; there must be none but escapes."""
        found = texts_of_gstreamer(self.write("srt"))
        self.assertEqual(len(found), len(self.cues))
        for cue, text in zip(self.cues, found):
            self.assertNotIn("<", text)
            self.assertEqual(seen(html.unescape(text)), clean(cue["text"]))

    def test_unwritable(self):
        _, errors = run(WRITE_CUES, "srt", self.path("no", "such.srt"), stdin="[]", status=1)
        self.assertIn("such.srt", errors)
        self.assertEqual(os.listdir(self.path()), [])


if __name__ == "__main__":
    main()
