# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contact sheet: what stands in the page, and how it works in Chromium."""

import base64
import html.parser
import io
import json
import os
import unittest

import browser
from toolkit import ToolTest, main, run

try:
    from PIL import Image
except ImportError:
    Image = None

WRITE_CUES = os.environ["VLM_WRITE_CUES"]
SECOND = 1_000_000_000

HOSTILE = "</p><script>window.hacked=1</script><img src=x onerror='window.hacked=2'> & \" ' `"


def jpeg(colour, size=(320, 180)):
    """A thumbnail of one colour in base64."""
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "JPEG", quality=80)
    return base64.b64encode(out.getvalue()).decode()


def sample(folder):
    """Three inputs: a video in the sheet's folder, one elsewhere with hostile names, a picture."""
    red, blue = jpeg("red"), jpeg("blue", (180, 320))
    beach = "file://" + folder + "/holiday%20%23/beach.mp4"
    texts = ["A red circle is left of a blue square.", "Two green stars.", "A café by the sea.\nPeople sit outside."]
    cues = [{"input": "holiday #/beach.mp4", "uri": beach, "pts": i * 2 * SECOND, "end": (i + 1) * 2 * SECOND,
             "text": text, "thumbnail": red, "model": "tiny & <fast>"} for i, text in enumerate(texts)]
    cues.append({"input": HOSTILE, "uri": "rtsp://camera.invalid/'x'", "pts": 3723 * SECOND, "end": 3723 * SECOND + SECOND // 2,
                 "text": HOSTILE, "utc": 1790000000000000, "thumbnail": blue, "model": "tiny & <fast>"})
    cues.append({"input": "photo\x07.jpg", "uri": "file:///elsewhere/photo.jpg", "still": True, "end": 0,
                 "text": "一辆红色的汽车\x1b", "model": "tiny & <fast>"})
    return cues


class Page(html.parser.HTMLParser):
    """The tags of a page, in order, and the text in each section."""

    VOID = ("img", "input", "meta")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError("</%s> closes something else" % tag)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


class SheetTest(ToolTest):
    def write(self, cues, name="sheet.html"):
        run(WRITE_CUES, "html", self.path(name), stdin=json.dumps(cues))
        return self.path(name)

    def page(self, cues):
        with open(self.write(cues), encoding="utf-8", newline="") as f:
            return f.read()


@unittest.skipUnless(Image, "needs python3-pil")
class Markup(SheetTest):
    def test_structure(self):
        text = self.page(sample(self.path()))
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
        self.assertEqual(len(page.all("section")), 3)
        self.assertEqual(len(page.all("figure")), 5)
        self.assertEqual(len(page.all("script")), 1)
        for character in text:
            self.assertTrue(character == "\n" or character.isprintable(), repr(character))
        for expected in (HOSTILE, "A café by the sea.\nPeople sit outside.", "photo.jpg", "一辆红色的汽车", "3 captions",
                         "1 caption", "0:02 – 0:04", "1:02:03.0 – 1:02:03.5", "2026-09-21 14:13:20 UTC",
                         "5 captions in 3 files, by tiny & <fast>", "no picture"):
            self.assertIn(expected, page.texts)
        self.assertEqual([a["datetime"] for a in page.all("time")], ["2026-09-21T14:13:20Z"])

    def test_self_contained(self):
        page = Page(self.page(sample(self.path())))
        policy = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        self.assertIn("default-src 'none'; img-src data:;", policy[0])
        for _, attributes in page.tags:
            for name in ("src", "srcset", "data", "poster", "background", "action"):
                if name in attributes:
                    self.assertTrue(attributes[name].startswith("data:image/jpeg;base64,"), attributes)
        self.assertFalse(page.all("link"))
        pictures = page.all("img")
        self.assertEqual(base64.b64decode(pictures[0]["src"].split(",")[1]), base64.b64decode(jpeg("red")))
        self.assertEqual([a["loading"] for a in pictures], ["lazy"] * 4)
        self.assertEqual([a["alt"] for a in pictures][0::3], ["Frame of holiday #/beach.mp4 at 0:00",
                                                              "Frame of %s at 1:02:03" % HOSTILE])

    def test_links(self):
        """To the file, at the cue's time; relative where the file lies below the sheet. Nothing else is a link."""
        page = Page(self.page(sample(self.path())))
        self.assertEqual([a["href"] for a in page.all("a") if "class" in a],
                         ["./holiday%20%23/beach.mp4#t=0.000", "./holiday%20%23/beach.mp4#t=2.000",
                          "./holiday%20%23/beach.mp4#t=4.000", "file:///elsewhere/photo.jpg"])
        for uri in ("javascript:alert(1)", "data:text/html,x", "no uri", "", "JavaScript:alert(1)"):
            page = Page(self.page([{"uri": uri, "end": SECOND}]))
            self.assertEqual(page.all("a"), [], uri)

    def test_empty(self):
        page = Page(self.page([]))
        self.assertIn("There are no captions.", page.texts)


