# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies of programs and libraries that mask_cpuid.c can answer where the processor cannot fault CPUID (x86-64).

In place of each CPUID they have UD1, which no processor executes and no compiler emits; both are two bytes long.
"""

import filecmp
import os
import re
import shutil
import struct
import subprocess
import sys

CPUID, UD1 = b"\x0f\xa2", b"\x0f\xb9"
ELF_64 = b"\x7fELF\x02\x01"
LOADED = 1  # PT_LOAD
FOUND = re.compile(rb" *([0-9a-f]+):\tcpuid\b")


def loaded(data):
    """(address, offset in the file, bytes) of what is loaded of an ELF file."""
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        if kind == LOADED:
            yield address, offset, length


def addresses(path):
    """Of each CPUID. The two bytes alone would also be found in data and within other instructions."""
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE) as process:
        lines = [line for line in process.stdout if b"cpuid" in line]
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return [int(match.group(1), 16) for match in map(FOUND.match, lines) if match]


def replace(path):
    """Replaces each CPUID of a file, if it is a program or a library; how many there were."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if not data.startswith(ELF_64) or CPUID not in data:
        return 0
    segments = list(loaded(data))
    found = addresses(path)
    for address in found:
        place = next(address - start + offset for start, offset, length in segments if 0 <= address - start < length)
        if data[place:place + 2] != CPUID:
            raise ValueError("%s: no CPUID at %x" % (path, address))
        data[place:place + 2] = UD1
    with open(path, "wb") as f:
        f.write(data)
    return len(found)


def copy(source, target):
    """Makes target, unless it has been made from this source before; target."""
    if os.path.exists(target) and os.path.getmtime(target) == os.path.getmtime(source):
        return target
    made = target + ".part"
    shutil.copy2(source, made)
    count = replace(made)
    if count > 0:
        print("%s: %d CPUID replaced" % (target, count), file=sys.stderr)
    shutil.copystat(source, made)
    os.replace(made, target)
    return target


def files_of(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]


def copy_packages(python, names, folder):
    """Copies packages of a Python; folder is then what goes before its own. Those in which a CPUID was replaced."""
    changed = []
    for name in names:
        out = subprocess.run([python, "-c", "import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1])."
                              "submodule_search_locations[0])", name], check=True, stdout=subprocess.PIPE, text=True)
        source, target = out.stdout.strip(), os.path.join(folder, name)
        shutil.copytree(source, target, copy_function=copy, dirs_exist_ok=True)
        if not all(filecmp.cmp(path, os.path.join(target, os.path.relpath(path, source)), shallow=False)
                   for path in files_of(source)):
            changed.append(name)
    return changed
