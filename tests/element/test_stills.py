#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captions of the built-in model on the picture, launched as a person would type it.

Each still must be, byte by byte, the one that a reference overlay draws which is given the caption
as its text. Exits with 77 (skipped) where Python's GStreamer bindings are not installed.
"""

import pathlib
import sys
import tempfile
import unittest

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst
except (ImportError, ValueError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

PATIENCE = 120 * Gst.SECOND


def play(line, watch=None):
    """Plays a launch line to its end; watch may look at the pipeline first."""
    pipeline = Gst.parse_launch(line)
    if watch:
        watch(pipeline)
    bus = pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    message = bus.timed_pop_filtered(PATIENCE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert message is not None, f"no end: {line}"
    assert message.type == Gst.MessageType.EOS, f"{message.parse_error()}: {line}"


class Stills(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.references = {}

    def tearDown(self):
        self.folder.cleanup()

    def stills(self, name):
        return [still.read_bytes() for still in sorted(self.path.glob(f"{name}-*.png"))]

    def to_stills(self, name):
        return f"pngenc compression-level=1 ! multifilesink location={self.path}/{name}-%04d.png"

    def run_line(self, line):
        """The stills, and the caption that was in force when each frame left the element."""
        texts = []

        def note(pad, info):
            meta = info.get_buffer().get_custom_meta("GstVlmCaptionMeta")
            texts.append(meta.get_structure().get_value("text") if meta else "")
            return Gst.PadProbeReturn.OK

        def watch(pipeline):
            element = pipeline.get_by_name("v")
            element.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, note)

        play(f"{line} ! {self.to_stills('seen')}", watch)
        stills = self.stills("seen")
        self.assertEqual(len(stills), len(texts))
        return stills, texts

    def reference(self, source, text):
        """All frames of the source with this text on them."""
        if text not in self.references:
            name = f"reference{len(self.references)}"
            quoted = GLib.markup_escape_text(text).replace('"', '\\"')
            play(f'{source} ! textoverlay text="{quoted}" ! {self.to_stills(name)}')
            self.references[text] = self.stills(name)
        return self.references[text]

    def compare(self, source, stills, texts):
        for i, (still, text) in enumerate(zip(stills, texts)):
            self.assertEqual(still, self.reference(source, text)[i], f'frame {i} without "{text}"')


class Live(Stills):
    """A camera: what is in force when a frame leaves the element is what is seen on it."""

    def check(self, rest, n_frames=120):
        stills, texts = self.run_line(f"videotestsrc is-live=true num-buffers={n_frames} ! {rest}")
        self.assertEqual(len(stills), n_frames)
        # A machine that is busy elsewhere has the first caption late; then one is there to the end.
        first = next(i for i, text in enumerate(texts) if text)
        self.assertTrue(all(texts[first:]))
        self.compare(f"videotestsrc num-buffers={n_frames}", stills, texts)

    def test_plain(self):
        self.check("vlmcaption name=v ! textoverlay", 300)

    def test_colon(self):
        self.check("vlmcaption name=v : textoverlay")

    def test_explicit_pads(self):
        self.check("vlmcaption name=v ! textoverlay name=t v.text ! t.text_sink t.src")

    def test_user_text(self):
        n_frames = 90
        source = f"videotestsrc num-buffers={n_frames}"
        stills, texts = self.run_line(
            f"videotestsrc is-live=true num-buffers={n_frames} ! vlmcaption name=v ! "
            "textoverlay text=mine"
        )
        self.assertTrue(any(texts))
        self.compare(source, stills, ["mine"] * n_frames)

    def test_behind_a_queue(self):
        """A caption may come a quarter of a second late; from the first on, no frame is without."""
        n_frames = 120
        stills, texts = self.run_line(
            f"videotestsrc is-live=true num-buffers={n_frames} ! vlmcaption name=v ! queue ! "
            "videoconvert ! textoverlay"
        )
        source = f"videotestsrc num-buffers={n_frames}"
        first = next(i for i, text in enumerate(texts) if text)
        for i, still in enumerate(stills):
            allowed = {""} if i < first else set(texts[max(first, i - 8) : i + 1])
            self.assertIn(still, [self.reference(source, text)[i] for text in allowed])


class File(Stills):
    """A recorded file: every frame shows the caption of its own second."""

    PATTERNS = ("smpte", "ball", "checkers-8", "red", "snow")

    def setUp(self):
        super().setUp()
        self.file = self.path / "in.mkv"
        parts = " ".join(
            f"videotestsrc num-buffers=30 pattern={pattern} ! c." for pattern in self.PATTERNS
        )
        play(f"concat name=c ! jpegenc ! matroskamux ! filesink location={self.file} {parts}")
        self.source = f"filesrc location={self.file} ! decodebin ! videoconvert"

    def check(self, rest):
        stills, texts = self.run_line(f"filesrc location={self.file} ! decodebin ! {rest}")
        self.assertEqual(len(stills), 30 * len(self.PATTERNS))
        for i, text in enumerate(texts):
            self.assertNotEqual(text, "")
            self.assertEqual(text, texts[i - i % 30])
        self.assertGreater(len(set(texts)), 2, "the scenes should be told apart")
        self.compare(self.source, stills, texts)

    def test_through_queue_and_converter(self):
        self.check("vlmcaption name=v interval=1000000000 ! queue ! videoconvert ! textoverlay")

    def test_colon(self):
        self.check("videoconvert ! vlmcaption name=v : textoverlay")


if __name__ == "__main__":
    Gst.init(None)
    unittest.main()
