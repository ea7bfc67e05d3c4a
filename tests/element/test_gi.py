#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin as an application sees it: GStreamer from Python, with a real model.

Exits with 77 (skipped) where Python's GStreamer bindings are not installed. Prints TAP-like lines.
"""

import os
import shutil
import sys
import tempfile

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
except (ImportError, ValueError) as error:
    print(f"skipped: {error}")
    sys.exit(77)

PATIENCE = 120 * Gst.SECOND
CAPTION = {
    "text": str,
    "id": int,
    "pts": int,
    "stream-time": int,
    "running-time": int,
    "age": int,
    "latency": int,
    "prompt-tokens": int,
    "image-tokens": int,
    "tokens": int,
    "finish-reason": str,
}


class Run:
    """Plays a launch line to its end and keeps what went through the element named v."""

    def __init__(self, line):
        self.frames_in = 0
        self.out = []
        self.captions = []
        self.errors = []
        self.warnings = []
        self.pipeline = pipeline = Gst.parse_launch(line)
        element = pipeline.get_by_name("v")
        element.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.count)
        element.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.collect)
        bus = pipeline.get_bus()
        pipeline.set_state(Gst.State.PLAYING)
        self.ended = False
        while not self.ended:
            message = bus.timed_pop(PATIENCE)
            assert message is not None, f"no end: {line}"
            self.take(message)
        self.stats = element.get_property("stats")
        pipeline.set_state(Gst.State.NULL)

    def count(self, _pad, _info):
        self.frames_in += 1
        return Gst.PadProbeReturn.OK

    def collect(self, _pad, info):
        buffer = info.get_buffer()
        meta = buffer.get_custom_meta("GstVlmCaptionMeta")
        fields = {}
        if meta is not None:
            structure = meta.get_structure()
            fields = {name: structure.get_value(name) for name in CAPTION}
        self.out.append((buffer.pts, fields))
        return Gst.PadProbeReturn.OK

    def take(self, message):
        if message.type == Gst.MessageType.EOS:
            self.ended = True
        elif message.type == Gst.MessageType.ERROR:
            # The element's own errors do not end the stream. A pipeline gives a change of state up
            # at the first error, whosever it is, and goes on when it is asked again.
            self.errors.append(message.parse_error()[0])
            self.ended = message.src.get_name() != "v"
            self.pipeline.set_state(Gst.State.PLAYING)
        elif message.type == Gst.MessageType.WARNING:
            self.warnings.append(message.parse_warning()[0])
        elif message.type == Gst.MessageType.ELEMENT and message.has_name("vlmcaption"):
            self.captions.append(message.get_structure().get_value("text"))


def test_meta():
    run = Run("videotestsrc pattern=ball num-buffers=61 ! vlmcaption name=v mode=sync ! fakesink")
    assert not run.errors and not run.warnings, (run.errors, run.warnings)
    assert run.frames_in == len(run.out) == 61
    assert len(run.captions) == 3, run.captions
    for pts, fields in run.out:
        assert fields, f"no caption at {pts}"
        for name, kind in CAPTION.items():
            assert isinstance(fields[name], kind), (name, fields[name])
        number = pts // Gst.SECOND
        assert fields["id"] == number + 1
        assert fields["text"] == run.captions[number] != ""
        assert fields["pts"] == number * Gst.SECOND
        assert fields["age"] == pts - fields["pts"]
        assert fields["finish-reason"] in ("stop", "length", "context")
        assert 0 < fields["image-tokens"] < fields["prompt-tokens"]
    assert run.stats.get_value("mode") == "sync"


def test_meta_survives_scaling():
    texts = []

    def collect(_pad, info):
        meta = info.get_buffer().get_custom_meta("GstVlmCaptionMeta")
        texts.append(meta.get_structure().get_value("text") if meta else None)
        return Gst.PadProbeReturn.OK

    pipeline = Gst.parse_launch(
        "videotestsrc pattern=ball num-buffers=3 ! vlmcaption mode=sync ! videoscale ! "
        "videoconvert ! video/x-raw,format=I420,width=64,height=64 ! fakesink name=s"
    )
    pad = pipeline.get_by_name("s").get_static_pad("sink")
    pad.add_probe(Gst.PadProbeType.BUFFER, collect)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(
        PATIENCE, Gst.MessageType.EOS | Gst.MessageType.ERROR
    )
    pipeline.set_state(Gst.State.NULL)
    assert message is not None and message.type == Gst.MessageType.EOS
    assert len(texts) == 3 and all(texts), texts


def test_auto_mode():
    line = "videotestsrc num-buffers=2 {live} ! vlmcaption name=v interval=0 ! fakesink sync={sync}"
    for live, sync, mode in (
        ("", "false", "sync"),
        ("", "true", "async"),
        ("is-live=true", "false", "async"),
    ):
        run = Run(line.format(live=live, sync=sync))
        assert run.stats.get_value("mode") == mode, (live, sync, run.stats.to_string())


def test_overlay():
    run = Run("videotestsrc pattern=ball num-buffers=90 ! vlmcaption name=v : textoverlay ! fakesink")
    assert run.frames_in == len(run.out) == 90
    assert not run.errors and len(run.captions) == 3


def test_recorded_file(directory):
    path = os.path.join(directory, "ball.mkv")
    recorder = Gst.parse_launch(
        "videotestsrc pattern=ball num-buffers=60 ! jpegenc ! matroskamux ! "
        f"filesink location={path}"
    )
    recorder.set_state(Gst.State.PLAYING)
    recorder.get_bus().timed_pop_filtered(PATIENCE, Gst.MessageType.EOS)
    recorder.set_state(Gst.State.NULL)
    run = Run(
        f"filesrc location={path} ! decodebin ! vlmcaption name=v mode=sync interval=500000000 ! "
        "fakesink"
    )
    assert not run.errors, run.errors
    assert run.frames_in == len(run.out) == 60
    assert len(run.captions) == 4, run.captions


def test_seek(directory):
    """Flushing seeks while captions are made, with an overlay on both pads."""
    path = os.path.join(directory, "ball.mkv")
    for mode, sync in (("sync", "false"), ("async", "true")):
        pipeline = Gst.parse_launch(
            f"filesrc location={path} ! decodebin ! vlmcaption name=v mode={mode} "
            f"interval=200000000 : textoverlay ! fakesink sync={sync}"
        )
        bus = pipeline.get_bus()
        pipeline.set_state(Gst.State.PAUSED)
        assert pipeline.get_state(PATIENCE)[0] == Gst.StateChangeReturn.SUCCESS
        pipeline.set_state(Gst.State.PLAYING)
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE
        for i in range(10):
            position = (i % 4) * Gst.SECOND // 4
            pipeline.seek_simple(Gst.Format.TIME, flags, position)
        message = bus.timed_pop_filtered(PATIENCE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        assert message is not None and message.type == Gst.MessageType.EOS, (mode, message)


def test_missing_model(directory):
    element = Gst.ElementFactory.make("vlmcaption")
    bus = Gst.Bus.new()
    element.set_bus(bus)
    element.set_property("model", os.path.join(directory, "nowhere"))
    assert element.set_state(Gst.State.READY) == Gst.StateChangeReturn.FAILURE
    error = bus.pop_filtered(Gst.MessageType.ERROR).parse_error()[0]
    assert error.matches(Gst.ResourceError.quark(), Gst.ResourceError.NOT_FOUND), error
    element.set_state(Gst.State.NULL)


def test_damaged_model(directory):
    """Weights that end in the middle: one error, and every buffer passes."""
    model = os.path.join(directory, "damaged")
    os.mkdir(model)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "processor_config.json",
                 "preprocessor_config.json", "generation_config.json"):
        with open(os.path.join(model, name), "w", encoding="utf-8") as file:
            file.write('{"model_type": "lfm2_vl"}')
    with open(os.path.join(model, "model.safetensors"), "wb") as file:
        file.write((1 << 20).to_bytes(8, "little") + b'{"a":{"dtype":"F32"')
    for mode in ("async", "sync"):
        run = Run(
            f"videotestsrc num-buffers=30 ! vlmcaption name=v model={model} mode={mode} ! fakesink"
        )
        assert run.frames_in == len(run.out) == 30
        assert not run.captions
        assert len(run.errors) == 1, run.errors
        assert run.errors[0].matches(Gst.StreamError.quark(), Gst.StreamError.FORMAT), run.errors


def main():
    Gst.init(None)
    directory = tempfile.mkdtemp()
    try:
        for name, test in list(globals().items()):
            if not name.startswith("test_"):
                continue
            if test.__code__.co_argcount:
                test(directory)
            else:
                test()
            print(f"ok {name}", flush=True)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
