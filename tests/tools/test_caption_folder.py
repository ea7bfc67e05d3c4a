# SPDX-License-Identifier: LGPL-2.1-or-later
"""A folder of 200 files: whatever is good is captioned, whatever is broken is named."""

import os
import re
import shutil

from media import H264, PLAIN, caption, colours, ffmpeg, picture, read_db, read_jsonl, scenes, seconds, turn
from toolkit import ToolTest, main

NAMES = ["red", "green", "blue"]
N_GOOD, N_BAD = 180, 20


class Folder(ToolTest):
    def put(self, name, data):
        path = self.path("all", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)

    def read(self, name):
        with open(self.path("all", name), "rb") as f:
            return f.read()

    def video(self, name, **kwargs):
        os.makedirs(os.path.dirname(self.path("all", name)), exist_ok=True)
        colours(self.path("all", name), NAMES, seconds=0.6, **kwargs)

    def make_videos(self):
        """Names of videos that show the colours one after the other."""
        sound = ("-f", "lavfi", "-i", "sine=d=1.8")
        self.video("plain.mp4", options=(*H264, "-movflags", "+faststart"))
        self.video("sound.mkv", inputs=sound, options=(*H264, "-c:a", "libvorbis"))
        self.video("vp8.webm", options=("-c:v", "libvpx", "-deadline", "realtime"))
        self.video("deep.mkv", options=("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le"))
        self.video("fields.ts", options=(*H264, "-flags", "+ilme+ildct", "-x264opts", "tff=1"))
        self.video("fields.mpg", options=("-c:v", "mpeg2video", "-flags", "+ilme+ildct", "-b:v", "500k"))
        self.video("varying.mkv", filters=",select='lt(mod(n\\,15)\\,4)+not(mod(n\\,6))'",
                   options=(*H264, "-fps_mode", "vfr"))
        self.video("late.mkv", options=(*H264, "-output_ts_offset", "100"))
        self.video("late.ts", options=(*H264, "-output_ts_offset", "100"))
        self.video("late.mp4", inputs=sound, options=(*H264, "-output_ts_offset", "2"))
        self.video("old.avi", options=("-c:v", "mjpeg"))
        self.video("tiny.mkv", size="2x2", options=("-c:v", "ffv1"))
        self.video("called-text.txt", options=(*H264, "-f", "mp4"))
        return ["plain.mp4", "sound.mkv", "vp8.webm", "deep.mkv", "fields.ts", "fields.mpg", "varying.mkv", "late.mkv",
                "late.ts", "late.mp4", "old.avi", "tiny.mkv", "called-text.txt"]

    def make_rotated(self):
        """A scene, and the same as a phone writes it that was held upright; both have this caption."""
        truth = scenes(self.path("scene.webm"), [7])
        ffmpeg("-i", self.path("scene.webm"), "-t", "0.5", *H264, self.path("all", "level.mp4"))
        ffmpeg("-i", self.path("scene.webm"), "-t", "0.5", "-vf", "transpose=cclock", *H264, self.path("phone.mp4"))
        turn(self.path("phone.mp4"), self.path("all", "phone.mp4"))
        return truth[0][2]

    def make_pictures(self, count):
        """So many pictures of one colour; returns {name: colour}."""
        made = {}
        os.makedirs(self.path("all", "pictures", "more"))
        for name, size in (("one.png", 1), ("small.png", 16)):
            picture(self.path("all", "pictures", name), "red", size, size)
            made["pictures/" + name] = "red"
        for colour in NAMES:
            # The ending says nothing, the content all.
            ffmpeg("-f", "lavfi", "-i", "color=%s:s=48x32:d=0.04" % colour.replace("green", "lime"), "-frames:v", "1",
                   "-f", "mjpeg", self.path("all", "pictures", colour + ".mp4"))
            made["pictures/" + colour + ".mp4"] = colour
            picture(self.path(colour + ".png"), colour)
        while len(made) < count:
            colour = NAMES[len(made) % 3]
            name = "pictures/more/%03d.png" % len(made)
            shutil.copy(self.path(colour + ".png"), self.path("all", name))
            made[name] = colour
        return made

    def make_bad(self):
        plain, png, mkv = self.read("plain.mp4"), self.read("pictures/small.png"), self.read("sound.mkv")
        text = b"These are words and no pictures.\n" * 100
        data = plain.index(b"mdat")
        bad = {"bad/no-frame-%d.mp4" % i: plain[:data + 4 + i * 20] for i in range(3)}
        bad["bad/no-frame.webm"] = self.read("vp8.webm")[:400]
        for ending in ("mp4", "png", "mkv"):
            bad["bad/empty." + ending] = b""
        for ending in ("mp4", "jpg", "mkv", "webm"):
            bad["bad/text." + ending] = text
        bad["bad/header.mp4"] = plain[:32]
        bad["bad/header.mkv"] = mkv[:40]
        bad["bad/header.png"] = png[:8]
        bad["bad/cut.png"] = png[:45]
        for name, content in bad.items():
            self.put(name, content)
        for name, codec in (("sound.mp4", "aac"), ("sound.mkv", "libvorbis"), ("sound.mp3", "libmp3lame"),
                            ("sound.wav", "pcm_s16le"), ("sound.ogg", "libvorbis")):
            ffmpeg("-f", "lavfi", "-i", "sine=d=1", "-c:a", codec, self.path("all", "bad", name))
            bad["bad/" + name] = None
        self.assertEqual(len(bad), N_BAD)
        return list(bad)

    def check_video(self, name, captions):
        """Each caption tells the colour of its time, and there are as many as there should be."""
        self.assertEqual(len(captions), 6, (name, captions))
        for time, text in captions:
            self.assertEqual(text, PLAIN[NAMES[int((time + 0.001) / 0.6)]], (name, time))
        for i, (time, _) in enumerate(captions):
            self.assertAlmostEqual(time, i * 0.3, delta={"varying.mkv": 0.25, "late.mp4": 0.07}.get(name, 0.041), msg=name)

    def test_two_hundred_files(self):
        videos = self.make_videos()
        scene = self.make_rotated()
        colours(self.path("long.mp4"), NAMES, seconds=2, options=(*H264, "-g", "5", "-movflags", "+faststart"))
        with open(self.path("long.mp4"), "rb") as f:
            half = f.read()
        self.put("half.mp4", half[:half.index(b"mdat") + (len(half) - half.index(b"mdat")) // 2])
        pictures = self.make_pictures(N_GOOD - len(videos) - 3)
        bad = self.make_bad()
        # What nobody would take for a picture is left out, and what is hidden is not looked at.
        self.put("notes.txt", b"Buy milk.\n")
        self.put(".hidden.mp4", b"")
        self.assertEqual(sum(len(files) for _, _, files in os.walk(self.path("all"))), N_GOOD + N_BAD + 2)

        lines, errors = caption("--every", "0.3", "--jsonl", self.path("o.jsonl"), "--db", self.path("o.db"),
                                self.path("all"), status=1)
        said = {}
        for row in read_jsonl(self.path("o.jsonl")):
            said.setdefault(os.path.relpath(row["file"], self.path("all")), []).append((row["pts"], row["text"]))
        self.assertEqual(len(lines), sum(map(len, said.values())))
        self.assertEqual(sorted(said), sorted([*videos, *pictures, "level.mp4", "phone.mp4", "half.mp4"]))
        for name in videos:
            self.check_video(name, said[name])
        for name, colour in pictures.items():
            self.assertEqual(said[name], [(0, PLAIN[colour])], name)
        for name in ("level.mp4", "phone.mp4"):
            self.assertEqual({text for _, text in said[name]}, {scene}, name)

        # Half of six seconds, more or less, two for each of the three colours.
        self.assertTrue(4 <= len(said["half.mp4"]) <= 16)
        for time, text in said["half.mp4"]:
            self.assertEqual(text, PLAIN[NAMES[int((time + 0.001) / 2)]])
        at = re.search(r"half\.mp4: the file is cut: it has (\d+) of (\d+) bytes; captioned up to (\S+)", errors)
        self.assertEqual(int(at[2]), len(half))
        self.assertTrue(said["half.mp4"][-1][0] <= seconds(at[3]) < 5)

        named = {os.path.relpath(name, self.path("all")): reason
                 for name, reason in re.findall(r"^Failed: (\S+) \((.*)\)$", errors, re.M)}
        self.assertEqual(sorted(named), sorted(bad))
        for name, reason in named.items():
            if name.startswith("bad/text"):
                self.assertIn("it is text", reason)
            elif name.startswith("bad/empty"):
                self.assertEqual(reason, "the file is empty")
            elif name.startswith("bad/sound"):
                self.assertEqual(reason, "there is sound in it, but no video")
        self.assertIn("%d captioned, 1 captioned in part, %d failed" % (N_GOOD - 1, N_BAD), errors)
        self.assertIn("Left out, neither pictures nor videos: %s\n" % self.path("all", "notes.txt"), errors)
        self.assertNotIn("hidden", errors)
        self.check_db(said, bad)

    def check_db(self, said, bad):
        captions, inputs = read_db(self.path("o.db"))
        self.assertEqual(len(captions), sum(map(len, said.values())))
        states = {os.path.relpath(name, self.path("all")): state for name, (_, state) in inputs.items()}
        for name in said:
            self.assertEqual(states[name], 2 if name == "half.mp4" else 1, name)


if __name__ == "__main__":
    main()
