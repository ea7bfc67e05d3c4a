# SPDX-License-Identifier: LGPL-2.1-or-later
"""Levels of instructions that all contestants can be held to (x86-64).

ONNX Runtime, OpenVINO and we choose at run time, by what the processor says of itself: mask_cpuid.c makes it say less,
on processors that cannot fault CPUID to copies of the two peers; we then obey VLM_CPU alone.
llama.cpp chooses when it is built, and is built for each level.
"""

import json
import os
import shlex
import subprocess
import sys

import peers_cpuid

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "mask_cpuid.c")
PACKAGES = ("onnxruntime", "openvino")

BASE = ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2")
EXTENSIONS = ("AVX_VNNI", "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16", "AMX_TILE", "AMX_INT8", "AMX_BF16")
# By VLM_CPU's names: what of EXTENSIONS the level has.
LEVELS = {
    "avx2": (),
    "avxvnni": ("AVX_VNNI",),
    "avx512": ("AVX512",),
    "avx512vnni": ("AVX_VNNI", "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16"),
}


class NoLevel(Exception):
    """The level cannot be had here."""


def llama_flags(level):
    """For cmake. All options are named each time, as one build directory goes through all levels."""
    if level is None:
        return ["-DGGML_NATIVE=ON"]
    return ["-DGGML_NATIVE=OFF"] + ["-DGGML_%s=ON" % name for name in BASE] + [
        "-DGGML_%s=%s" % (name, "ON" if name in LEVELS[level] else "OFF") for name in EXTENSIONS]


def can_fault():
    """Whether this processor can keep CPUID from programs."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return any(line.startswith("flags") and "cpuid_fault" in line.split() for line in f)


def prefix(level, folder, packages=None):
    """What to put before a command that is to see no more than level; builds the library for it in folder. packages: a
    folder of copies by peers_cpuid that go before those that Python has, where it is copies that are held to level."""
    library = os.path.join(folder, "mask_cpuid.so")
    made = library + ".part"
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-O2", "-o", made, SOURCE],
                   check=True, stdout=sys.stderr)
    os.replace(made, library)
    copies = ["MASK_CPUID_IN_COPIES=1", "PYTHONPATH=" + packages] if packages else []
    return ["env", "LD_PRELOAD=" + library, "MASK_CPUID=" + level, "VLM_CPU=" + level, *copies]


def check(level, command, bench):
    """Raises NoLevel unless a program behind command, told nothing else, takes the level for the best there is."""
    out = subprocess.run([*command, bench, "--kernels", "--quick", "--level", "scalar", "--json", "-j", "1"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode != 0:
        raise NoLevel("%s: %s" % (level, out.stderr.strip()))
    best = json.loads(out.stdout)["machine"]["best_level"]
    if best != level:
        raise NoLevel("%s: with what is above it hidden, the best level of this processor is %s" % (level, best))


def hold(level, folder, python, bench):
    """What to put before the commands of all contestants, with what that needs made in folder. python: of the peers.
    Raises NoLevel where the level cannot be had."""
    if can_fault():
        command = prefix(level, folder)
    else:
        copies = os.path.join(folder, "copies")
        missing = set(PACKAGES).difference(peers_cpuid.copy_packages(python, PACKAGES, copies))
        if missing:
            raise NoLevel("%s: no CPUID found in %s" % (level, ", ".join(sorted(missing))))
        command = prefix(level, folder, copies)
        bench = peers_cpuid.copy(bench, os.path.join(copies, "vlm-bench"))
    check(level, command, bench)
    return command
