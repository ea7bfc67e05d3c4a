#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists the single cases of a `meson test` run.

    meson-results.py PREFIX TESTLOG.json

Prints one line "pass|fail|skip<TAB>name<TAB>reason" for each case. Cases are found in what a
program printed: TAP lines of GLib's test programs, the summaries of check's and of Python's
unittest. A program that prints none of these is one case; one that ended badly without naming a
case is one failed case more.
"""

import json
import re
import sys

TAP = re.compile(r'^\s*(not )?ok\b\s*\d*\s*-?\s*(.*?)\s*(?:#\s*(skip|todo)\S*\s*(.*))?$', re.I)
CHECK = re.compile(r'^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)', re.M)

UNITTEST = re.compile(r'^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$', re.M)
UNITTEST_SKIP = re.compile(r"^(\w+) \(.*\.\.\. skipped (.*)$", re.M)


def tap_cases(output):
    for line in output.splitlines():
        match = TAP.match(line)
        if match is None:
            continue
        bad, name, directive, reason = match.groups()
        if directive and directive.lower() == 'skip':
            yield 'skip', name, reason
        else:
            yield 'fail' if bad else 'pass', name, ''


def check_cases(output):
    for match in CHECK.finditer(output):
        checks, failures, errors = map(int, match.groups())
        bad = failures + errors
        yield from [('pass', '', '')] * (checks - bad)
        yield from [('fail', '', 'see the log above')] * bad


def unittest_cases(output):
    for match in UNITTEST.finditer(output):
        counts = dict(item.split('=') for item in (match.group(2) or '').split(', ') if item)
        skipped = UNITTEST_SKIP.findall(output)
        bad = sum(int(counts.get(kind, 0)) for kind in ('failures', 'errors', 'unexpected successes'))
        yield from [('pass', '', '')] * (int(match.group(1)) - bad - int(counts.get('skipped', 0)))
        yield from [('fail', '', 'see the log above')] * bad
        yield from [('skip', name, reason) for name, reason in skipped]
        yield from [('skip', '', '')] * (int(counts.get('skipped', 0)) - len(skipped))


def cases(test):
    output = test.get('stdout') or ''
    errors = test.get('stderr') or ''
    found = (list(tap_cases(output)) or list(check_cases(output))
             or list(unittest_cases(errors)))
    result = test['result']
    if result == 'SKIP':
        return found or [('skip', '', 'the program skipped itself')]
    good = result in ('OK', 'EXPECTEDFAIL')
    if good and not found:
        return [('pass', '', '')]
    if not good and not any(case[0] == 'fail' for case in found):
        found.append(('fail', '', result.lower()))
    return found


def main():
    prefix, log = sys.argv[1:]
    try:
        with open(log, encoding='utf-8', errors='replace') as lines:
            tests = [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError:
        tests = []
    for test in tests:
        program = prefix + test['name'].split(' / ')[-1]
        for result, name, reason in cases(test):
            print(result, f'{program} {name}'.strip(), reason, sep='\t')


if __name__ == '__main__':
    main()
