# SPDX-License-Identifier: LGPL-2.1-or-later
"""The options of vlm-caption, each by what it does."""

import base64
import io
import json
import os
import pty
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time

from media import (H264, PLAIN, Sheet, caption, colours, ffmpeg, picture, probe, read_db, read_jsonl, read_srt,
                   scenes, start, turn)
from toolkit import CAPTION, DEMO_MODEL, ToolTest, main, run

try:
    from PIL import Image
except ImportError:
    Image = None

NAMES = ["red", "green", "blue"]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class OptionTest(ToolTest):
    def video(self, name="a.mkv", names=NAMES, seconds=1, **kwargs):
        kwargs.setdefault("options", H264)
        return colours(self.path(name), names, seconds, **kwargs)

    def times(self, *args):
        """[(seconds, text)] of one video."""
        lines, _ = caption("-q", *args)
        return [(float(line.split("  ")[0][5:]), line.split("  ", 1)[1]) for line in lines]

    def wrong(self, *args, names):
        _, errors = caption(*args, status=2)
        for name in names:
            self.assertIn(name, errors)


class Frames(OptionTest):
    def check(self, found, expected):
        self.assertEqual([time for time, _ in found], expected)
        for time, text in found:
            self.assertEqual(text, PLAIN[NAMES[int(time)]], time)

    def test_selection(self):
        video = self.video()
        self.check(self.times(video), [0, 2])
        self.check(self.times("--every", "1s", video), [0, 1, 2])
        self.check(self.times("-e", "500ms", video), [0, 0.5 + 0.02, 1, 1.5 + 0.02, 2, 2.5 + 0.02])
        self.check(self.times("--fps", "1", video), [0, 1, 2])
        self.assertEqual(len(self.times("--fps", "25", video)), 75)
        self.check(self.times("--scenes", video), [0, 1, 2])
        # Only from black to white changes so much.
        self.check(self.times("--scene-change", "1", video), [0])

    def test_range(self):
        for name, options in (("a.mkv", ()), ("a.mp4", ("-output_ts_offset", "2")), ("a.ts", ())):
            video = self.video(name, options=(*H264, "-g", "25", *options))
            with self.subTest(name):
                self.check(self.times("--every", "1s", "--from", "0:00:01", video), [1, 2])
                self.check(self.times("--every", "1s", "--from", "500ms", "--to", "2.2", video), [0.5, 1.52])
                self.check(self.times("--every", "1s", "--to", "1s", video), [0])
                self.check(self.times("--scenes", "--from", "1.5", video), [1.5, 2])
        _, errors = caption("--from", "1h", video, status=1)
        self.assertIn("no frame in the part that was asked for", errors)

    def test_far_range(self):
        """Where playing begins with a seek."""
        names = NAMES * 3
        video = self.video(names=names, options=(*H264, "-g", "25"))
        for way in (("--every", "1s"), ("--scenes",)):
            found = self.times(*way, "--from", "6", "--to", "8.5", video)
            self.assertEqual(found, [(6 + i, PLAIN[names[6 + i]]) for i in range(3)])

    def test_wrong(self):
        video = self.path("a.mkv")
        for option, values in (("every", ("0", "-1", "soon", "1x", "nan", "1:60", "")), ("fps", ("0", "-2", "many", "1e9")),
                               ("scene-change", ("0", "2", "x")), ("from", ("-1",)), ("to", ("0",)), ("jobs", ("0", "65")),
                               ("min-cue", ("x",)), ("max-cue", ("0.5s",))):
            for value in values:
                with self.subTest(option, value=value):
                    more = ("--min-cue", "1s") if option == "max-cue" else ()
                    self.wrong("--%s=%s" % (option, value), *more, video, names=["--%s is %s, expected" % (option, value)])
        self.wrong("--every", "1", "--fps", "1", video, names=["do not go together"])
        self.wrong("--resume", video, names=["--jsonl or --db"])
        self.wrong("--resume", "--overwrite", "--db", "x", video, names=["do not go together"])
        self.wrong("--srt", "x", "-p", "Hi", names=["--srt needs an INPUT"])
        self.wrong("--srt", "x", "--timings", video, names=["--srt does not go together with --dump and --timings"])


