# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captions in video files and pieces of them, looked at with ffmpeg: nothing of the video is touched."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from toolkit import ToolTest, main, run

WRITE_CUES = os.environ["VLM_WRITE_CUES"]
FFMPEG, FFPROBE = shutil.which("ffmpeg"), shutil.which("ffprobe")
SECOND = 1_000_000_000

CUES = [{"pts": 0, "end": 1_200_000_000, "text": "A red <i>circle</i>."},
        {"pts": 1_200_000_000, "end": 2_500_000_000, "text": "Two\nlines"},
        {"pts": 2_600_000_000, "end": 2_700_000_000, "text": " \n "},
        {"pts": 3_000_400_000, "end": 3_999_600_000, "text": "Ünï, 世界"}]
# What the track is to have: times in ms and text.
TRACK = [(0, 1200, "A red <\u2060i>circle<\u2060/i>."), (1200, 2500, "Two\nlines"), (3000, 4000, "Ünï, 世界")]

VIDEO = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25"]
AUDIO = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]
H264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-pix_fmt", "yuv420p"]


def ffmpeg(*arguments):
    return subprocess.run([FFMPEG, "-v", "error", "-y", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=True).stdout.decode("utf-8")


def probe(path, *arguments):
    return json.loads(run(FFPROBE, "-v", "error", "-of", "json", *arguments, path)[0])


def streams(path):
    return probe(path, "-show_streams")["streams"]


def packets(path, kind):
    """(pts in ms, duration in ms, size, flags) of each packet of the first stream of that kind."""
    found = probe(path, "-show_packets", "-select_streams", kind + ":0")["packets"]
    return [(round(float(p["pts_time"]) * 1000), round(float(p.get("duration_time", 0)) * 1000), int(p["size"]), p["flags"])
            for p in found if "pts_time" in p]


def hashes(path, kind, copy=True):
    """The checksum of each packet, or of each decoded frame, of the first stream of that kind."""
    out = ffmpeg("-i", path, "-map", "0:%s:0" % kind, *(["-c", "copy"] if copy else ["-fps_mode", "passthrough"]),
                 "-f", "framehash", "-hash", "md5", "-")
    return [line.split(",")[5].strip() for line in out.splitlines() if not line.startswith("#")]


def subtitles(path):
    """(start, end, text) of the track of subtitles, the text as it stands in the file."""
    times = [(pts, pts + duration) for pts, duration, _, _ in packets(path, "s")]
    blocks = ffmpeg("-i", path, "-map", "0:s:0", "-c", "copy", "-f", "srt", "-").strip("\n").split("\n\n")
    return [(start, end, "\n".join(block.split("\n")[2:])) for (start, end), block in zip(times, blocks)]


@unittest.skipUnless(FFMPEG and FFPROBE, "needs ffmpeg")
class RemuxTest(ToolTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="vlm-remux-", dir=os.environ.get("VLM_SCRATCH"))
        cls.addClassCleanup(scratch.cleanup)
        cls.inputs = scratch.name
        cls.make_inputs()

    @classmethod
    def make_inputs(cls):
        ffmpeg(*VIDEO, *AUDIO, "-t", "5", *H264, "-c:a", "aac", cls.input("a.mp4"))
        for name in ("a.mkv", "a.ts", "a.mov"):
            ffmpeg("-i", cls.input("a.mp4"), "-c", "copy", cls.input(name))
        for name in ("late.mkv", "late.ts"):
            ffmpeg("-i", cls.input("a.mp4"), "-c", "copy", "-output_ts_offset", "10", cls.input(name))

    @classmethod
    def input(cls, name):
        return os.path.join(cls.inputs, name)

    def write(self, kind, name, *arguments, cues=None, out="out.mkv", **kwargs):
        uri = name if "://" in name else "file://" + self.input(name)
        _, errors = run(WRITE_CUES, kind, uri, *map(str, arguments), self.path(out), stdin=json.dumps(CUES if cues is None else cues),
                        **kwargs)
        self.assertEqual([name for name in os.listdir(self.path()) if name != out], [])
        return self.path(out) if not kwargs.get("status") else errors

    def first_frame(self, path):
        return min(packet[0] for packet in packets(path, "v"))


class Mkv(RemuxTest):
    def check_track(self, path, shift=0):
        self.assertEqual(subtitles(path), [(start + shift, end + shift, text) for start, end, text in TRACK])
        track = [stream for stream in streams(path) if stream["codec_type"] == "subtitle"]
        self.assertEqual([stream["codec_name"] for stream in track], ["subrip"])
        tags = {name.lower(): value for name, value in track[0]["tags"].items()}
        self.assertEqual(tags["title"], "Captions")
        self.assertEqual(tags.get("language", "und"), "und")

    def check_sound(self, path, source):
        """An edit list may leave out what only warms the decoder up, and what is beyond the end."""
        audio, heard = hashes(source, "a"), hashes(path, "a")
        self.assertLessEqual(len(audio) - len(heard), 2)
        at = audio.index(heard[0])
        self.assertEqual(heard, audio[at:at + len(heard)])

    def check_copy(self, name):
        """Every packet of the video is there as it was, and those of the audio that are to be heard."""
        source = self.input(name)
        path = self.write("mkv", name)
        self.assertEqual([s["codec_type"] for s in streams(path)], ["video", "audio", "subtitle"])
        self.assertEqual(hashes(path, "v"), hashes(source, "v"))
        self.check_sound(path, source)
        self.check_track(path, self.first_frame(path))
        self.assertLess(self.first_frame(path), 25)

    def test_mp4(self):
        self.check_copy("a.mp4")

    def test_mov(self):
        self.check_copy("a.mov")

    def test_mkv(self):
        self.check_copy("a.mkv")

    def test_late_mkv(self):
        """A file whose times begin at 10 s; those of captions count from its first frame."""
        self.check_copy("late.mkv")

    def test_webm(self):
        ffmpeg(*VIDEO, *AUDIO, "-t", "5", "-c:v", "libvpx", "-g", "25", "-c:a", "libopus", self.input("a.webm"))
        self.check_copy("a.webm")

    def test_ts(self):
        """Start codes become lengths; the pictures are the same."""
        for name in ("a.ts", "late.ts"):
            path = self.write("mkv", name)
            self.assertEqual(hashes(path, "v", copy=False), hashes(self.input(name), "v", copy=False))
            self.check_track(path, self.first_frame(path))

    def test_video_later_than_audio(self):
        ffmpeg("-itsoffset", "0.8", "-i", self.input("a.mp4"), "-i", self.input("a.mp4"), "-map", "0:v", "-map", "1:a",
               "-c", "copy", self.input("delayed.mkv"))
        path = self.write("mkv", "delayed.mkv")
        self.assertAlmostEqual(self.first_frame(path), 800, delta=25)
        self.check_track(path, self.first_frame(path))

    def test_other_codecs(self):
        for name, codecs in (("theora.ogv", ["libtheora", "libvorbis"]), ("flac.mkv", ["libx264", "flac"]),
                             ("jpeg.avi", ["mjpeg", "pcm_s16le"]), ("mpeg.ts", ["mpeg2video", "mp2"])):
            ffmpeg(*VIDEO, *AUDIO, "-t", "2", "-c:v", codecs[0], "-c:a", codecs[1], self.input(name))
            path = self.write("mkv", name)
            self.assertEqual(hashes(path, "v"), hashes(self.input(name), "v"), name)
            self.check_sound(path, self.input(name))
            self.check_track(path, self.first_frame(path))

    def test_fragments(self):
        ffmpeg("-i", self.input("a.mp4"), "-c", "copy", "-movflags", "frag_keyframe+empty_moov", self.input("fragments.mp4"))
        path = self.write("mkv", "fragments.mp4")
        self.assertEqual(hashes(path, "v"), hashes(self.input("a.mp4"), "v"))
        self.check_track(path, self.first_frame(path))

    def test_two_sounds_and_subtitles(self):
        with open(self.input("old.srt"), "w", encoding="utf-8") as f:
            f.write("1\n00:00:01,000 --> 00:00:02,000\nold\n")
        ffmpeg("-i", self.input("a.mp4"), *AUDIO, "-i", self.input("old.srt"), "-map", "0", "-map", "1", "-map", "2",
               "-c:v", "copy", "-c:a", "aac", "-t", "5", self.input("many.mkv"))
        path = self.write("mkv", "many.mkv")
        self.assertEqual([s["codec_type"] for s in streams(path)], ["video", "audio", "audio", "subtitle", "subtitle"])
        self.assertEqual(ffmpeg("-i", path, "-map", "0:s:0", "-f", "srt", "-").split("\n")[2], "old")
        self.assertEqual(len(probe(path, "-show_packets", "-select_streams", "s:1")["packets"]), 3)

    def test_no_cues(self):
        path = self.write("mkv", "a.mp4", cues=[])
        self.assertEqual([s["codec_type"] for s in streams(path)], ["video", "audio"])

    def test_many_cues(self):
        """More than fit any queue, to beyond the end."""
        cues = [{"pts": i * 5_000_000, "end": (i + 1) * 5_000_000, "text": "cue %d" % i} for i in range(1500)]
        path = self.write("mkv", "a.mp4", cues=cues)
        found = subtitles(path)
        self.assertEqual([text for _, _, text in found], [cue["text"] for cue in cues])
        self.assertEqual(hashes(path, "v"), hashes(self.input("a.mp4"), "v"))

    def test_cut_file(self):
        """As far as it goes."""
        ffmpeg("-i", self.input("a.mp4"), "-c", "copy", "-movflags", "faststart", self.input("fast.mp4"))
        with open(self.input("fast.mp4"), "rb") as f:
            data = f.read()
        with open(self.input("half.mp4"), "wb") as f:
            f.write(data[:len(data) * 6 // 10])
        path = self.write("mkv", "half.mp4")
        found, whole = hashes(path, "v"), hashes(self.input("a.mp4"), "v")
        self.assertGreater(len(found), 50)
        self.assertEqual(found, whole[:len(found)])


def read(path):
    with open(path, "rb") as f:
        return f.read()


def pixels(path, at, *filters):
    """The frame at that time in s, as rows of grey bytes."""
    size = [s for s in streams(path) if s["codec_type"] == "video"][0]
    data = subprocess.run([FFMPEG, "-v", "error", "-ss", str(at), "-i", path, "-frames:v", "1", *filters, "-pix_fmt", "gray",
                           "-f", "rawvideo", "-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    width = int(size["width"])
    return [data[i:i + width] for i in range(0, len(data), width)]


def difference(a, b, top, bottom):
    """The mean difference of the pixels in those rows, given as parts of the height."""
    rows = range(int(len(a) * top), int(len(a) * bottom))
    return sum(abs(x - y) for i in rows for x, y in zip(a[i], b[i])) / (len(rows) * len(a[0]))


class Burn(RemuxTest):
    CUES = [{"pts": 1 * SECOND, "end": 2 * SECOND, "text": "A red circle & a blue <square>"}]

    @classmethod
    def make_inputs(cls):
        """Grey pictures: whatever else is on them was drawn."""
        ffmpeg("-f", "lavfi", "-i", "color=gray:size=320x240:rate=25", *AUDIO, "-t", "3", *H264, "-c:a", "aac", cls.input("grey.mp4"))

    def burn(self, name, out="out.mp4", cues=None, **kwargs):
        return self.write("burn", name, cues=self.CUES if cues is None else cues, out=out, **kwargs)

    def check(self, path, audio, frames=75, video="h264"):
        found = {stream["codec_type"]: stream for stream in streams(path)}
        self.assertEqual(found["video"]["codec_name"], video)
        self.assertEqual(found["audio"]["codec_name"], audio)
        self.assertEqual(found["video"]["pix_fmt"], "yuv420p")
        self.assertEqual(len(packets(path, "v")), frames)

    def check_text(self, path):
        """It stands at the bottom, from its first frame to its last and no longer."""
        plain = pixels(path, 0.5)
        for at, written in ((0.0, False), (0.94, False), (1.02, True), (1.5, True), (1.94, True), (2.02, False), (2.9, False)):
            now = pixels(path, at)
            self.assertLess(difference(plain, now, 0, 0.6), 1, at)
            bottom = difference(plain, now, 0.7, 1)
            self.assertGreater(bottom, 5, at) if written else self.assertLess(bottom, 1, at)

    def test_mp4(self):
        path = self.burn("grey.mp4")
        self.check(path, "aac")
        self.check_text(path)
        self.assertTrue(set(hashes(path, "a")) <= set(hashes(self.input("grey.mp4"), "a")))
        self.assertGreaterEqual(len(hashes(path, "a")), len(hashes(self.input("grey.mp4"), "a")) - 2)

    def test_mkv(self):
        path = self.burn("grey.mp4", out="out.mkv")
        self.check(path, "aac")
        self.check_text(path)

    def test_late(self):
        ffmpeg("-i", self.input("grey.mp4"), "-c", "copy", "-output_ts_offset", "10", self.input("late.ts"))
        path = self.burn("late.ts")
        self.check(path, "aac")
        self.check_text(path)

    def test_sound_without_a_place(self):
        """MP4 takes no plain samples: they are compressed."""
        ffmpeg("-i", self.input("grey.mp4"), "-c:v", "copy", "-c:a", "pcm_s16le", self.input("pcm.mkv"))
        self.check(self.burn("pcm.mkv"), "opus")

    def test_no_cues(self):
        path = self.burn("grey.mp4", cues=[])
        self.check(path, "aac")
        self.assertLess(difference(pixels(path, 0.5), pixels(path, 1.5), 0, 1), 1)

    def test_rotated(self):
        """Upright pictures with the text below; a phone only notes which side is up."""
        ffmpeg("-f", "lavfi", "-i", "color=black:size=320x240:rate=25,drawbox=w=40:h=240:color=white:t=fill", "-t", "3",
               *H264, self.input("flat.mp4"))
        ffmpeg("-i", self.input("flat.mp4"), "-c", "copy", "-metadata:s:v", "rotate=90", self.input("phone.mp4"))
        if not any("rotation" in json.dumps(s) for s in streams(self.input("phone.mp4"))):
            ffmpeg("-display_rotation", "270", "-i", self.input("flat.mp4"), "-c", "copy", self.input("phone.mp4"))
        path = self.burn("phone.mp4")
        rows = pixels(path, 0.5)
        self.assertEqual((len(rows[0]), len(rows)), (240, 320))
        # As ffmpeg turns it.
        upright = subprocess.run([FFMPEG, "-v", "error", "-i", self.input("phone.mp4"), "-frames:v", "1", "-pix_fmt", "gray",
                                  "-f", "rawvideo", "-"], stdout=subprocess.PIPE, check=True).stdout
        self.assertLess(difference(rows, [upright[i:i + 240] for i in range(0, len(upright), 240)], 0, 1), 3)
        # Most of it is black, and so is the shade behind the text.
        self.assertGreater(difference(rows, pixels(path, 1.5), 0.7, 1), 2)

    def test_odd_and_deep(self):
        ffmpeg("-f", "lavfi", "-i", "color=gray:size=161x121:rate=25", "-t", "1", "-c:v", "libx264", "-pix_fmt", "yuv444p10le",
               self.input("odd.mkv"))
        found = streams(self.burn("odd.mkv"))[0]
        self.assertEqual((found["width"] % 2, found["height"] % 2, found["pix_fmt"]), (0, 0, "yuv420p"))
        self.assertLessEqual(max(abs(found["width"] - 161), abs(found["height"] - 121)), 1)

    def without(self, *plugins):
        """The environment of a machine on which these plugins of GStreamer's are not installed."""
        system = run("pkg-config", "--variable=pluginsdir", "gstreamer-1.0")[0].decode().strip()
        folder = os.path.join(self.inputs, "without-" + "-".join(plugins))
        os.makedirs(folder, exist_ok=True)
        hidden = ["libgst%s.so" % plugin for plugin in plugins]
        for name in set(os.listdir(system)) - set(hidden) - set(os.listdir(folder)):
            os.symlink(os.path.join(system, name), os.path.join(folder, name))
        return {"GST_PLUGIN_SYSTEM_PATH_1_0": folder, "GST_PLUGIN_PATH": "", "GST_REGISTRY": folder + ".registry"}

    def test_second_encoder(self):
        path = self.burn("grey.mp4", env=self.without("x264"))
        self.check(path, "aac")
        self.check_text(path)
        # The first one signs what it makes.
        self.assertFalse(b"x264 - core" in read(path))
        self.assertTrue(b"x264 - core" in read(self.burn("grey.mp4")))

    def test_third_encoder(self):
        """VP8 has a place in Matroska only."""
        path = self.burn("grey.mp4", out="out.mkv", env=self.without("x264", "openh264"))
        self.check(path, "aac", video="vp8")
        self.check_text(path)
        os.unlink(path)
        errors = self.burn("grey.mp4", env=self.without("x264", "openh264"), status=1)
        for words in ("no encoder for H.264", "x264enc (Debian package gstreamer1.0-plugins-ugly)",
                      "openh264enc (Debian package gstreamer1.0-plugins-bad)"):
            self.assertIn(words, errors)

    def test_missing(self):
        """Says what is missing, and what to install."""
        hidden = {"GST_PLUGIN_FEATURE_RANK": "", "GST_REGISTRY": self.path("registry.bin"), "GST_PLUGIN_SYSTEM_PATH": self.path("none")}
        _, errors = run(WRITE_CUES, "burn", "file://" + self.input("grey.mp4"), self.path("out.mp4"), stdin="[]", env=hidden,
                        status=1)
        self.assertIn("is not installed (Debian package gstreamer1.0-plugins-", errors)


class Failures(RemuxTest):
    def refuses(self, name, *words, kind="mkv", arguments=()):
        with open(self.path("out.mkv"), "w", encoding="utf-8") as f:
            f.write("as it was")
        errors = self.write(kind, name, *arguments, status=1)
        for word in (name,) + words:
            self.assertIn(word, errors)
        with open(self.path("out.mkv"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "as it was")

    def make(self, name, data):
        with open(self.input(name), "wb") as f:
            f.write(data)
        return name

    def test_broken(self):
        with open(self.input("a.mp4"), "rb") as f:
            data = f.read()
        for name in (self.make("zero.mp4", b""), self.make("text.mp4", b"This is only text.\n"), self.make("header.mp4", data[:40]),
                     self.make("cut.mp4", data[:len(data) // 2]), "missing.mp4"):
            self.refuses(name)
            self.refuses(name, kind="clip", arguments=(0, SECOND))

    def test_no_video(self):
        ffmpeg(*AUDIO, "-t", "1", "-c:a", "aac", self.input("audio.m4a"))
        self.refuses("audio.m4a", "no video")

    def test_kind_of_stream(self):
        ffmpeg(*VIDEO, "-t", "1", "-c:v", "svq1", self.input("svq.mov"))
        self.refuses("svq.mov", "video/x-svq", "Sorensen")
        with open(self.input("bare.h264"), "wb") as f:
            f.write(subprocess.run([FFMPEG, "-v", "error", "-i", self.input("a.mp4"), "-c:v", "copy", "-bsf:v", "h264_mp4toannexb",
                                    "-f", "h264", "-"], stdout=subprocess.PIPE, check=True).stdout)
        self.refuses("bare.h264", "without a time")
        ffmpeg(*VIDEO, "-frames:v", "1", self.input("picture.png"))
        self.refuses("picture.png", "image/png")

    def test_frames_without_a_time(self):
        ffmpeg(*VIDEO, "-t", "1", "-c:v", "mpeg4", "-bf", "2", self.input("a.avi"))
        self.refuses("a.avi", "without a time")

    def test_unwritable(self):
        errors = self.write("mkv", "a.mp4", out="no/such.mkv", status=1)
        self.assertIn("no/such.mkv", errors)
        for target, word in ((self.path(), "directory"), ("/dev/null", "device")):
            _, errors = run(WRITE_CUES, "mkv", "file://" + self.input("a.mp4"), target, stdin="[]", status=1)
            self.assertIn(word, errors)
        self.assertTrue(os.path.exists("/dev/null"))

    def silent_server(self):
        """Takes connections and says nothing."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        kept = []

        def accept():
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                for connection in kept:
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return "http://127.0.0.1:%d/a.mp4" % server.getsockname()[1]

    def test_cancel(self):
        start = time.monotonic()
        errors = self.write("mkv", self.silent_server(), env={"WRITE_CUES_CANCEL": "500", "no_proxy": "*"}, status=1)
        self.assertIn("cancelled", errors)
        self.assertLess(time.monotonic() - start, 25)

    def test_silence(self):
        """GStreamer's own patience for a server is 15 seconds."""
        self.write("mkv", self.silent_server(), env={"no_proxy": "*"}, status=1)


class Clip(RemuxTest):
    def clip(self, name, start, end):
        return self.write("clip", name, int(start * SECOND), int(end * SECOND))

    def check(self, name, start, end, key, copy=True):
        """The clip has the frames from the one with that number to end, and at most those to the next key frame.

        Where times of decoding are known, they are what ends the clip: it may have a few frames more.
        """
        path = self.clip(name, start, end)
        whole, found = hashes(self.input(name), "v", copy), hashes(path, "v", copy)
        self.assertEqual(found, whole[key:key + len(found)], name)
        self.assertGreaterEqual(len(found), min(len(whole), round(end * 25)) - key)
        self.assertLessEqual(key + len(found), -(-round(end * 25) // 25) * 25 + 3)
        self.assertIn("K", packets(path, "v")[0][3])
        self.assertEqual([s["codec_type"] for s in streams(path)], ["video", "audio"])
        self.assertLess(packets(path, "v")[0][0], 1000)

    def test_clips(self):
        for name in ("a.mp4", "a.mkv", "late.mkv"):
            self.check(name, 2.5, 3.5, 50)
            # GStreamer's times of Matroska files with sound may be off by the sound's first packet.
            self.check(name, 2.03, 3, 50)
            self.check(name, 0, 1, 0)
            self.check(name, 4.9, 100, 100)
        self.check("a.mp4", 2, 3, 50)

    def test_ts(self):
        """Decoded, because the packing is another one. Where a key frame is has to be guessed in such a file."""
        for name in ("a.ts", "late.ts"):
            path = self.clip(name, 2.5, 3.5)
            whole, found = hashes(self.input(name), "v", copy=False), hashes(path, "v", copy=False)
            key = whole.index(found[0])
            self.assertIn(key, (0, 25, 50))
            self.assertEqual(found, whole[key:key + len(found)])
            self.assertIn(key + len(found), range(87, 92))

    def test_refused(self):
        for start, end in ((2, 2), (3, 2), (-2, -1)):
            errors = self.write("clip", "a.mp4", start * SECOND, end * SECOND, status=1)
            self.assertIn("no length", errors)
        for name in ("a.mp4", "a.mkv"):
            errors = self.write("clip", name, 20 * SECOND, 22 * SECOND, status=1)
            self.assertIn("20.000 s", errors)


if __name__ == "__main__":
    main()
