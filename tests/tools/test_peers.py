# SPDX-License-Identifier: LGPL-2.1-or-later
"""tools/bench: figures are compared only where the work was the same. No peer is needed for that."""

import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from toolkit import ToolTest, main, run

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench")
sys.path.insert(0, BENCH)

import peers_cpuid  # noqa: E402
import peers_levels  # noqa: E402
import peers_measure  # noqa: E402
import peers_table  # noqa: E402
from peers_table import LINEAR, NotComparable, record  # noqa: E402

VISION = {"threads": 2, "patches": 1024, "image_tokens": 256, "vision_layers": 12, "vision_width": 768}
TEXT = {"threads": 2, "text_layers": 16, "text_width": 1024, "prompt_tokens": 287}
DECODE = dict(TEXT, decoded_tokens=47)
WHOLE = dict(VISION, **TEXT, answer_tokens=48)
PREFILL = dict(TEXT, prefilled_tokens=282)
SHAPES = {"vision": VISION, "prefill": PREFILL, "decode": DECODE, "frame to caption": WHOLE, "start to caption": WHOLE}
OURS = [0.5, 0.1, 0.2, 0.9, 0.3]  # median 0.3
PEER = [0.6, 0.6, 0.1, 0.9, 0.2]  # median 0.6


def recorded(stage, **changed):
    """Ours and a peer's, whose shape differs by what is given."""
    return [record(stage, "vlmcaption, int4", SHAPES[stage], OURS, file="slm"),
            record(stage, "vlmcaption, Q4_0", SHAPES[stage], [2 * t for t in OURS], file="gguf"),
            record(stage, "peer", dict(SHAPES[stage], **changed), PEER, file="gguf")]


class Table(unittest.TestCase):
    def test_runs(self):
        records = recorded("vision")
        records[2]["kernels"] = ["one", "other"]
        self.assertEqual(peers_table.raw_lines(records)[1:], [
            "vision | vlmcaption, Q4_0 | 1000.00 200.00 400.00 1800.00 600.00 ms",
            "vision | peer | 600.00 600.00 100.00 900.00 200.00 ms | by one, other"])

    def test_ratios(self):
        for stage in SHAPES:
            rows = peers_table.compare(recorded(stage))
            self.assertEqual([row["median"] for row in rows], [0.3, 0.6, 0.6])
            self.assertEqual([row["ratio"] for row in rows], [1, 2, 2])
            self.assertEqual([row["same_file"] for row in rows], [None, None, 1])
            self.assertEqual(peers_table.best_peer(rows, stage)["name"], "peer")

    def test_every_difference_is_refused(self):
        for stage, keys in peers_table.STAGES.items():
            for key in keys:
                with self.assertRaisesRegex(NotComparable, "%s: peer has %s = %d, vlmcaption, int4 has %d" % (
                        stage, key, SHAPES[stage][key] + 1, SHAPES[stage][key])):
                    peers_table.compare(recorded(stage, **{key: SHAPES[stage][key] + 1}))
        self.assertLessEqual({"threads", "patches", "image_tokens", "prompt_tokens", "text_layers", "text_width",
                              "vision_layers", "vision_width"}, set(peers_table.STAGES["frame to caption"]))

    def test_silence_is_refused(self):
        records = recorded("vision")
        del records[2]["shape"]["patches"]
        with self.assertRaisesRegex(NotComparable, "peer does not tell its patches"):
            peers_table.compare(records)

    def test_too_few_or_unequal_runs(self):
        records = recorded("prefill")
        records[2]["runs"] = PEER + [0.5]
        with self.assertRaisesRegex(NotComparable, "peer has 6 runs, vlmcaption, int4 has 5"):
            peers_table.compare(records)
        for entry in records:
            entry["runs"] = PEER[:4]
        with self.assertRaisesRegex(NotComparable, "4 runs.* at least 5"):
            peers_table.compare(records)

    def test_linear_layers_have_no_context(self):
        shape = {key: value for key, value in DECODE.items() if key != "prompt_tokens"}
        linear = record("decode", "graph", shape, PEER, parts=LINEAR, token_bytes=188e6)
        rows = peers_table.compare(recorded("decode") + [linear])
        self.assertEqual(rows[3]["ratio"], 2)
        self.assertIsNone(rows[3]["same_file"])
        self.assertIn("| graph | linear layers only | 600.0 | 100.0-900.0 | 188.0 MB | 2.00 |  |",
                      peers_table.markdown(rows))
        # All else must be the same for them too, and others do have a context.
        linear["shape"] = dict(shape, decoded_tokens=46)
        with self.assertRaisesRegex(NotComparable, "graph has decoded_tokens = 46"):
            peers_table.compare(recorded("decode") + [linear])
        linear.update(shape=shape, parts="all")
        with self.assertRaisesRegex(NotComparable, "graph does not tell its prompt_tokens"):
            peers_table.compare(recorded("decode") + [linear])

    def test_summary(self):
        """The fastest of each program, with how many times as long it takes as the first of ours."""
        shape = {key: value for key, value in DECODE.items() if key != "prompt_tokens"}
        records = recorded("vision") + recorded("decode")
        records[2]["name"] = records[5]["name"] = "llama.cpp, Q4_0"
        records += [record("decode", "graphs, slow", shape, [2 * t for t in PEER], parts=LINEAR),
                    record("decode", "graphs, fast", shape, OURS, parts=LINEAR)]
        lines = peers_table.summary(peers_table.compare(records)).splitlines()
        self.assertEqual(lines[0], "| stage, ms | vlmcaption | llama.cpp | graphs | llama.cpp, same file |")
        self.assertEqual(lines[2], "| vision | 300.0 | 600.0 (2.00) |  | 1.00 |")
        self.assertEqual(lines[3], "| decode | 300.0 | 600.0 (2.00) | 300.0* (1.00) | 1.00 |")

    def test_aims(self):
        """Each ratio beside what it is to be; what is no peer of a stage has no say in it."""
        records = recorded("vision") + recorded("start to caption")
        records[2].update(name="llama.cpp, Q4_0", runs=[1.8] * 5)
        records.insert(3, record("vision", "graphs, fast", VISION, [0.51] * 5))
        records[6].update(name="llama.cpp, Q4_0", runs=[0.3] * 5)
        self.assertEqual(peers_table.aims(peers_table.compare(records)).splitlines()[2:], [
            "| vision | 1.70 of 1.6 (graphs, fast), reached | 6.00 of 6, reached | 3.00 of 1.3, reached |",
            "| start to caption |  | 1.00 of 1, reached |  |"])
        records[2]["runs"], records[3]["runs"] = [0.6] * 5, [0.45] * 5
        self.assertEqual(
            peers_table.aims(peers_table.compare(records)).splitlines()[2],
            "| vision | 1.50 of 1.6 (graphs, fast), **missed** | 2.00 of 6, **missed** | 1.00 of 1.3, **missed** |")

    def test_loads(self):
        records = recorded("start to caption")
        for i, entry in enumerate(records):
            entry.update(loads=[0.3, 0.1, 0.2, 0.2, 0.25], peak_bytes=(i + 1) * 1e8)
        self.assertIn("| peer | 200 | 600 | 300 MB |", peers_table.loads(peers_table.compare(records)))