class Model(OptionTest):
    def test_words(self):
        video = self.path("a.webm")
        truth = scenes(video, [1])
        jsonl = self.path("o.jsonl")
        caption("--model", DEMO_MODEL, "--jsonl", jsonl, "--to", "1", video)
        (row,) = read_jsonl(jsonl)
        self.assertEqual((row["text"], row["model"], row["finish-reason"]), (truth[0][2], DEMO_MODEL, "stop"))
        caption("--max-tokens", "4", "--jsonl", jsonl, "--overwrite", "--to", "1", video)
        (row,) = read_jsonl(jsonl)
        self.assertEqual((row["tokens"], row["finish-reason"], row["model"]), (4, "length", "built-in"))
        self.assertTrue(row["text"].endswith("\N{HORIZONTAL ELLIPSIS}"))

    def test_no_model(self):
        nowhere = self.path("nowhere")
        _, errors = caption("--model", nowhere, picture(self.path("a.png"), "red"), picture(self.path("b.png"), "red"),
                            status=1)
        self.assertIn(nowhere, errors)
        self.assertIn("b.png: not captioned after the error above", errors)


class Inputs(OptionTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("d", "sub"))
        for name, colour in (("d/b.png", "blue"), ("d/a.png", "red"), ("d/sub/c.png", "green"), ("e [1].png", "black")):
            picture(self.path(name), colour)
        self.expected = {name: "%s: %s" % (self.path(name), PLAIN[colour])
                         for name, colour in (("d/a.png", "red"), ("d/b.png", "blue"), ("d/sub/c.png", "green"),
                                              ("e [1].png", "black"))}

    def check(self, args, names, **kwargs):
        lines, _ = caption("-q", *args, **kwargs)
        self.assertEqual(lines, [self.expected[name] for name in names])

    def test_kinds(self):
        folder = ["d/a.png", "d/b.png", "d/sub/c.png"]
        self.check([self.path("d")], folder)
        self.check([self.path("e [1].png"), self.path("d/")], ["e [1].png", *folder])
        self.check([self.path("d/*.png")], folder[:2])
        # Each is there once, in the place of the first.
        self.check([self.path("d/b.png"), self.path("d"), self.path("d", "sub", "..", "a.png")],
                   ["d/b.png", "d/a.png", "d/sub/c.png"])
        self.check(["-"], ["d/b.png", "e [1].png"], stdin="%s\n\n%s" % (self.path("d/b.png"), self.path("e [1].png")))
        lines, _ = caption("-q", "file://" + self.path("e%20[1].png"))
        self.assertEqual(lines, [PLAIN["black"]])

    def test_names_of_bytes(self):
        shutil.copy(self.path("d/a.png"), os.path.join(os.fsencode(self.scratch.name), b"d", b"\xff\xfe.png"))
        lines, _ = caption("-q", self.path("d"))
        self.assertEqual(len(lines), 4)

    def test_nothing(self):
        os.mkdir(self.path("empty"))
        for word, reason in ((self.path("empty"), "there is nothing in this folder"), (self.path("*.gone"), "No such file"),
                             ("nothing://here", "nothing"), (self.path("gone.png"), "No such file")):
            _, errors = caption(word, status=1)
            self.assertIn(word + ": ", errors)
            self.assertIn(reason, errors)
        with open(self.path("empty", "notes.txt"), "w", encoding="utf-8") as f:
            f.write("words and words\n" * 10)
        _, errors = caption(self.path("empty"), status=1)
        self.assertIn("neither a picture nor a video", errors)

    def test_jobs(self):
        alone, _ = caption("-q", self.path("d"))
        several, _ = caption("-q", "--jobs", "3", self.path("d"))
        self.assertEqual(sorted(several), alone)

    def test_turned_photo(self):
        """What a camera that was held upright says in a JPEG's Exif."""
        video = self.path("a.webm")
        truth = scenes(video, [7])
        for name, filters in (("level.jpg", "null"), ("lying.jpg", "transpose=cclock")):
            ffmpeg("-i", video, "-frames:v", "1", "-vf", filters, "-q:v", "2", self.path(name))
        tiff = b"MM\0*\0\0\0\x08" + b"\0\x01" + b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0" + b"\0\0\0\0"
        exif = b"Exif\0\0" + tiff
        with open(self.path("lying.jpg"), "rb") as f:
            data = f.read()
        with open(self.path("turned.jpg"), "wb") as f:
            f.write(data[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + data[2:])
        lines, _ = caption("-q", self.path("level.jpg"), self.path("turned.jpg"), self.path("lying.jpg"))
        said = [line.split(": ", 1)[1] for line in lines]
        self.assertEqual(said[:2], [truth[0][2]] * 2)
        self.assertNotEqual(said[2], said[0])


class Outputs(OptionTest):
    def test_folders_for_several(self):
        os.makedirs(self.path("in", "x"))
        for name in ("in/a.mkv", "in/x/a.mkv", "in/x/a.ts"):
            self.video(name)
        picture(self.path("in", "p.png"), "red")
        self.wrong("--srt", self.path("o.srt"), self.path("in"), names=["--srt is", "expected a folder for 3 videos"])
        caption("--srt", self.path("out/"), "--every", "1", self.path("in"))
        made = sorted(os.path.relpath(os.path.join(folder, name), self.path("out"))
                      for folder, _, names in os.walk(self.path("out")) for name in names)
        self.assertEqual(made, ["a.srt", "x/a.mkv.srt", "x/a.ts.srt"])
        for name in made:
            self.assertEqual([text for _, _, text in read_srt(self.path("out", name))], [PLAIN[c] for c in NAMES])

    def test_inputs_are_safe(self):
        video = self.video()
        self.wrong("--mkv", self.path(""), video, names=["--mkv would write over the input"])
        self.wrong("--srt", video, video, names=["--srt would write over the input"])

    def test_own_outputs_are_no_inputs(self):
        video = self.video()
        for _ in range(2):
            _, errors = caption("--mkv", self.path("o.mkv"), self.scratch.name)
            self.assertIn("1 captioned; ", errors)
        self.assertEqual(probe(self.path("o.mkv"), "-show_streams")["streams"][1]["codec_type"], "subtitle")
        self.assertNotEqual(video, self.path("o.mkv"))

    def test_cue_lengths(self):
        video = self.video(names=["red", "red", "red", "green", "blue", "blue"], seconds=0.6)
        srt = self.path("o.srt")

        def cues(*options):
            caption("--every", "0.2", "--srt", srt, *options, video)
            return [(round(a, 1), round(b, 1), text) for a, b, text in read_srt(srt)]

        red, green, blue = PLAIN["red"], PLAIN["green"], PLAIN["blue"]
        self.assertEqual(cues(), [(0, 1.8, red), (1.8, 2.4, green), (2.4, 3.6, blue)])
        self.assertEqual(cues("--max-cue", "1s"), [(0, 1, red), (1.8, 2.4, green), (2.4, 3.4, blue)])
        self.assertEqual([text for _, _, text in cues("--min-cue", "1s")], [red, blue])

    def test_burn(self):
        video = self.video()
        caption("--every", "1", "--burn", self.path("o.mp4"), video)
        streams = probe(self.path("o.mp4"), "-show_streams")["streams"]
        self.assertEqual([s["codec_type"] for s in streams], ["video"])
        self.assertAlmostEqual(float(streams[0]["duration"]), 3, delta=0.1)

    def test_standard_output(self):
        lines, errors = caption("--every", "1", "--jsonl", "-", self.video())
        self.assertEqual([json.loads(line)["text"] for line in lines], [PLAIN[c] for c in NAMES])
        self.assertIn("3 captions", errors)

    def test_quiet(self):
        video = self.video()
        lines, errors = caption("--quiet", video)
        self.assertEqual((len(lines), errors), (2, ""))
        lines, errors = caption("--quiet", "--srt", self.path("o.srt"), video)
        self.assertEqual((lines, errors), ([], ""))

    def test_full_disk(self):
        for option in ("--jsonl", "--srt"):
            _, errors = caption(option, self.path("no", "folder", "x") if option == "--jsonl" else "/proc/x", self.video(),
                                status=1)
            self.assertTrue(re.search(r"(no/folder/x|/proc/x)", errors), errors)

    def test_files_that_are_there(self):
        video = self.video()
        for option, name in (("--jsonl", "o.jsonl"), ("--db", "o.db")):
            path = self.path(name)
            caption("--every", "1", option, path, video)
            self.wrong(option, path, video, names=[path + " is there already: --resume"])
            lines, _ = caption("--every", "1", option, path, "--resume", video)
            self.assertEqual(lines, [])
            lines, _ = caption("--every", "1", option, path, "--overwrite", video)
            self.assertEqual(len(lines), 3)
        self.assertEqual(len(read_jsonl(self.path("o.jsonl"))), 3)
        self.assertEqual(len(read_db(self.path("o.db"))[0]), 3)

    def test_foreign_files(self):
        video = self.video()
        with open(self.path("o.jsonl"), "w", encoding="utf-8") as f:
            f.write('{"pts": 1}\n')
        db = sqlite3.connect(self.path("o.db"))
        db.execute("CREATE TABLE other (x)")
        db.commit()
        db.close()
        _, errors = caption("--resume", "--jsonl", self.path("o.jsonl"), video, status=1)
        self.assertIn("line 1 is no caption", errors)
        _, errors = caption("--resume", "--db", self.path("o.db"), video, status=1)
        self.assertIn("no database of captions", errors)

    def test_torn_line(self):
        video, jsonl = self.video(), self.path("o.jsonl")
        caption("--every", "1", "--jsonl", jsonl, video)
        with open(jsonl, "rb") as f:
            whole = f.read()
        lines = whole.splitlines(keepends=True)
        with open(jsonl, "wb") as f:
            f.write(lines[0] + lines[1][:-9])
        said, _ = caption("--every", "1", "--jsonl", jsonl, "--resume", video)
        self.assertEqual(len(said), 2)
        self.assertEqual([row["pts"] for row in read_jsonl(jsonl)], [0, 1, 2])

    def test_one_store_makes_up_for_the_other(self):
        video = self.video()
        caption("--every", "1", "--jsonl", self.path("o.jsonl"), video)
        said, _ = caption("--every", "1", "--jsonl", self.path("o.jsonl"), "--db", self.path("o.db"), "--resume", video)
        self.assertEqual(said, [])
        self.assertEqual([text for _, _, text in read_db(self.path("o.db"))[0]], [PLAIN[c] for c in NAMES])
        os.unlink(self.path("o.jsonl"))
        caption("--every", "1", "--jsonl", self.path("o.jsonl"), "--db", self.path("o.db"), "--resume", video)
        self.assertEqual([row["text"] for row in read_jsonl(self.path("o.jsonl"))], [PLAIN[c] for c in NAMES])

    def test_other_options(self):
        """Captions of one video are all made in one way."""
        video, jsonl = self.video(), self.path("o.jsonl")
        common = ("--resume", "--jsonl", jsonl)
        caption("--every", "1", "--prompt", "What is it?", "--jsonl", jsonl, video)
        self.assertEqual([row["options"] for row in read_jsonl(jsonl)], [{"frames": "--every 1s", "prompt": "What is it?"}] * 3)
        same = ("-e", "1000ms", "-p", "What is it?")
        for options, then, now in ((("-p", "What is it?"), "--every 1s", "--every 2s"),
                                   (("--scenes", "-p", "What is it?"), "--every 1s", "--scene-change 0.05"),
                                   (("--fps", "1"), "--prompt 'What is it?'", "no --prompt"),
                                   ((*same, "--to", "2"), "no --to", "--to 2s"), ((*same, "--seed", "7"), "no --seed", "--seed 7"),
                                   ((*same, "--model", DEMO_MODEL), "no --model", "--model " + DEMO_MODEL)):
            self.wrong(*options, *common, video, names=["%s was captioned with %s, and not with %s:" % (video, then, now)])
        self.assertEqual(caption(*same, "--threads", "1", "--precision", "exact", *common, video)[0], [])
        # Others may be added with other options.
        other = self.video("b.mkv")
        self.assertEqual(len(caption("--every", "0.5", *common, other)[0]), 6)

    def test_other_options_of_the_finished(self):
        """Nothing is captioned, so nothing is mixed: it is only said."""
        video, db = self.video(), self.path("o.db")
        caption("--every", "1", "--db", db, video)
        lines, errors = caption("--resume", "--db", db, "--srt", self.path("o.srt"), video)
        self.assertEqual(lines, [])
        self.assertIn("%s was captioned with --every 1s, and not with --every 2s\n" % video, errors)
        self.assertEqual(len(read_srt(self.path("o.srt"))), 3)
        # What is not finished is refused.
        base = sqlite3.connect(db)
        base.execute("UPDATE inputs SET state = 0")
        base.commit()
        self.wrong("--resume", "--db", db, video, names=["captioned with --every 1s, and not with --every 2s"])
        # Both stores have them, from whichever they come.
        caption("--resume", "--every", "1", "--db", db, "--jsonl", self.path("o.jsonl"), video)
        self.assertEqual({row["options"]["frames"] for row in read_jsonl(self.path("o.jsonl"))}, {"--every 1s"})
        base.execute("DELETE FROM captions")
        base.execute("DELETE FROM inputs")
        base.commit()
        caption("--resume", "--every", "1", "--db", db, "--jsonl", self.path("o.jsonl"), video)
        self.assertEqual(base.execute("SELECT options FROM inputs").fetchall(), [('{"frames":"--every 1s"}',)])
        base.close()

    def test_stores_without_options(self):
        """Of a release that did not keep them: nothing is known, and nothing refused."""
        video, db, jsonl = self.video(), self.path("o.db"), self.path("o.jsonl")
        caption("--every", "1", "--db", db, "--jsonl", jsonl, video)
        rows = read_jsonl(jsonl)
        with open(jsonl, "w", encoding="utf-8") as f:
            for row in rows:
                del row["options"]
                f.write(json.dumps(row) + "\n")
        base = sqlite3.connect(db)
        base.execute("UPDATE inputs SET state = 0")
        base.execute("ALTER TABLE inputs DROP COLUMN options")
        base.commit()
        base.close()
        self.assertEqual(len(run(CAPTION, "search", db, "green")[0].splitlines()), 1)
        lines, _ = caption("--resume", "--fps", "2", "--db", db, "--jsonl", jsonl, video)
        self.assertEqual(len(lines), 1)

    def test_capture_time(self):
        video = self.video("a.mp4", options=(*H264, "-metadata", "creation_time=2024-02-29T12:30:00Z"))
        caption("--every", "1.5", "--jsonl", self.path("o.jsonl"), video)
        self.assertEqual([row["utc"] for row in read_jsonl(self.path("o.jsonl"))],
                         ["2024-02-29T12:30:00.000000Z", "2024-02-29T12:30:01.520000Z"])

    def test_thumbnails(self):
        """They are upright, and show the frame that is described."""
        self.video("a.mp4", size="800x400")
        turn(self.path("a.mp4"), self.path("turned.mp4"))
        for name, size in (("a.mp4", (320, 160)), ("turned.mp4", (320, 640))):
            caption("--every", "1", "--html", self.path("o.html"), self.path(name))
            cues = Sheet(self.path("o.html")).cues
            self.assertEqual([text for _, _, text, _ in cues], [PLAIN[c] for c in NAMES])
            for (_, _, _, data), colour in zip(cues, NAMES):
                image = Image.open(io.BytesIO(base64.b64decode(data)))
                self.assertEqual(image.size, size)
                pixel = image.convert("RGB").getpixel((10, 10))
                self.assertEqual(max(range(3), key=pixel.__getitem__), NAMES.index(colour))


class Search(OptionTest):
    def setUp(self):
        super().setUp()
        names = ["red", "red", "green", "red", "blue", "white"]
        self.clip = self.video("a.mp4", names=names, options=(*H264, "-g", "25"))
        self.still = picture(self.path("b.png"), "green")
        self.db = self.path("o.db")
        caption("-q", "--every", "0.5", "--db", self.db, self.clip, self.still)

    def search(self, *words, status=0):
        out, errors = run(CAPTION, "search", self.db, *words, status=status)
        return out.decode().splitlines(), errors

    def test_hits(self):
        lines, _ = self.search("red")
        self.assertEqual(lines, ["1  %s  0:00:00.000-0:00:02.000  %s" % (self.clip, PLAIN["red"]),
                                 "2  %s  0:00:03.000-0:00:04.000  %s" % (self.clip, PLAIN["red"])])
        lines, _ = self.search("Green", "PLAIN")
        self.assertEqual([line.split("  ")[1] for line in lines], [self.clip, self.still])
        self.assertEqual(self.search("whi*")[0], self.search("white pictures")[0])
        self.assertIn("0:00:05.000-0:00:06.000", self.search("white")[0][0])
        self.assertEqual(len(self.search("--limit", "1", "red")[0]), 1)

    def test_json(self):
        out, _ = run(CAPTION, "search", "--json", self.db, "green")
        hits = json.loads(out)
        self.assertEqual([(h["hit"], h["file"], h["start"], h["end"], h["still"]) for h in hits],
                         [(1, self.clip, 2.0, 3.0, False), (2, self.still, 0.0, 0.0, True)])
        self.assertEqual(hits[0]["uri"], "file://" + self.clip)

    def test_nothing(self):
        for words in (("purple",), ('"',), ("red AND",), ("NEAR(",), ("*",), ("",)):
            lines, errors = self.search(*words, status=1)
            self.assertEqual(lines, [])
            self.assertIn("nothing found", errors)
        self.assertEqual(json.loads(run(CAPTION, "search", "--json", self.db, "purple", status=1)[0]), [])

    def test_phrase_first(self):
        db = sqlite3.connect(self.db)
        for i, text in enumerate(("A circle that is not red.", "A small red circle.", "A red car beside a circle.")):
            db.execute("INSERT INTO captions (input, pts, text, tokens, latency) VALUES (1, ?, ?, 1, 1)",
                       (10**10 * (i + 1), text))
        db.execute('UPDATE inputs SET "end" = ?', (10**11,))
        db.commit()
        db.close()
        lines, _ = self.search("red circle")
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].endswith("A small red circle."), lines)

    def test_clip(self):
        out = self.path("cut.mkv")
        self.search("red", "--clip", "2", out)
        self.assertAlmostEqual(float(probe(out, "-show_format")["format"]["duration"]), 1, delta=0.1)
        self.assertEqual({text for _, text in self.times("--every", "0.25", out)}, {PLAIN["red"]})
        for number, names in (("3", ["--clip is 3, expected at most 2"]), ("0", ["--clip is 0"]), ("x", ["--clip is x"])):
            _, errors = self.search("red", "--clip", number, self.path("no.mkv"), status=2)
            for name in names:
                self.assertIn(name, errors)
        _, errors = self.search("green", "--clip", "2", self.path("no.mkv"), status=2)
        self.assertIn("which is a picture", errors)
        self.assertFalse(os.path.exists(self.path("no.mkv")))

    def test_wrong(self):
        for args in (("search",), ("search", self.db), ("search", self.db, "--limit", "-1", "x"), ("search", "--odd")):
            run(CAPTION, *args, status=2)
        _, errors = run(CAPTION, "search", self.path("gone.db"), "x", status=1)
        self.assertIn("gone.db", errors)
        self.assertFalse(os.path.exists(self.path("gone.db")))
        _, errors = run(CAPTION, "search", self.still, "x", status=1)
        self.assertIn(self.still, errors)
        self.assertIn(b"--clip", run(CAPTION, "search", "--help")[0])


