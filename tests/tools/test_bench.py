# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-bench: what it measures is there, and no rate is beyond its limit."""

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from toolkit import DEMO_MODEL, MODEL_TOOL, SMALL, ToolTest, main, run

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
            self.assertIn("matmul_tiled" if level == "amx" else "matmul_int", kernels[level], level)
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
        for line in lines[2:-1]:
            self.assertRegex(line, r"^orc +\w+ .* +[\d.]+ (GFLOPS|GOPS|GB/s) +[\d.]+ +\d+ %$"
                             r"|^orc +\w+ .* +[\d.]+ Gval/s$")
        self.assertRegex(lines[-1], r"^# a run handed to all threads costs -?[\d.]+ us, -?[\d.]+ us when they were asleep$")

    def test_team(self):
        """Threads that were asleep come later than those that were not; other programs can disturb one attempt."""
        for attempt in range(ATTEMPTS):
            team = measure("--level", "orc", "--threads", "2")["team_us"]
            if 0 < team["hot"] < team["asleep"] < 1e5:
                break
        else:
            self.fail(team)

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
        # The stages do not overlap.
        for image, vision, prefill, token, total in zip(*(found["samples"][name] for name in (
                "image", "vision", "prefill", "token", "total"))):
            self.assertLess(image + vision + prefill + token * (found["answer_tokens"] - 1), total)
        # Weights and what the program needs beside them, but not the memory that is read for comparison.
        self.assertLess(found["weight_bytes"], found["peak_bytes"])
        self.assertLess(found["peak_bytes"], found["weight_bytes"] + 100e6)
        for name in ("image", "vision", "prefill", "token", "total", "read", "peak"):
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
        for name, line in zip(("vision", "prefill", "token"), lines[9:12]):
            self.assertRegex(line, rf"^{name} +[\d.]+ G operations, [\d.]+ a byte: [\d.]+ GOPS, \d+ % of [\d.]+$")
        self.assertRegex(lines[12], r"^(int8|bfloat16) peak of \w+ on registers alone: [\d.]+ GOPS$")

    def test_no_such_model(self):
        _, errors = run(BENCH, "/no/such/model", status=1)
        self.assertIn("/no/such/model", errors)

    def test_command_line(self):
        for args in (("a", "b"), ("--kernels", DEMO_MODEL), ("--precision", "quick", DEMO_MODEL),
                     ("--runs", "0", DEMO_MODEL), ("--kernels", "--plot", "x.svg")):
            _, errors = run(BENCH, *args, status=2)
            self.assertTrue(errors.startswith("vlm-bench: "), errors)


def shape_of(model):
    return json.loads(run(MODEL_TOOL, "info", "--json", model)[0])