class Fake:
    """A contestant that was measured before."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def measure(self):
        return self.answers.pop(0)


class Measure(unittest.TestCase):
    def test_in_turn(self):
        order = []

        class Watched(Fake):
            def measure(self):
                order.append(len(self.answers))
                return super().measure()

        runs = [[("vision", "a", VISION, t, {"load": t})] for t in OURS[:3]]
        other = [[("vision", "b", VISION, t, {"file": "x"})] for t in PEER[:3]]
        records = peers_measure.measure_all([Watched(*runs), Watched(*other)], 3, 0)
        self.assertEqual(order, [3, 3, 2, 2, 1, 1])
        self.assertEqual([entry["runs"] for entry in records], [OURS[:3], PEER[:3]])
        self.assertEqual(records[0]["loads"], OURS[:3])
        self.assertEqual(records[1]["file"], "x")

    def test_locked_while_measuring(self):
        """Nobody else has the lock while a contestant measures, and anybody may between."""
        held = []

        def is_held():
            with open(path, "a", encoding="utf-8") as f:
                try:
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
                return False

        class Watched(Fake):
            def measure(self):
                held.append(is_held())
                return super().measure()

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lock")
            peers_measure.measure_all([Watched([("vision", "a", VISION, 1, {})])], 1, 0, path)
            self.assertEqual(held, [True])
            self.assertFalse(is_held())

    def test_shape_must_stay(self):
        answers = [[("vision", "a", dict(VISION, threads=n), 1, {})] for n in (2, 1)]
        with self.assertRaisesRegex(peers_measure.Failed, "a changed"):
            peers_measure.measure_all([Fake(*answers)], 2, 0)


ASK = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(%d, ctypes.c_long(0x1023), ctypes.c_long(18))
print(ctypes.get_errno(), libc.syscall(%d, ctypes.c_long(0x1022), ctypes.byref(ctypes.c_ulong())))
"""