class Stopped(OptionTest):
    def interrupt(self, number, *args):
        """Sends the signal after the second caption; returns what was printed."""
        # However late the signal is sent: more captions than there is room for in the pipe are not made meanwhile.
        process = start(*args, pipesize=4096)
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(number)
        out, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 128 + number, errors)
        return lines + out.splitlines(), errors.decode()

    def test_interrupt(self):
        video = self.video(names=NAMES * 8)
        args = ["--fps", "10", "--db", self.path("o.db"), "--html", self.path("o.html"), "--srt", self.path("o.srt"),
                "--mkv", self.path("o.mkv"), video]
        for number in (signal.SIGINT, signal.SIGTERM):
            lines, errors = self.interrupt(number, *args, "--overwrite")
            captions, _ = read_db(self.path("o.db"))
            self.assertTrue(2 <= len(captions) < 240)
            self.assertEqual(len(captions), len(lines))
            self.assertEqual([text for _, _, text, _ in Sheet(self.path("o.html")).cues][0], PLAIN["red"])
            self.assertGreater(len(read_srt(self.path("o.srt"))), 0)
            self.assertFalse(os.path.exists(self.path("o.mkv")))
            self.assertIn("1 not finished", errors)
            self.assertIn("To go on:\n  %s --resume --fps 10 --db" % CAPTION, errors)
            self.assertNotIn("overwrite", errors)
        command = errors.split("To go on:\n")[1].strip()
        subprocess.run(["sh", "-c", command], check=True, capture_output=True, timeout=600)
        captions, inputs = read_db(self.path("o.db"))
        self.assertEqual([round(pts * 10) for _, pts, _ in captions], list(range(240)))
        self.assertEqual(inputs[video][1], 1)
        self.assertTrue(os.path.exists(self.path("o.mkv")))

    def test_without_a_store(self):
        _, errors = self.interrupt(signal.SIGINT, "--fps", "25", self.video(names=NAMES * 4))
        self.assertIn("Interrupted. The next run begins anew", errors)

    def interrupt_output(self, stream, line, *args):
        """Sends SIGINT soon after such a line; returns the exit code and all that was said as errors."""
        process = start(*args)
        self.addCleanup(process.kill)
        lines = []
        while not lines or line not in lines[-1]:
            lines.append(getattr(process, stream).readline())
            if not lines[-1]:
                _, errors = process.communicate(timeout=60)
                self.fail("%d before it said %r: %r" % (process.returncode, line, b"".join(lines) + errors))
        time.sleep(random.uniform(0, 0.08))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if stream == "stderr":
            errors = b"".join(lines) + errors
        self.assertFalse([name for name in os.listdir(self.path()) if ".tmp" in name], errors)
        return process.returncode, errors

    def check_output(self, out, expected, *args):
        """
        Whenever a video is interrupted that is being made, nothing of it is left, and the exit code is one of those
        expected. A signal that comes when it has just been made may be noticed, or come too late, or end the program when
        it no longer listens.
        """
        interrupted = 0
        for _ in range(20):
            code, errors = self.interrupt_output(*args)
            if os.path.exists(out):
                os.unlink(out)
                self.assertIn(code, (0, 130, -signal.SIGINT), errors)
            else:
                self.assertIn(code, expected, errors)
                interrupted += code == 130
        self.assertGreater(interrupted, 0)

    def test_interrupt_outputs(self):
        sound = ("-f", "lavfi", "-i", "sine=duration=120")
        video = self.video(seconds=40, inputs=sound)
        for option, name in (("--mkv", "o.mkv"), ("--burn", "o.mp4")):
            with self.subTest(option):
                out = self.path(name)
                self.check_output(out, (130,), "stderr", b"Making", "--every", "1s", "--to", "1s", option, out, video)

    def test_interrupt_clip(self):
        video, db, out = self.video(names=["red"], seconds=120), self.path("o.db"), self.path("o.mkv")
        caption("--every", "60s", "--db", db, video)
        # Before cutting begins the signal itself ends the program.
        self.check_output(out, (130, -signal.SIGINT), "stdout", b"red", "search", db, "red", "--clip", "1", out)


