#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later

"""Prints what stages.so has counted as a table.

    table.py PROCESSOR...

For each there is the plugin's file, counts-PROCESSOR, and done-PROCESSOR, what answer.c printed.
"""

import csv
import sys

# What each stage is counted by, as answer.c names it and as people do.
UNITS = {'vision': ('patches', 'patches'), 'prefill': ('prompt', 'tokens'),
         'decode': ('steps', 'tokens')}


def read_done(cpu):
    with open('done-' + cpu, encoding='ascii') as lines:
        return {name: int(n) for name, n in (line.split() for line in lines)}


def read_counts(cpu):
    """{stage: {kind: instructions}}"""
    with open('counts-' + cpu, encoding='ascii', newline='') as lines:
        return {row.pop('stage'): {kind: int(n) for kind, n in row.items()}
                for row in csv.DictReader(lines, delimiter='\t')}


def main():
    is_first = True
    for cpu in sys.argv[1:]:
        counts, done = read_counts(cpu), read_done(cpu)
        for stage, (amount, units) in UNITS.items():
            kinds, n = counts[stage], done[amount]
            total = sum(kinds.values())
            if total == 0 or n == 0:
                sys.exit('%s: nothing was done in the stage %s' % (cpu, stage))
            if is_first:
                print('| processor | stage | of | million | thousand for one | %s |' % ' | '.join(kinds))
                print('|' + ' --- |' * (5 + len(kinds)))
                is_first = False
            print('| %s | %s | %d %s | %.1f | %.0f | %s |'
                  % (cpu, stage, n, units, total / 1e6, total / n / 1e3,
                     ' | '.join('%.0f %%' % (100 * k / total) for k in kinds.values())))


if __name__ == '__main__':
    main()