class NoAmx(unittest.TestCase):
    @unittest.skipIf(platform.machine() != "x86_64", "AMX is x86-64's")
    def test_permission_is_refused(self):
        """The request fails with EPERM; asking what is permitted, the same call, and all else go on."""
        out, _ = run(sys.executable, os.path.join(BENCH, "peers_noamx.py"), sys.executable, "-c", ASK % (158, 158))
        self.assertEqual(out.split()[0], b"1")
        plain, _ = run(sys.executable, "-c", ASK % (158, 158))
        self.assertEqual(out.split()[1], plain.split()[1])


def flags_of_processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split() for line in f if line.startswith("flags")), [])


# CPUID itself, and its two bytes within another instruction, in what cannot be executed, and in data.
ASKING = """
#include <stdio.h>
static const unsigned char data[] __attribute__ ((used)) = "\\x0f\\xa2 is data";
int
main (void)
{
  unsigned answer, other;
  __asm__ volatile ("mov $0xa20fa20f, %1; mov $7, %%eax; xor %%ecx, %%ecx; cpuid"
      : "=b"(answer), "=d"(other) : : "eax", "ecx");
  printf ("%d", answer >> 16 & 1);
  return 0;
}
"""


class Compiled(ToolTest):
    def setUp(self):
        super().setUp()
        for name in ("cc", "objdump"):
            if shutil.which(name) is None:
                self.skipTest("no %s" % name)

    def compile(self, source):
        path = self.path("program")
        run("cc", "-x", "c", "-", "-o", path, stdin=source)
        return path


