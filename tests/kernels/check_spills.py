#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later

"""Looks for vector registers that the compiler keeps on the stack inside the inner loops of tiles.

    check_spills.py OBJDUMP LIBRARY...

A tile of sums that does not fit the registers costs a factor of two to three, and no other test
notices. Every function whose name contains "_tile_" must have an inner loop with multiplications
and additions, and no instruction of such a loop may move a vector register to or from the stack.
"""

import re
import subprocess
import sys

FUNCTION = re.compile(r'^[0-9a-f]+ <(\w+)>:$')
INSTRUCTION = re.compile(r'^ *([0-9a-f]+):\t(?:\{vex\} )?(\S+)\s*(.*)$')
TARGET = re.compile(r'\b([0-9a-f]+) <')
MULTIPLY = re.compile(r'^(vfmadd|fmla|vpdpbusd|vpmadd|[su]mull|sdot|smmla)')
X86_VECTOR = re.compile(r'%[xyz]mm')
# Without d8 to d15: a way out of the function that lies within the loop restores those.
ARM_VECTOR = re.compile(r'\b((q|s|v)\d+|d([0-7]|1[6-9]|[23]\d))\b')


def functions(objdump, library):
    """Yields name, [(address, mnemonic, operands)]."""
    text = subprocess.run([objdump, '-d', '--no-show-raw-insn', library], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    name, body = None, []
    for line in text.splitlines():
        start = FUNCTION.match(line)
        instruction = INSTRUCTION.match(line)
        if start:
            if name:
                yield name, body
            name, body = start.group(1), []
        elif instruction and name:
            address, mnemonic, operands = instruction.groups()
            body.append((int(address, 16), mnemonic, operands))
    if name:
        yield name, body


def is_jump(mnemonic):
    return mnemonic.startswith(('j', 'b.', 'cb', 'tb')) or mnemonic == 'b'


def inner_loops(body):
    """Stretches from the target of a backward jump to the jump that hold no other such stretch."""
    first = body[0][0]
    loops = []
    for address, mnemonic, operands in body:
        target = TARGET.search(operands)
        if is_jump(mnemonic) and target and first <= int(target.group(1), 16) < address:
            loops.append((int(target.group(1), 16), address))
    return [a for a in loops
            if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def stack_pattern(body):
    """rbp is a register like any other unless the function makes it its frame pointer."""
    if any(m == 'mov' and o.startswith('%rsp,%rbp') for _, m, o in body):
        return re.compile(r'\((%rsp|%rbp)|\[(sp|x29)\b')
    return re.compile(r'\(%rsp|\[(sp|x29)\b')


def check(name, body):
    """Returns a list of complaints."""
    stack = stack_pattern(body)
    complaints, n_multiply = [], 0
    for start, end in inner_loops(body):
        loop = [i for i in body if start <= i[0] <= end]
        multiply = sum(1 for _, mnemonic, _ in loop if MULTIPLY.match(mnemonic))
        if multiply == 0:
            continue
        n_multiply += multiply
        for address, mnemonic, operands in loop:
            vector = X86_VECTOR.search(operands) or ARM_VECTOR.match(operands)
            if vector and stack.search(operands):
                complaints.append('%s+%#x: %s %s'
                                  % (name, address - body[0][0], mnemonic, operands))
    if n_multiply == 0:
        complaints.append('%s: no inner loop with multiplications' % name)
    return complaints


def main():
    n_tests = failed = 0
    for library in sys.argv[2:]:
        found = 0
        for name, body in functions(sys.argv[1], library):
            if '_tile_' not in name or not body:
                continue
            found += 1
            n_tests += 1
            complaints = check(name, body)
            print('%s %d - %s %s' % ('not ok' if complaints else 'ok', n_tests,
                                     library.rsplit('/', 1)[-1], name))
            for complaint in complaints:
                print('# ' + complaint)
            failed += bool(complaints)
        if found == 0:
            n_tests += 1
            failed += 1
            print('not ok %d - %s holds no tile' % (n_tests, library))
    print('1..%d' % n_tests)
    return 1 if failed or n_tests == 0 else 0


sys.exit(main())