class Progress(OptionTest):
    def draw(self, *args):
        """What is drawn on a terminal: all of it as bytes, and the lines with bars."""
        master, slave = pty.openpty()
        process = subprocess.Popen([CAPTION, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave,
                                   cwd=self.path(), env=dict(os.environ, TERM="xterm"))
        os.close(slave)
        data = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:
                break
            if not block:
                break
            data += block
        self.assertEqual(process.wait(timeout=300), 0, data)
        os.close(master)
        draws = [line.split(b"\x1b[K")[0].decode() for line in data.split(b"\r") if b"\x1b[K" in line]
        bars = [line for line in draws if line.startswith("[")]
        self.assertTrue(bars, data)
        return data, bars

    def test_bar(self):
        """On a terminal the line is redrawn, as wide as the terminal is."""
        data, bars = self.draw("--fps", "25", self.video(names=NAMES * 3))
        self.assertRegex(bars[-1], r"^\[[#.]{20}\] +\d+ %.* \d+\.\d captions/s")
        self.assertTrue(any(" x real time" in line for line in bars))
        self.assertTrue(all(len(line) <= 79 for line in bars))
        self.assertTrue(data.rstrip().endswith(b"x real time)"))

    def test_lengths(self):
        """A short video that is done is not half of two."""
        self.video("a.mkv", seconds=0.2)
        self.video("b.mkv", seconds=6)
        _, bars = self.draw("--fps", "25", "a.mkv", "b.mkv")
        parts = [int(re.match(r"\[[#.]{20}\] +(\d+) %", line)[1]) for line in bars if "b.mkv" in line]
        self.assertEqual(parts, sorted(parts))
        self.assertLess(parts[0], 45)

    def test_making(self):
        """How far a video is that is being made."""
        out = self.path("o.mp4")
        data, bars = self.draw("--every", "1s", "--to", "1s", "--burn", out, self.video(seconds=20))
        bars = [line for line in bars if "captions/s" not in line]
        parts = [int(re.match(r"\[[#.]{20}\] +(\d+) %", line)[1]) for line in bars]
        self.assertEqual(parts, sorted(parts))
        # All but the last frame.
        self.assertGreaterEqual(parts[-1], 99)
        self.assertIn(" x real time", bars[-1])
        for line in bars:
            self.assertTrue(out.startswith(line.split("  ")[-1]) and len(line) <= 79, line)
        self.assertLess(data.index(b"Making " + out.encode()), data.index(bars[0].encode()))
        self.assertTrue(data.rstrip().endswith(b"x real time)"))

    def test_plain(self):
        _, errors = caption(self.video())
        self.assertNotIn("\r", errors)
        self.assertNotIn("\x1b", errors)


class Help(OptionTest):
    def options(self):
        out, _ = run(CAPTION, "--help-all")
        return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", out.decode(), re.M))

    def test_screen(self):
        lines = run(CAPTION, "--help")[0].decode().splitlines()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(run(CAPTION, "-h")[0].decode().splitlines(), lines)
        self.assertEqual(set(re.findall(r"--[a-z][a-z-]*", "\n".join(lines))) - self.options(), {"--clip"})

    def test_every_option_is_told_everywhere(self):
        with open(os.path.join(SOURCE, "tools", "caption", "vlm-caption.1"), encoding="utf-8") as f:
            page = f.read().replace("\\-", "-")
        with open(os.path.join(SOURCE, "docs", "vlm-caption.md"), encoding="utf-8") as f:
            guide = f.read()
        options = self.options()
        self.assertGreater(len(options), 30)
        for option in options:
            self.assertIn("\\fB%s\\fR" % option, page, option)
            self.assertIn("`%s" % option, guide, option)

    def test_completion(self):
        def complete(*words):
            script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vlm_caption; printf "%s\\n" "${COMPREPLY[@]}"'
            out, _ = run("bash", "-c", script, "bash", os.path.join(SOURCE, "tools", "caption", "vlm-caption.bash"), *words)
            return set(out.decode().split())

        self.assertEqual(complete(CAPTION, "--") - {"--"}, self.options())
        self.assertEqual(complete(CAPTION, "--sc"), {"--scenes", "--scene-change"})
        self.assertEqual(complete(CAPTION, "--precision", ""), {"auto", "exact", "fast"})
        self.assertIn("--clip", complete(CAPTION, "search", "--"))
        self.assertEqual(complete(CAPTION, "sea"), {"search"})


if __name__ == "__main__":
    main()