class Cpuid(Compiled):
    """Copies differ from what they are made of where CPUID is an instruction, and nowhere else."""

    def test_one_place(self):
        program = self.compile(ASKING)
        copy = peers_cpuid.copy(program, self.path("copy"))
        with open(program, "rb") as f, open(copy, "rb") as g:
            before, after = f.read(), g.read()
        self.assertGreaterEqual(before.count(peers_cpuid.CPUID), 4)
        changed = [i for i, (old, new) in enumerate(zip(before, after)) if old != new]
        self.assertEqual(len(before), len(after))
        self.assertEqual(len(changed), 1)
        self.assertEqual(before[changed[0] - 1:changed[0] + 1], peers_cpuid.CPUID)
        self.assertEqual(after[changed[0] - 1:changed[0] + 1], peers_cpuid.UD1)
        # Without the library that answers, the copy ends there.
        self.assertEqual(subprocess.run([copy]).returncode, -signal.SIGILL)

    def test_made_once(self):
        source, copy = self.compile(ASKING), self.path("copy")
        first = os.stat(peers_cpuid.copy(source, copy)).st_ino
        self.assertEqual(os.stat(peers_cpuid.copy(source, copy)).st_ino, first)
        os.utime(source, (1, 1))
        self.assertNotEqual(os.stat(peers_cpuid.copy(source, copy)).st_ino, first)

    def test_package(self):
        """A package goes before that of the same name, as it is but for its libraries; of one that does not ask, that
        is told each time."""
        for name in ("old", "new"):
            os.makedirs(self.path(name))
        os.mkdir(self.path("old", "asking"))
        with open(self.path("old", "asking", "__init__.py"), "w", encoding="utf-8") as f:
            f.write("print(__file__)")
        os.rename(self.compile(ASKING), self.path("old", "asking", "library.so"))
        os.mkdir(self.path("old", "silent"))
        with mock.patch.dict(os.environ, PYTHONPATH=self.path("old"), PYTHONDONTWRITEBYTECODE="1"):
            for _ in range(2):
                changed = peers_cpuid.copy_packages(sys.executable, ["asking", "silent"], self.path("new"))
                self.assertEqual(changed, ["asking"])
        out, _ = run(sys.executable, "-c", "import asking",
                     env={"PYTHONPATH": self.path("new"), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(out.decode().strip(), self.path("new", "asking", "__init__.py"))
        self.assertEqual(subprocess.run([self.path("new", "asking", "library.so")]).returncode, -signal.SIGILL)


class Levels(Compiled):
    """Programs that ask the processor see no more than the level: copies of them, which any processor can do."""

    # What a processor must have for a level to be one that something can be held to.
    FLAGS = {"avx2": "avx2", "avxvnni": "avx_vnni", "avx512": "avx512vl", "avx512vnni": "avx512_vnni"}

    def program(self, path):
        return peers_cpuid.copy(path, self.path("copy"))

    def prefix(self, level):
        return peers_levels.prefix(level, self.scratch.name, self.scratch.name)

    def test_every_level(self):
        bench = self.program(os.environ["VLM_BENCH"])
        levels = [level for level, flag in self.FLAGS.items() if flag in flags_of_processor()]
        self.assertEqual(list(self.FLAGS), list(peers_levels.LEVELS))
        for level in levels:
            prefix = self.prefix(level)
            peers_levels.check(level, prefix, bench)
            other = next(name for name in self.FLAGS if name != level)
            with self.assertRaisesRegex(peers_levels.NoLevel, "%s: .* the best level .* is %s$" % (other, level)):
                peers_levels.check(other, prefix, bench)

    def test_children(self):
        """What a program starts sees no more than it does."""
        out, _ = run(*self.prefix("avx2"), "sh", "-c", "%s --kernels --quick --json --level scalar -j 1; true" %
                     self.program(os.environ["VLM_BENCH"]))
        self.assertEqual(json.loads(out)["machine"]["best_level"], "avx2")

    def test_answer(self):
        """Only what is hidden is taken out of an answer."""
        program = self.program(self.compile(ASKING))
        out, _ = run(*self.prefix("avx2"), program)
        self.assertEqual(out, b"0")
        if "avx512f" in flags_of_processor():
            out, _ = run(*self.prefix("avx512"), program)
            self.assertEqual(out, b"1")

    def test_other_faults_stay(self):
        for fault, number in (("*(volatile int *) 0 = 1", signal.SIGSEGV), ("__builtin_trap ()", signal.SIGILL)):
            program = self.program(self.compile("int main (void) { %s; return 0; }" % fault))
            self.assertEqual(subprocess.run([*self.prefix("avx2"), program]).returncode, -number)

    def test_unknown_level(self):
        with self.assertRaisesRegex(peers_levels.NoLevel, "MASK_CPUID names no level"):
            peers_levels.check("sse9", self.prefix("sse9"), os.environ["VLM_BENCH"])


class LevelsByFaults(Levels):
    """The same without copies, on processors that can fault CPUID."""

    def program(self, path):
        return path

    def prefix(self, level):
        return peers_levels.prefix(level, self.scratch.name)


# What a processor does not have is no test that is left out.
if platform.machine() != "x86_64":
    del Cpuid, Levels
if platform.machine() != "x86_64" or not peers_levels.can_fault():
    del LevelsByFaults


class LlamaFlags(unittest.TestCase):
    def test_each_names_everything(self):
        """One build directory goes through all levels: what one leaves unsaid, the one before has said."""
        names = {level: [flag.split("=")[0] for flag in peers_levels.llama_flags(level)]
                 for level in peers_levels.LEVELS}
        self.assertEqual(len({tuple(found) for found in names.values()}), 1)
        self.assertIn("-DGGML_NATIVE=ON", peers_levels.llama_flags(None))
        for level, has in peers_levels.LEVELS.items():
            flags = peers_levels.llama_flags(level)
            self.assertIn("-DGGML_NATIVE=OFF", flags)
            for name in peers_levels.EXTENSIONS:
                self.assertIn("-DGGML_%s=%s" % (name, "ON" if name in has else "OFF"), flags)


class Program(ToolTest):
    def compare(self, records, status):
        path = self.path("kept.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"machine": "a machine", "records": records}, f)
        done = subprocess.run([sys.executable, os.path.join(BENCH, "compare_peers.py"), "--work", self.path("work"),
                               "--compare", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_refuses(self):
        done = self.compare(recorded("vision", threads=4), 3)
        self.assertIn("peer has threads = 4, vlmcaption, int4 has 2", done.stderr)
        self.assertNotIn("of our time", done.stdout)
        self.assertFalse(os.path.exists(self.path("work", "results.md")))

    def test_prints_and_writes(self):
        done = self.compare(recorded("prefill"), 0)
        self.assertIn("prefill | peer | 600.00 600.00 100.00 900.00 200.00 ms", done.stdout)
        with open(self.path("work", "results.json"), encoding="utf-8") as f:
            self.assertEqual([row["ratio"] for row in json.load(f)["rows"]], [1, 2, 2])
        with open(self.path("work", "results.md"), encoding="utf-8") as f:
            self.assertIn("| prefill | **peer** | all | 600.0 |", f.read())


if __name__ == "__main__":
    main()
