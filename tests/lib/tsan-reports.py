#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sums up the reports of ThreadSanitizer that say something about this project.

    tsan-reports.py FILE...

Prints one line for each kind and place and how often it was reported. Every race counts. Of locks that
are taken in both orders only those count of which this project takes at least one: GStreamer has orders of
its own among its state, stream and object locks.
"""

import collections
import re
import sys

FRAME = re.compile(r'^\s+#\d+ (\S+) (\S+)')
OURS = re.compile(r'(^|/)(gst-plugin|engine|kernels|tests)/')
# What takes a lock on behalf of its caller.
TAKERS = re.compile(r'^(pthread_|g_mutex_|g_rec_mutex_|g_rw_lock_|g_static_)|/glib/|libsanitizer')


def split_reports(text):
    """Each report from its "WARNING:" to its "SUMMARY:"."""
    return re.findall(r'^WARNING: ThreadSanitizer: .*?^SUMMARY: ThreadSanitizer: [^\n]*', text,
                      re.S | re.M)


def first_caller(stack):
    """Who had the lock taken: (function, file)."""
    for line in stack.splitlines():
        match = FRAME.match(line)
        if match and not any(TAKERS.search(word) for word in match.groups()):
            return match.groups()
    return None


def lock_callers(report):
    """Who took the locks of a cycle."""
    stacks = re.split(r'^  Mutex \w+ (?:previously )?acquired [^\n]*\n', report, flags=re.M)[1:]
    return {first_caller(stack.split('\n\n')[0]) for stack in stacks} - {None}


def sum_up(report):
    """What is said of a report, None if it does not count."""
    if 'lock-order-inversion' not in report.split('\n', 1)[0]:
        return report.rsplit('\nSUMMARY: ', 1)[1]
    callers = lock_callers(report)
    if not any(OURS.search(place) for _, place in callers):
        return None
    return 'ThreadSanitizer: lock-order-inversion of ' + ', '.join(
        f'{function} ({place})' for function, place in sorted(callers))


def main():
    counts = collections.Counter()
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8', errors='replace') as file:
            counts.update(filter(None, map(sum_up, split_reports(file.read()))))
    for summary, count in counts.most_common():
        print(f'{count:7} {summary}')


if __name__ == '__main__':
    main()
