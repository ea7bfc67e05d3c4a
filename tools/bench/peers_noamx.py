# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program as on a processor without AMX: peers_noamx.py COMMAND...

Linux gives the registers of AMX only to programs that ask for them. A filter of system calls answers that request with
"not permitted", for the program and all that it starts; libraries that have code for AMX then take what they have for
other processors. x86-64 only.
"""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
AT_NUMBER, AT_ARCH, AT_FIRST_ARGUMENT = 0, 4, 16
ARCH_X86_64, ARCH_PRCTL, ARCH_REQ_XCOMP_PERM = 0xC000003E, 158, 0x1023
ALLOW, NOT_PERMITTED = 0x7FFF0000, 0x00050001

# (code, jump if equal, jump if not, value); jumps count the instructions that are left out.
FILTER = [
    (LOAD, 0, 0, AT_ARCH), (JUMP_EQUAL, 0, 4, ARCH_X86_64),
    (LOAD, 0, 0, AT_NUMBER), (JUMP_EQUAL, 0, 2, ARCH_PRCTL),
    (LOAD, 0, 0, AT_FIRST_ARGUMENT), (JUMP_EQUAL, 1, 0, ARCH_REQ_XCOMP_PERM),
    (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, NOT_PERMITTED),
]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid():
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(FILTER), b"".join(struct.pack("<HBBI", *step) for step in FILTER))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit("peers_noamx: " + os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