class Work(ToolTest):
    """What vlm-bench says that the stages are, against the same counted here, product by product."""

    def products(self, info, image_tokens, prompt_tokens, kept_tokens):
        """(rows, columns, width) of every product of a picture in one piece, and of the prompt."""
        text, vision, projector = info["text"], info["vision"], info["projector"]
        n, width, hidden = 4 * image_tokens, vision["hidden_size"], text["hidden_size"]
        picture = [(n, vision["patch_size"] ** 2 * 3, width)]
        for _ in range(vision["n_layers"]):
            picture += [(n, width, 3 * width), (n, width, width), (n, width, vision["ff_size"]),
                        (n, vision["ff_size"], width)]
            picture += [(n, vision["head_dim"], n), (n, n, vision["head_dim"])] * vision["n_heads"]
        picture += [(image_tokens, 4 * width, projector["hidden_size"]),
                    (image_tokens, projector["hidden_size"], hidden)]
        return picture, self.prompt_products(text, prompt_tokens, kept_tokens)

    def prompt_products(self, text, n_tokens, n_kept):
        """Without what neither the last token nor the cache depends on, from the last layer to the first."""
        hidden, ff, heads, dim = text["hidden_size"], text["ff_size"], text["n_heads"], text["head_dim"]
        products, rows, everything = [(1, hidden, text["vocab_size"])], 1, n_tokens - n_kept
        for kind in reversed(text["layer_types"]):
            if kind == "conv":
                rows = min(everything, rows + text["conv_taps"] - 1)
                products += [(rows, hidden, 4 * hidden), (rows, text["conv_taps"], hidden)]
            else:
                products += [(everything, hidden, (heads + 2 * text["n_kv_heads"]) * dim), (rows, heads * dim, hidden)]
                for i in range(n_tokens - rows, n_tokens):
                    products += [(1, dim, i + 1), (1, i + 1, dim)] * heads
            products += [(rows, hidden, 2 * ff), (rows, ff, hidden)]
            rows = everything if kind != "conv" else rows
        return products

    def measure(self, model, *args):
        return json.loads(run(BENCH, "--json", "--runs", "1", "-n", "4", "-j", "1", *args, model)[0])

    def test_operations(self):
        for model in (DEMO_MODEL, SMALL):
            found = self.measure(model)
            wanted = self.products(shape_of(model), found["image_tokens"], found["prompt_tokens"],
                                   found["kept_tokens"])
            self.assertGreater(found["kept_tokens"], 0)
            for stage, products in zip(("vision", "prefill"), wanted):
                self.assertAlmostEqual(found["work"][stage]["operations"] / sum(2 * a * b * c for a, b, c in products),
                                       1, places=5, msg=(model, stage))

    def test_bytes(self):
        """A token reads its weights, what its products take in, and the keys and values before it."""
        for precision, value in (("exact", 4), ("fast", 1)):
            found = self.measure(DEMO_MODEL, "--precision", precision)
            text = shape_of(DEMO_MODEL)["text"]
            n_conv = text["layer_types"].count("conv")
            n_attention = len(text["layer_types"]) - n_conv
            width, query, key = (text["hidden_size"], text["n_heads"] * text["head_dim"],
                                 text["n_kv_heads"] * text["head_dim"])
            inputs = n_conv * (3 * width + text["ff_size"]) + n_attention * (2 * width + query + text["ff_size"])
            # The mean of the tokens that are decoded; the first one comes out of the prompt.
            before = found["prompt_tokens"] + (found["answer_tokens"] - 2) / 2
            wanted = found["token_bytes"] + value * inputs + n_attention * 4 * (query + 2 * (before + 1) * key)
            self.assertAlmostEqual(found["work"]["token"]["bytes"] / wanted, 1, places=5, msg=precision)
            # The prompt, too, goes through in one piece, but for what was known, and what nobody asks for.
            n, known = found["prompt_tokens"] - found["kept_tokens"], found["kept_tokens"]
            self.assertLessEqual(n, 128)
            wanted = found["token_bytes"] + n * (value * inputs + n_attention * 4 * (query + 2 * key))
            wanted += n_attention * 4 * 2 * known * key
            rows = 1
            for kind in reversed(text["layer_types"]):
                if kind != "conv":
                    wanted -= (n - rows) * (value * (query + width + text["ff_size"]) + 4 * query)
                    break
                rows += text["conv_taps"] - 1
                wanted -= (n - rows) * value * (3 * width + text["ff_size"])
            self.assertAlmostEqual(found["work"]["prefill"]["bytes"] / wanted, 1, places=5, msg=precision)

    def test_bytes_of_a_picture(self):
        """Weights of the tower and the projector, as they are in the file but for the edges of panels."""
        info, found = shape_of(SMALL), self.measure(SMALL)
        vision, projector = info["vision"], info["projector"]
        tokens, width = found["image_tokens"], vision["hidden_size"]
        weights = sum(entry["bytes"] for entry in info["weights"]
                      if entry["part"] in ("vision", "projector") and entry["matrices"])
        inputs = 4 * tokens * vision["n_layers"] * (3 * width + vision["ff_size"]) + tokens * (
            4 * width + projector["hidden_size"])
        attention = 3 * 4 * tokens * vision["n_layers"] * width
        pixels = 4 * tokens * vision["patch_size"] ** 2 * 3
        rest = found["work"]["vision"]["bytes"] - 4 * (inputs + attention + pixels)
        self.assertGreaterEqual(rest, weights)
        self.assertLess(rest, 1.5 * weights)

    def test_shares(self):
        found = self.measure(DEMO_MODEL, "--precision", "fast")
        self.assertEqual(found["peak_kind"], "bfloat16" if found["level"] == "amx" else "int8")
        self.assertEqual(found["level"], found["machine"]["best_level"])
        self.assertEqual(self.measure(DEMO_MODEL)["peak_kind"], "float32")
        for stage in ("vision", "prefill", "token"):
            work = found["work"][stage]
            self.assertAlmostEqual(work["rate"] * found[stage] / work["operations"], 1, places=4)
            self.assertAlmostEqual(work["intensity"] * work["bytes"] / work["operations"], 1, places=4)
            roof = min(found["peak"], work["intensity"] * found["read"])
            self.assertAlmostEqual(work["roof"] / roof, 1, places=4)
            self.assertAlmostEqual(work["share"] * work["roof"] / work["rate"], 1, places=4)
            self.assertLess(work["rate"], found["peak"], stage)


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
        # A bar is as long, beside that of the whole, as its time says, but never too short to be seen:
        # one slow run, which must fit in too, makes all bars short.
        whole = float(stages["total"].get("width"))
        for name, bar in stages.items():
            length = max(whole * found[name] / found["total"], 1)
            self.assertAlmostEqual(float(bar.get("width")), length, delta=0.2, msg=name)
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
        for drawing in ("--plot", "--roofline"):
            _, errors = run(BENCH, "--runs", "1", "-n", "2", drawing, self.path("no", "such.svg"), DEMO_MODEL, status=1)
            self.assertIn("such.svg", errors)


