# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-bench: what it measures is there, and no rate is beyond its limit."""

import json
import os
import re
import shutil
import statistics
import unittest
import xml.etree.ElementTree as ElementTree

from toolkit import DEMO_MODEL, ToolTest, main, run

BENCH = os.environ["VLM_BENCH"]
LEVELS = ("scalar", "orc", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm", "avxvnni-evex")
# A limit is measured beside the work that it limits, not at the same time.
MOST = 1.05
ATTEMPTS = 3


def bench(*args, **kwargs):
    return run(BENCH, "--kernels", "--quick", *args, **kwargs)


def measure(*args):
    return json.loads(bench("--json", *args)[0])


class Kernels(unittest.TestCase):
    def check_result(self, result):
        self.assertIn(result["level"], LEVELS)
        self.assertGreater(result["rate"], 0)
        self.assertIn(result["unit"], ("GFLOPS", "GOPS", "GB/s", "Gval/s"))
        self.assertEqual(result["limit"] is None, result["unit"] == "Gval/s", result)
        if result["limit"] is not None:
            self.assertGreater(result["share"], 0, result)

    def test_all_levels(self):
        found = measure()
        results = found["results"]
        levels = list(dict.fromkeys(result["level"] for result in results))
        best = found["machine"]["best_level"]
        self.assertEqual(levels[:2], ["scalar", "orc"])
        self.assertIn(best, levels)
        # In ascending order, each level once, and none above the best but the one for tests.
        self.assertEqual(levels, sorted(levels, key=LEVELS.index))
        self.assertLessEqual(set(levels[levels.index(best) + 1:]), {"avxvnni-evex"})
        for result in results:
            self.check_result(result)
        kernels = {level: {r["kernel"] for r in results if r["level"] == level} for level in levels}
        self.assertEqual(kernels["orc"], {"quantise_i8", "resample_column"})
        self.assertLessEqual({"matmul_f32", "matmul_int", "attention", "quantise_i8"}, kernels["scalar"])
        for level in levels[2:]:
            self.assertIn("matmul_int", kernels[level], level)
        # Every line is another case.
        cases = [tuple(r[key] for key in ("level", "kernel", "format", "shape")) for r in results]
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(found["runs"] % 2, 1)
        self.assertGreaterEqual(found["runs"], 5)

    def test_nothing_beyond_its_limit(self):
        """Other programs on the machine can disturb one attempt."""
        level = measure("--level", "scalar")["machine"]["best_level"]
        for attempt in range(ATTEMPTS):
            results = measure("--level", level, "--threads", "1")["results"]
            beyond = [r for r in results if r["limit"] is not None and r["share"] > MOST]
            if not beyond:
                break
        self.assertEqual(beyond, [])

    def test_one_level_has_everything(self):
        every = {r["kernel"] for r in measure("--level", "scalar", "--threads", "1")["results"]}
        orc = measure("--level", "orc", "--threads", "1")
        self.assertEqual({r["level"] for r in orc["results"]}, {"orc"})
        self.assertEqual({r["kernel"] for r in orc["results"]}, every)
        self.assertEqual(orc["threads"], 1)

    def test_lines(self):
        out, _ = bench("--level", "orc", "--threads", "2")
        lines = out.decode().splitlines()
        self.assertRegex(lines[0], r"^# .+, \d+ CPUs, load [\d.]+; best level \w+; compiler .+; 2 threads$")
        self.assertEqual(lines[1].split(), ["level", "kernel", "format", "shape", "rate", "limit", "share"])
        for line in lines[2:]:
            self.assertRegex(line, r"^orc +\w+ .* +[\d.]+ (GFLOPS|GOPS|GB/s) +[\d.]+ +\d+ %$"
                             r"|^orc +\w+ .* +[\d.]+ Gval/s$")

    def test_command_line(self):
        for args in ((), ("--kernels", "--threads", "-1"), ("--kernels", "word"), ("--unknown",)):
            _, errors = run(BENCH, *args, status=2)
            self.assertTrue(errors.startswith("vlm-bench: "), errors)
        _, errors = bench("--level", "avx3", status=1)
        self.assertIn("avx3", errors)
        self.assertIn("--kernels", run(BENCH, "--help")[0].decode())
        self.assertRegex(run(BENCH, "--version")[0].decode(), r"^vlm-bench \d")


class Stages(unittest.TestCase):
    def test_json(self):
        out, _ = run(BENCH, "--json", "--runs", "3", "--max-tokens", "4", "--threads", "1", DEMO_MODEL)
        found = json.loads(out)
        self.assertEqual((found["threads"], found["runs"]), (1, 3))
        self.assertFalse(found["fast"])
        self.assertGreater(found["image_tokens"], 0)
        self.assertGreater(found["prompt_tokens"], found["image_tokens"])
        self.assertLessEqual(found["answer_tokens"], 4)
        self.assertLess(found["token_bytes"], found["weight_bytes"])
        stages = [found[name] for name in ("image", "vision", "prefill", "token")]
        self.assertGreater(min(stages), 0)
        # Every median is below that of the whole, which has these stages and more.
        self.assertLess(max(stages), found["total"])
        self.assertGreater(found["read"], 1e8)
        self.assertEqual(found["shape"], {"patches": 4 * found["image_tokens"], "text_layers": 4, "text_width": 128,
                                          "vision_layers": 4, "vision_width": 128})
        # Weights and what the program needs beside them, but not the memory that is read for comparison.
        self.assertLess(found["weight_bytes"], found["peak_bytes"])
        self.assertLess(found["peak_bytes"], found["weight_bytes"] + 100e6)
        for name in ("image", "vision", "prefill", "token", "total", "read"):
            self.assertEqual(len(found["samples"][name]), 3)
            self.assertAlmostEqual(statistics.median(found["samples"][name]) / found[name], 1, places=4)

    def test_lines(self):
        out, _ = run(BENCH, "--precision", "fast", "--runs", "1", "-n", "2", DEMO_MODEL)
        lines = out.decode().splitlines()
        self.assertRegex(lines[0], r"^# .+ threads$")
        self.assertRegex(lines[1], r"integers, [\d.]+ MB of weights, loaded in [\d.]+ s, peak memory [\d.]+ MB$")
        for name, line in zip(("image", "vision", "prefill", "token", "total"), lines[3:8]):
            self.assertRegex(line, rf"^{name} +[\d.]+ ms$")
        self.assertRegex(lines[8], r"GB/s, \d+ % of the [\d.]+ GB/s of a plain read$")

    def test_no_such_model(self):
        _, errors = run(BENCH, "/no/such/model", status=1)
        self.assertIn("/no/such/model", errors)

    def test_command_line(self):
        for args in (("a", "b"), ("--kernels", DEMO_MODEL), ("--precision", "quick", DEMO_MODEL),
                     ("--runs", "0", DEMO_MODEL), ("--kernels", "--plot", "x.svg")):
            _, errors = run(BENCH, *args, status=2)
            self.assertTrue(errors.startswith("vlm-bench: "), errors)


SVG = "{http://www.w3.org/2000/svg}"
FIGURE = re.compile(r"([\d.]+) ms$")


class Plot(ToolTest):
    def draw(self, runs):
        model, path = self.path("a & b\x01 <model>"), self.path("plot.svg")
        shutil.copytree(DEMO_MODEL, model)
        out, _ = run(BENCH, "--json", "--runs", str(runs), "-n", "2", "--threads", "1", "--plot", path, model)
        return json.loads(out), ElementTree.parse(path).getroot()

    def test_bars_and_histogram(self):
        found, root = self.draw(5)
        self.assertEqual(root.tag, SVG + "svg")
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("a & b? <model>", texts)
        self.assertIn("prefers-color-scheme: dark", root.find(SVG + "style").text)
        bars = {}
        for bar in root.iter(SVG + "rect"):
            title = bar.find(SVG + "title")
            if title is not None:
                bars[title.text] = bar
        stages = {text.split(":")[0]: bar for text, bar in bars.items() if ":" in text}
        self.assertEqual(list(stages), ["image", "vision", "prefill", "token", "total"])
        # A bar is as long, beside that of the whole, as its time says.
        for name, bar in stages.items():
            length = float(bar.get("width")) / float(stages["total"].get("width"))
            self.assertAlmostEqual(length, found[name] / found["total"], delta=0.01, msg=name)
            self.assertIn("%.2f ms" % (found[name] * 1e3), texts)
        # Every run is in one column of the histogram, the slowest and the fastest at its ends.
        counts = [int(text.split()[0]) for text in bars if " runs of " in text]
        self.assertEqual(sum(counts), 5)
        totals = found["samples"]["total"]
        ends = [float(FIGURE.search(text).group(1)) for text in texts[-3:-1]]
        for end, wanted in zip(ends, (min(totals), max(totals))):
            self.assertAlmostEqual(end, wanted * 1e3, delta=0.06 + wanted)

    def test_everything_within_the_picture(self):
        _, root = self.draw(1)
        width, height = (float(root.get(side)) for side in ("width", "height"))
        for bar in root.iter(SVG + "rect"):
            self.assertLessEqual(float(bar.get("x", 0)) + float(bar.get("width")), width)
            self.assertLessEqual(float(bar.get("y", 0)) + float(bar.get("height")), height)

    def test_cannot_be_written(self):
        _, errors = run(BENCH, "--runs", "1", "-n", "2", "--plot", self.path("no", "such.svg"), DEMO_MODEL, status=1)
        self.assertIn("such.svg", errors)


if __name__ == "__main__":
    main()
