/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What all threads of this process have had of the processors, in seconds. */

#ifndef TEST_CPU_SECONDS_H
#define TEST_CPU_SECONDS_H

#include <glib.h>
#include <time.h>

static inline gdouble
cpu_seconds (void)
{
  struct timespec now;

  g_assert_cmpint (clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now), ==, 0);
  return (gdouble) now.tv_sec + (gdouble) now.tv_nsec * 1e-9;
}

#endif
