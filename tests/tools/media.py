# SPDX-License-Identifier: LGPL-2.1-or-later
"""Videos and pictures for the tests of vlm-caption, and what it says of them."""

import html.parser
import json
import os
import re
import shutil
import sqlite3
import subprocess
import urllib.parse

from toolkit import CAPTION, run, write_rgb_png

SCENE_VIDEO = os.environ.get("VLM_SCENE_VIDEO")
FFMPEG, FFPROBE = shutil.which("ffmpeg"), shutil.which("ffprobe")

# What the built-in model calls a picture of one colour.
PLAIN = {"red": "A plain red picture.", "green": "A plain green picture.", "blue": "A plain blue picture.",
         "black": "A plain black picture.", "white": "A plain white picture."}
RGB = {"red": b"\xff\0\0", "green": b"\0\xff\0", "blue": b"\0\0\xff", "black": b"\0\0\0", "white": b"\xff\xff\xff"}


def ffmpeg(*args):
    """Runs ffmpeg; the last argument is the file that it makes, which is returned."""
    run(FFMPEG, "-v", "error", "-y", "-nostdin", *[str(arg) for arg in args])
    return args[-1]


def caption(*args, **kwargs):
    """vlm-caption with the built-in model; returns its lines and errors."""
    out, errors = run(CAPTION, *[str(arg) for arg in args], timeout=600, **kwargs)
    return out.decode().splitlines(), errors


def start(*args, **kwargs):
    """The same, in the background."""
    return subprocess.Popen([CAPTION, *[str(arg) for arg in args]], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def colours(path, names, seconds=1, rate=25, size="64x64", options=(), inputs=(), filters=""):
    """A video that shows each colour for so many seconds."""
    sources = []
    for name in names:
        sources += ["-f", "lavfi", "-i", "color=c=0x%s:s=%s:r=%s:d=%s" % (RGB[name].hex(), size, rate, seconds)]
    graph = "".join("[%d:v]" % i for i in range(len(names))) + "concat=n=%d:v=1" % len(names) + filters + "[v]"
    more = ["-map", "%d:a" % len(names)] if inputs else []
    return ffmpeg(*sources, *inputs, "-filter_complex", graph, "-map", "[v]", *more, *options, path)


H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")


def scenes(path, seeds):
    """Drawn scenes of two seconds each; returns [(start, end, caption)] in seconds."""
    truth = str(path) + ".tsv"
    run(SCENE_VIDEO, path, truth, *[str(seed) for seed in seeds])
    with open(truth, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return [(seconds(start), seconds(end), text) for start, end, text in rows]


def picture(path, colour, width=16, height=16):
    write_rgb_png(path, width, height, RGB[colour] * (width * height))
    return path


def turn(source, path):
    """Copies an MP4 file and has it shown turned by 90 degrees clockwise: by the matrix of its track."""
    with open(source, "rb") as f:
        data = f.read()
    one, minus, end = b"\0\1\0\0", b"\xff\xff\0\0", b"\x40\0\0\0"
    nothing = bytes(4)
    level = one + nothing * 3 + one + nothing * 3 + end
    turned = nothing + one + nothing + minus + nothing * 4 + end
    at = data.index(level, data.index(b"tkhd"))
    with open(path, "wb") as f:
        f.write(data[:at] + turned + data[at + len(level):])


def seconds(text):
    """0:00:02.040 as a number."""
    value = 0
    for part in text.replace(",", ".").split(":"):
        value = value * 60 + float(part)
    return value


# ---- Outputs, as what they say ---------------------------------------------------------------


def read_jsonl(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def probe(path, *entries):
    """What ffprobe says of a file."""
    out, _ = run(FFPROBE, "-v", "error", "-of", "json", *entries, str(path))
    return json.loads(out)


def read_srt(path):
    """[(start, end, text)]; the times by ffprobe."""
    packets = probe(path, "-show_entries", "packet=pts_time,duration_time").get("packets", [])
    with open(path, encoding="utf-8") as f:
        blocks = [block for block in f.read().split("\n\n") if block.strip()]
    texts = [" ".join(block.strip("\n").split("\n")[2:]) for block in blocks]
    assert len(texts) == len(packets), (texts, packets)
    return [(float(packet["pts_time"]), float(packet["pts_time"]) + float(packet["duration_time"]), text)
            for packet, text in zip(packets, texts)]


class Sheet(html.parser.HTMLParser):
    """The captions of a contact sheet: [(input, start in seconds, text, thumbnail)]."""

    def __init__(self, path):
        super().__init__()
        self.cues, self.stack, self.input, self.start, self.thumbnail = [], [], "", 0, None
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.stack.append((tag, attributes.get("class")))
        if tag == "section":
            self.input = ""
        elif tag == "a" and "frame" in attributes.get("class", ""):
            at = re.search(r"#t=([\d.]+)$", attributes["href"])
            self.start, self.thumbnail = float(at[1]) if at else 0.0, None
        elif tag == "img":
            self.thumbnail = attributes["src"].split(",", 1)[1]
            self.stack.pop()
        elif tag in ("meta", "input"):
            self.stack.pop()

    def handle_endtag(self, tag):
        if self.stack:
            self.stack.pop()

    def handle_data(self, data):
        if not self.stack:
            return
        if self.stack[-1][0] == "bdi" and ("section", None) in self.stack:
            self.input += data
        elif self.stack[-1] == ("p", "text"):
            self.cues.append((self.input, self.start, data, self.thumbnail))


def read_db(path):
    """[(file, pts in seconds, text)], and {file: (end, state)}."""
    db = sqlite3.connect("file:%s?mode=ro" % urllib.parse.quote(str(path)), uri=True)
    captions = [(name, pts / 1e9, text) for name, pts, text in db.execute(
        "SELECT file, pts, text FROM captions c JOIN inputs i ON i.id = c.input ORDER BY file, pts")]
    inputs = {name: (end, state) for name, end, state in db.execute('SELECT file, "end", state FROM inputs')}
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    n_indexed = db.execute("SELECT count(*) FROM captions_fts WHERE captions_fts MATCH 'a*'").fetchone()[0]
    db.close()
    assert n_indexed == sum(bool(re.search(r"\ba", text, re.I)) for _, _, text in captions), n_indexed
    return captions, inputs
