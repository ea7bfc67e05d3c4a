# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contestants: each measures itself once when asked, and tells what it worked on."""

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import peers_table
from peers_table import OURS

PROMPT = "Describe this picture in one sentence."
HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "peers_worker.py")
TIMEOUT = 300


class Failed(Exception):
    """A contestant did not do what it should."""


class Setup:
    """What all contestants share."""

    def __init__(self, work, build, llama, python, threads, tokens, prefix):
        self.work, self.build, self.llama, self.python = work, build, llama, python
        self.threads, self.tokens, self.prefix = threads, tokens, prefix
        self.picture = os.path.join(work, "picture.png")

    def tool(self, name):
        return os.path.join(self.build, "tools", name)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def run(self, command):
        """Output, errors, seconds and peak memory (bytes) of a program."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            since = time.perf_counter()
            process = subprocess.Popen(self.prefix + command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
            timer = threading.Timer(TIMEOUT, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - since
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for file in (out, errors):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        if process.returncode != 0:
            raise Failed("%s gave %d: %s" % (" ".join(command), process.returncode, texts[1][-2000:]))
        return texts[0], texts[1], seconds, usage.ru_maxrss * 1024


class Ours:
    """vlm-bench with one model: all stages from one run."""

    def __init__(self, setup, label, model, file):
        self.setup, self.name, self.model, self.file = setup, "%s, %s" % (OURS, label), model, file

    def measure(self):
        setup = self.setup
        out, _, _, _ = setup.run([setup.tool("vlm-bench"), "--json", "--runs", "1", "-n", str(setup.tokens), "-j",
                               str(setup.threads), self.model])
        found = json.loads(out)
        shape = dict(found["shape"], threads=found["threads"], image_tokens=found["image_tokens"],
                     prompt_tokens=found["prompt_tokens"], answer_tokens=found["answer_tokens"],
                     prefilled_tokens=found["prompt_tokens"] - found["kept_tokens"],
                     decoded_tokens=found["answer_tokens"] - 1)
        stages = {"vision": "vision", "prefill": "prefill", "decode": "token", "frame to caption": "total"}
        more = {"decode": {"token_bytes": found["token_bytes"]},
                "frame to caption": {"peak_bytes": found["peak_bytes"]}}
        return [(stage, self.name, shape, found[key], dict(more.get(stage, {}), file=self.file,
                                                            kernels=[found["level"]]))
                for stage, key in stages.items()]


COUNTS = re.compile(r"(\d+) prompt tokens \((\d+) of pictures\), (\d+) answer tokens")


class OursFromStart:
    """vlm-caption from its start to its end, with one picture."""

    def __init__(self, setup, label, model, file):
        self.setup, self.name, self.model, self.file = setup, "%s, %s" % (OURS, label), model, file
        out = subprocess.run([setup.tool("vlm-model"), "info", "--json", model], check=True,
                             stdout=subprocess.PIPE).stdout
        info = json.loads(out)
        self.patches_a_token = info["projector"]["downsample_factor"] ** 2
        self.shape = {"%s_%s" % (part, name): info[part][key] for part in ("text", "vision")
                      for name, key in (("layers", "n_layers"), ("width", "hidden_size"))}

    def measure(self):
        setup = self.setup
        _, errors, seconds, peak = setup.run([
            setup.tool("vlm-caption"), "--timings", "--tiling", "off", "-t", "0", "-n", str(setup.tokens), "-p", PROMPT,
            "-j", str(setup.threads), "--model", self.model, setup.picture])
        prompt, image, answer = map(int, COUNTS.search(errors).groups())
        shape = dict(self.shape, threads=setup.threads, image_tokens=image, patches=image * self.patches_a_token,
                     prompt_tokens=prompt, answer_tokens=answer)
        load = float(re.search(r"load ([\d.]+) s", errors).group(1))
        return [("start to caption", self.name, shape, seconds, {"load": load, "peak_bytes": peak, "file": self.file})]


class LlamaBench:
    """llama-bench: prefill of as many tokens as ours in one piece, and decoding behind a context as long as ours."""

    def __init__(self, setup, model, mmproj, tokens):
        self.setup, self.model, self.tokens = setup, model, tokens
        self.facts = json.loads(subprocess.run([setup.python, WORKER, "gguf", model, mmproj], check=True,
                                               stdout=subprocess.PIPE).stdout)

    def run(self, *args):
        program = os.path.join(self.setup.llama, "llama-bench")
        out, _, _, _ = self.setup.run([program, "-m", self.model, "-t", str(self.setup.threads), "-r", "1", "-o",
                                       "json", *map(str, args)])
        return json.loads(out)[0]

    def measure(self):
        decoded = self.setup.tokens - 1
        layers = {key: self.facts[key] for key in ("text_layers", "text_width")}
        prefill = self.run("-p", self.tokens["prefilled_tokens"], "-n", 0)
        decode = self.run("-p", 0, "-n", decoded, "-d", self.tokens["prompt_tokens"])
        name = "llama.cpp, Q4_0"
        return [("prefill", name, dict(layers, threads=prefill["n_threads"], prefilled_tokens=prefill["n_prompt"]),
                 prefill["avg_ns"] / 1e9, {"file": "gguf"}),
                ("decode", name, dict(layers, threads=decode["n_threads"], prompt_tokens=decode["n_depth"],
                                      decoded_tokens=decode["n_gen"]),
                 decode["avg_ns"] / 1e9 / decode["n_gen"], {"token_bytes": self.facts["token_bytes"], "file": "gguf"})]


MTMD = {"vision": r"mtmd batch encoding done in (\d+) ms",
        "image_tokens": r"decoding image batch 1/1, n_tokens_batch = (\d+)",
        "prompt": r"prompt eval time =\s*([\d.]+) ms /\s*(\d+) tokens",
        "eval": r"  eval time =\s*([\d.]+) ms /\s*(\d+) runs",
        "threads": r"threadpool init, n_threads = (\d+)", "load": r"  load time =\s*([\d.]+) ms"}


class LlamaMtmd:
    """llama-mtmd-cli: the picture's way from its pixels to the caption, and from the start of the program."""

    def __init__(self, setup, model, mmproj, facts):
        self.setup, self.model, self.mmproj, self.facts = setup, model, mmproj, facts

    def measure(self):
        setup = self.setup
        program = os.path.join(setup.llama, "llama-mtmd-cli")
        _, errors, seconds, peak = setup.run([
            program, "-m", self.model, "--mmproj", self.mmproj, "--image", setup.picture, "-p", PROMPT, "-n",
            str(setup.tokens), "-t", str(setup.threads), "--temp", "0", "-c", "512", "--perf", "-lv", "4"])
        found = {key: re.search(pattern, errors) for key, pattern in MTMD.items()}
        missing = [key for key, match in found.items() if match is None]
        if missing:
            raise Failed("llama-mtmd-cli does not tell its %s" % ", ".join(missing))
        image_tokens = int(found["image_tokens"].group(1))
        shape = {key: self.facts[key] for key in ("text_layers", "text_width", "vision_layers", "vision_width")}
        # The first token comes out of the prompt's evaluation; the last one's is not counted by the program.
        shape.update(threads=int(found["threads"].group(1)), image_tokens=image_tokens,
                     patches=image_tokens * self.facts["patches_a_token"], prompt_tokens=int(found["prompt"].group(2)),
                     answer_tokens=int(found["eval"].group(2)) + 1)
        whole = (float(found["prompt"].group(1)) + float(found["eval"].group(1))) / 1e3
        name = "llama.cpp, Q4_0 and Q8_0 mmproj"
        load = float(found["load"].group(1)) / 1e3
        return [("vision", name, shape, int(found["vision"].group(1)) / 1e3, {"file": "gguf"}),
                ("frame to caption", name, shape, whole, {"file": "gguf"}),
                ("start to caption", name, shape, seconds, {"load": load, "peak_bytes": peak, "file": "gguf"})]