@unittest.skipUnless(Image, "needs python3-pil")
@unittest.skipUnless(browser.AVAILABLE, "needs chromium and chromium-driver")
class Chromium(SheetTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def show(self, cues):
        self.browser.open(self.write(cues))

    def shown(self):
        """The captions that can be seen, in order."""
        return self.browser.script("return Array.from(document.querySelectorAll('.cues > li'))"
                                   ".filter(e => e.checkVisibility()).map(e => e.querySelector('.text').textContent)")

    def count(self):
        return self.browser.script("return document.getElementById('count').value")

    def focus(self):
        return self.browser.script("const e = document.activeElement; return e.id || e.className || e.tagName")

    def test_browser_search(self):
        cues = sample(self.path())
        self.show(cues)
        texts = [cue["text"].replace("\x1b", "") for cue in cues]
        self.assertEqual(self.shown(), texts)
        self.browser.press("/")
        self.assertEqual(self.focus(), "query")
        # As one types: after each key.
        for typed, expected in (("r", [0, 1, 3]), ("e", [0, 1]), ("d", [0]), (" ", [0]), ("s", [0]), ("t", [])):
            self.browser.press(typed)
            self.assertEqual(self.shown(), [texts[i] for i in expected], typed)
        self.assertEqual(self.browser.script("return document.getElementById('query').value"), "red st")
        self.assertEqual(self.shown(), [])
        self.assertEqual(self.count(), "0 of 5")
        nothing = "return document.getElementById('nothing').checkVisibility()"
        self.assertTrue(self.browser.script(nothing))
        self.browser.press("escape")
        self.assertEqual(self.shown(), texts)
        self.assertEqual(self.count(), "")
        self.assertFalse(self.browser.script(nothing))

    def search(self, words):
        self.browser.script("const box = document.getElementById('query'); box.value = arguments[0];"
                            "box.dispatchEvent(new Event('input', {bubbles: true}))", words)
        return self.shown()

    def test_browser_words(self):
        cues = sample(self.path())
        self.show(cues)
        first, second, cafe, hostile, car = (cue["text"].replace("\x1b", "") for cue in cues)
        for words, expected in (("CIRCLE", [first]), ("square red", [first]), ("cafe", [cafe]), ("CAFÉ", [cafe]),
                                ("outside", [cafe]), ("beach stars", [second]), ("beach", [first, second, cafe]),
                                ("红色", [car]), ("<script>", [hostile]), ("0:02", [first, second]), ("2026", [hostile]),
                                ("", [first, second, cafe, hostile, car]), ("  ", [first, second, cafe, hostile, car])):
            self.assertEqual(self.search(words), expected, words)
        self.search("circle")
        self.assertEqual(self.count(), "1 of 5")
        sections = "return Array.from(document.querySelectorAll('section')).map(e => e.checkVisibility())"
        self.assertEqual(self.browser.script(sections), [True, False, False])
        self.assertEqual(self.browser.script("return Array.from(CSS.highlights.get('found'), r => r.toString())"), ["circle"])

    def test_browser_nothing_runs(self):
        self.show(sample(self.path()))
        self.assertIsNone(self.browser.script("return window.hacked ?? null"))
        self.assertEqual(self.browser.script("return document.scripts.length"), 1)
        self.assertEqual(self.browser.script("return document.title"), "Captions")
        loaded = self.browser.script("return performance.getEntriesByType('resource').map(e => e.name)")
        self.assertEqual([name for name in loaded if not name.startswith("data:")], [])

    def test_browser_pictures(self):
        self.show(sample(self.path()))
        sizes = self.browser.script(
            "return Promise.all(Array.from(document.images, i => { i.scrollIntoView(); return i.decode()"
            ".then(() => [i.naturalWidth, i.naturalHeight, i.alt !== '']) }))")
        self.assertEqual(sizes, [[320, 180, True]] * 3 + [[180, 320, True]])

    def test_browser_keyboard(self):
        self.show(sample(self.path()))
        self.browser.press("tab")
        self.assertEqual(self.focus(), "query")
        self.browser.press("tab")
        self.assertEqual(self.focus(), "SUMMARY")
        self.browser.press("tab")
        self.assertEqual(self.focus(), "frame")
        self.assertTrue(self.browser.script("return document.activeElement.href.endsWith('beach.mp4#t=0.000')"))
        self.assertNotEqual(self.browser.script("return getComputedStyle(document.activeElement).outlineStyle"), "none")

    def test_browser_dark(self):
        self.show(sample(self.path()))
        colours = {}
        for scheme in ("light", "dark"):
            self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            colours[scheme] = self.browser.script(
                "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
                ".map(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))")
        self.assertGreater(colours["light"][0], colours["light"][1] + 400)
        self.assertGreater(colours["dark"][1], colours["dark"][0] + 400)

    def test_browser_many(self):
        """2,000 cues: the page opens, only what is near the window is laid out."""
        pictures = [jpeg((i * 12, 255 - i * 12, 128)) for i in range(20)]
        self.show([{"input": "file %d" % (i // 100), "pts": i * SECOND, "end": (i + 1) * SECOND, "thumbnail": pictures[i % 20],
                    "text": "Caption number %d of a series of many." % i} for i in range(2000)])
        self.assertEqual(self.browser.script("return document.querySelectorAll('.cues > li').length"), 2000)
        near = self.browser.script("return Array.from(document.querySelectorAll('.text'))"
                                   ".filter(e => e.checkVisibility({contentVisibilityAuto: true})).length")
        self.assertGreater(near, 0)
        self.assertLess(near, 200)
        self.assertEqual(self.search("number 1777"), ["Caption number 1777 of a series of many."])
        self.assertEqual(self.count(), "1 of 2000")


if __name__ == "__main__":
    main()
