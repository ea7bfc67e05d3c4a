#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speaks what the camera sees, with eSpeak.

    speak-captions.py [SOURCE [SINK]]

SOURCE is where raw video comes from in the syntax of gst-launch-1.0 (default: v4l2src !
videoconvert), SINK where the voice goes (default: autoaudiosink). Needs gstreamer1.0-espeak.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

Gst.init(None)
source = sys.argv[1] if len(sys.argv) > 1 else "v4l2src ! videoconvert"
sink = sys.argv[2] if len(sys.argv) > 2 else "autoaudiosink"

# text-timing=display: each caption as soon as it is there, once, not when its end is known. An
# appsink that keeps one caption and drops older ones: nobody wants to hear what was seen long ago.
camera = Gst.parse_launch(
    f"{source} ! vlmcaption name=v text-timing=display ! fakesink sync=true "
    "v.text ! appsink name=captions sync=false async=false max-buffers=1 drop=true"
)
captions = camera.get_by_name("captions")


def speak(text):
    """eSpeak is a source that ends with its text."""
    voice = Gst.parse_launch(f"espeak name=espeak ! audioconvert ! audioresample ! {sink}")
    voice.get_by_name("espeak").set_property("text", text)
    voice.set_state(Gst.State.PLAYING)
    voice.get_bus().timed_pop_filtered(
        Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR
    )
    voice.set_state(Gst.State.NULL)


def is_over():
    """A camera that fails has no end of its captions."""
    message = camera.get_bus().pop_filtered(Gst.MessageType.ERROR)
    if message:
        print(message.parse_error()[0].message, file=sys.stderr)
    return bool(message) or captions.get_property("eos")


camera.set_state(Gst.State.PLAYING)
last = ""
while not is_over():
    sample = captions.emit("try-pull-sample", Gst.SECOND)
    if sample is None:
        continue
    buffer = sample.get_buffer()
    text = buffer.extract_dup(0, buffer.get_size()).decode()
    if text != last:
        print(text, flush=True)
        speak(text)
    last = text
camera.set_state(Gst.State.NULL)