class Roofline(ToolTest):
    def test_points_below_their_roof(self):
        path = self.path("roof.svg")
        out, _ = run(BENCH, "--json", "--runs", "1", "-n", "4", "-j", "1", "--precision", "fast", "--roofline", path,
                     DEMO_MODEL)
        found, root = json.loads(out), ElementTree.parse(path).getroot()
        points = {point.find(SVG + "title").text.split(":")[0]: point for point in root.iter(SVG + "circle")}
        self.assertEqual(list(points), ["vision", "prefill", "token"])
        # Both scales are logarithmic: two points fix them, the third and the peak's line must fit.
        place = {name: (float(point.get("cx")), float(point.get("cy"))) for name, point in points.items()}
        logs = {name: [math.log10(found["work"][name][key]) for key in ("intensity", "rate")] for name in points}
        peak = [line for line in root.iter(SVG + "line") if line.get("class") == "line"][1]
        self.assertEqual(peak.get("y1"), peak.get("y2"))
        for axis in (0, 1):
            scale = (place["vision"][axis] - place["token"][axis]) / (logs["vision"][axis] - logs["token"][axis])
            self.assertEqual(scale > 0, axis == 0)
            fitted = place["token"][axis] + scale * (logs["prefill"][axis] - logs["token"][axis])
            self.assertAlmostEqual(place["prefill"][axis], fitted, delta=0.5)
        peak_y = place["token"][1] + scale * (math.log10(found["peak"]) - logs["token"][1])
        self.assertAlmostEqual(float(peak.get("y1")), peak_y, delta=0.5)
        for x, y in place.values():
            self.assertTrue(0 < x < float(root.get("width")) and 0 < y < float(root.get("height")))


class Scaling(unittest.TestCase):
    """What is measured, and that it is judged as --help says. How well it scales is not for a test on any machine."""

    def scale(self, *args):
        done = subprocess.run([BENCH, "--scaling", *args, SMALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode, done.stdout.decode()

    def judge(self, results, runs):
        """Growth and whether it is met, from the samples."""
        first = least = None
        for r in results:
            self.assertEqual(len(r["samples"]), runs)
            self.assertAlmostEqual(r["median"] / statistics.median(r["samples"]), 1, places=4)
            first = r if first is None or first["series"] != r["series"] else first
            if r["series"] == "threads":
                growth = statistics.median(a / b for a, b in zip(first["samples"], r["samples"]))
                growth *= r["operations"] / first["operations"]
                met = growth >= 0.925 * r["size"]
            else:
                growth = r["median"] / r["operations"] * first["operations"] / first["median"]
                least = growth if r is first else least
                met = growth <= 1.25 * least
                least = min(least, growth)
            self.assertAlmostEqual(r["growth"] / growth, 1, places=4)
            self.assertEqual(r["met"], met or r is first, r)

    def test_all_series(self):
        status, out = self.scale("all", "--json", "--runs", "3", "-j", "2")
        found = json.loads(out)
        sizes = {}
        for stage in ("vision", "prefill"):
            results = [r for r in found["results"] if r["stage"] == stage]
            self.judge(results, 3)
            for r in results:
                sizes.setdefault((stage, r["series"]), []).append(r["size"])
        cases = {"threads": [1, 2], "image": [64, 100, 144, 196, 256], "tiles": [1, 2, 4, 7, 10],
                 "prompt": [64, 128, 256, 512, 1024]}
        wanted = {(stage, series): size for stage in ("vision", "prefill") for series, size in cases.items()}
        del wanted["vision", "prompt"]
        self.assertEqual(sizes, wanted)
        for r in found["results"]:
            tokens = {"threads": 256, "image": r["size"], "tiles": 256 * r["size"], "prompt": 0}[r["series"]]
            self.assertEqual(r["image_tokens"], tokens, r)
            self.assertGreater(r["prompt_tokens"], tokens)
        # Tiles are so many times the work of one.
        tiles = [r["operations"] for r in found["results"] if (r["series"], r["stage"]) == ("tiles", "vision")]
        for count, operations in zip(cases["tiles"], tiles):
            self.assertAlmostEqual(operations / tiles[0], count, places=4)
        self.assertEqual(found["met"], all(r["met"] for r in found["results"]))
        self.assertEqual(status, 0 if found["met"] else 3)

    def test_lines(self):
        status, out = self.scale("image", "--runs", "1", "-j", "1")
        lines = out.splitlines()
        self.assertEqual(lines[2].split(), ["series", "stage", "size", "tokens", "G", "op", "ms", "GOPS", "growth"])
        self.assertEqual(len(lines), 13)
        for line in lines[3:]:
            self.assertRegex(line, r"^image +(vision|prefill)( +\d+){2}( +[\d.]+){4}  (missed)?$")
        self.assertEqual(status, 3 if "missed" in out else 0)

    def test_command_line(self):
        for args in (("--scaling", "width", SMALL), ("--scaling", "all"), ("--scaling", "all", "--kernels"),
                     *(("--scaling", "all", drawing, "x.svg", SMALL) for drawing in ("--plot", "--roofline"))):
            _, errors = run(BENCH, *args, status=2)
            self.assertTrue(errors.startswith("vlm-bench: "), errors)


if __name__ == "__main__":
    main()