class Worker:
    """ONNX Runtime or OpenVINO: a process that keeps all its graphs loaded."""

    def __init__(self, setup, kind, prefilled_tokens):
        self.kind = kind
        self.process = subprocess.Popen(
            setup.prefix + [setup.python, WORKER, kind, setup.work, str(setup.threads), str(setup.tokens - 1),
                            str(prefilled_tokens)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = json.loads(self.answer())

    def answer(self):
        line = self.process.stdout.readline()
        if line == "":
            raise Failed("%s ended with %s" % (self.kind, self.process.wait()))
        return line

    def measure(self):
        results = []
        for i, facts in enumerate(self.facts):
            self.process.stdin.write("%d\n" % i)
            self.process.stdin.flush()
            more = {key: facts[key] for key in ("parts", "token_bytes", "kernels") if facts[key]}
            results.append((facts["stage"], facts["name"], facts["shape"], float(self.answer()), more))
        return results

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@contextlib.contextmanager
def locked(path):
    """Holds the lock on a file, which is made; nothing for None."""
    if path is None:
        yield
        return
    with open(path, "a", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def measure_all(contestants, runs, pause, lock=None):
    """runs rounds over all contestants, one after the other, each with the file lock held; records in the order of
    their first appearance."""
    records = {}
    for run in range(runs):
        for contestant in contestants:
            with locked(lock):
                found = contestant.measure()
            for stage, name, shape, seconds, more in found:
                entry = records.setdefault((stage, name), {
                    "stage": stage, "name": name, "shape": shape, "runs": [], "parts": peers_table.WHOLE})
                if entry["shape"] != shape:
                    raise Failed("%s: %s changed from %s to %s" % (stage, name, entry["shape"], shape))
                entry["runs"].append(seconds)
                if "load" in more:
                    entry.setdefault("loads", []).append(more.pop("load"))
                entry.update(more)
            time.sleep(pause)
        print("round %d of %d" % (run + 1, runs), file=sys.stderr, flush=True)
    return list(records.values())
