/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

/* (transfer full) what the system calls the processor */
static gchar *
cpu_name (void)
{
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint i;

  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    return g_strdup ("unknown processor");
  lines = g_strsplit (text, "\n", -1);
  for (i = 0; lines[i] != NULL; i++) {
    const gchar *colon = strchr (lines[i], ':');

    if (colon != NULL
        && (g_str_has_prefix (lines[i], "model name") || g_str_has_prefix (lines[i], "CPU part")))
      return g_strstrip (g_strdup (colon + 1));
  }

  return g_strdup ("unknown processor");
}

/* Others that work on the machine meanwhile take from its caches and its memory. */
json_t *
bench_machine (void)
{
  g_autofree gchar *cpu = cpu_name ();
  gdouble load = 0;

  if (getloadavg (&load, 1) != 1)
    load = 0;
  return json_pack ("{s:s, s:i, s:f, s:s, s:s}", "cpu", cpu, "cpus", (int) g_get_num_processors (),
      "load", load, "best_level", vlm_cpu_level_name (vlm_cpu_best_level ()), "compiler",
      __VERSION__);
}

void
bench_print_machine (const json_t *machine, guint threads)
{
  printf ("# %s, %d CPUs, load %.2f; best level %s; compiler %s; %u threads\n",
      json_string_value (json_object_get (machine, "cpu")),
      (int) json_integer_value (json_object_get (machine, "cpus")),
      json_real_value (json_object_get (machine, "load")),
      json_string_value (json_object_get (machine, "best_level")),
      json_string_value (json_object_get (machine, "compiler")), threads);
}
