#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later

"""What llvm-mca makes of the inner loops of the tiles of integer products.

    mca.py OBJDUMP LLVM-MCA OBJECT...

For each tile and processor it prints a line of a table and a line of TAP. Two limits of a loop are
compared with the cycles that a round of it takes when nothing has to wait for memory:

  products  the ports that multiply do nothing but the products of the round
  ports     the same ports do everything of the round that runs on them

Tiles with all their rows must reach SHARE of the first. Those that make bytes of nibbles on their
way have that to do on the same ports; where there are not enough rows to make up for it, they must
reach SHARE of the second. Tiles with fewer rows are printed only: their limit is the reading of the
weights.
"""

import collections
import json
import re
import subprocess
import sys

from check_spills import MULTIPLY, TARGET, functions, inner_loops

SHARE = 0.85
ROUNDS = 1000
TILE = re.compile(r'^(\w+)_tile_(\d+|all)$')

WEIGHTS = {
    'int8_row': '8 bits, a scale a row',
    'int8_groups': '8 bits, groups',
    'int4_groups': '4 bits, groups',
    'bytes': 'any, made bytes before',
    'head_score': 'attention, keys',
    'head_value': 'attention, values',
}

# What the front end hands on in a cycle, in instructions. llvm-mca counts micro-operations there.
Core = collections.namedtuple('Core', 'name width')
N1, V1 = Core('neoverse-n1', 4), Core('neoverse-v1', 8)
CORES = {'sdot': (N1, V1), 'smmla': (V1,)}

# Tiles whose nibbles leave less than SHARE of the ports to the products, however they are scheduled.
PORTS_ONLY = {('smmla', 'int4_groups')}

Result = collections.namedtuple('Result', 'instructions products cycles products_limit ports_limit')


def assembly(loop):
    """What objdump printed, as llvm-mca reads it. Where jumps lead to does not count."""
    lines = ['elsewhere:']
    for _, mnemonic, operands in loop:
        operands = operands.split('//')[0].strip()
        address = TARGET.search(operands)
        if address:
            operands = operands[:address.start()] + 'elsewhere'
        lines.append('%s %s' % (mnemonic, operands))
    return '\n'.join(lines) + '\n'


def analyse(llvm_mca, loop, core):
    command = [llvm_mca, '-json', '-mtriple=aarch64-linux-gnu', '-mcpu=' + core.name,
               '-iterations=%d' % ROUNDS]
    answer = subprocess.run(command, input=assembly(loop), check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    region = json.loads(answer)['CodeRegions'][0]
    products = [i for i, (_, mnemonic, _) in enumerate(loop) if MULTIPLY.match(mnemonic)]
    # One more entry of the table has the sums.
    pressure = [p for p in region['ResourcePressureView']['ResourcePressureInfo']
                if p['InstructionIndex'] < len(loop)]
    ports = {p['ResourceIndex'] for p in pressure if p['InstructionIndex'] in products}
    used = sum(p['ResourceUsage'] for p in pressure if p['ResourceIndex'] in ports)
    costs = region['InstructionInfoView']['InstructionList']
    cycles = max(region['SummaryView']['TotalCycles'] / ROUNDS, len(loop) / core.width)
    return Result(len(loop), len(products), cycles,
                  sum(costs[i]['RThroughput'] for i in products), used / len(ports))


def product_loops(body):
    """The innermost loops with products, shortest first."""
    loops = [[i for i in body if start <= i[0] <= end] for start, end in inner_loops(body)]
    return sorted((loop for loop in loops if any(MULTIPLY.match(i[1]) for i in loop)), key=len)


def tiles(objdump, path):
    """Yields kind, rows and inner loop of each tile of integers; of several loops the one without
    prefetches."""
    for name, body in functions(objdump, path):
        tile = TILE.match(name)
        if not tile or tile.group(1) not in WEIGHTS:
            continue
        loops = product_loops(body)
        if not loops:
            sys.exit('%s: %s has no loop with products' % (path, name))
        yield tile.group(1), tile.group(2), loops[0]


def results(objdump, llvm_mca, paths):
    """Yields multiplication, kind, rows, whether there are no tiles with more, core and result."""
    for path in paths:
        found = list(tiles(objdump, path))
        most = max((int(rows) for _, rows, _ in found if rows != 'all'), default=0)
        for kind, rows, loop in found:
            mnemonic = next(i[1] for i in loop if MULTIPLY.match(i[1]))
            for core in CORES[mnemonic]:
                is_whole = rows in ('all', str(most))
                yield mnemonic, kind, rows, is_whole, core, analyse(llvm_mca, loop, core)


def print_line(*columns):
    widths = (5, -22, 4, -11, 12, 8, 6, 15, 5, 12, 5)
    print('| ' + ' | '.join('%*s' % pair for pair in zip(widths, columns)) + ' |')


def print_result(mnemonic, kind, rows, core, result):
    print_line(mnemonic.upper(), WEIGHTS[kind], rows, core.name, result.instructions,
               result.products, '%.1f' % result.cycles, '%.1f' % result.products_limit,
               '%.0f %%' % (100 * result.products_limit / result.cycles),
               '%.1f' % result.ports_limit,
               '%.0f %%' % (100 * result.ports_limit / result.cycles))


def main():
    objdump, llvm_mca, *paths = sys.argv[1:]
    verdicts = []
    print_line('', 'weights', 'rows', 'core', 'instructions', 'products', 'cycles',
               'limit: products', 'share', 'limit: ports', 'share')
    print('|' + ' --- |' * 11)
    for mnemonic, kind, rows, is_whole, core, result in results(objdump, llvm_mca, paths):
        print_result(mnemonic, kind, rows, core, result)
        if is_whole:
            is_ports = (mnemonic, kind) in PORTS_ONLY
            limit = result.ports_limit if is_ports else result.products_limit
            verdicts.append(('%s %s %s' % (mnemonic, kind, core.name),
                             limit >= SHARE * result.cycles))
    for i, (name, is_good) in enumerate(verdicts):
        print('%s %d - %s' % ('ok' if is_good else 'not ok', i + 1, name))
    print('1..%d' % len(verdicts))
    return 0 if verdicts and all(is_good for _, is_good in verdicts) else 1


if __name__ == '__main__':
    sys.exit(main())
