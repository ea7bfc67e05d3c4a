/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How many CPUs this process may use: its affinity mask, cut down by its cgroup's quota. */

#define _GNU_SOURCE
#include "engine/vlm.h"
#include "team.h"

#ifdef __linux__
#include <sched.h>
#endif

#ifdef __linux__

static guint
count_affinity (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof (set), &set) != 0)
    return g_get_num_processors ();
  return MAX (CPU_COUNT (&set), 1);
}

/* Reads "QUOTA PERIOD" (cgroup 2) and returns the CPUs it is worth, rounded up; 0 for no limit. */
static guint
parse_cpu_max (const gchar *text)
{
  gchar *end = NULL;
  guint64 quota, period;

  if (!g_ascii_isdigit (text[0]))
    return 0; /* "max" */
  quota = g_ascii_strtoull (text, &end, 10);
  period = g_ascii_strtoull (end, NULL, 10);
  if (quota == 0 || period == 0)
    return 0;
  return MIN ((quota + period - 1) / period, G_MAXINT);
}

/* The quota of the process's own cgroup or any above it; 0 for no limit. */
static guint
read_cgroup_limit (void)
{
  g_autofree gchar *membership = NULL;
  g_autofree gchar *path = NULL;
  const gchar *own;
  guint limit = 0;

  if (!g_file_get_contents ("/proc/self/cgroup", &membership, NULL, NULL))
    return 0;
  /* Version 1 hierarchies, if any, have lines of their own with other numbers. */
  own = g_str_has_prefix (membership, "0::/") ? membership : strstr (membership, "\n0::/");
  if (own == NULL)
    return 0;
  own = strchr (own, '/');
  *strchrnul (own, '\n') = '\0';
  path = g_build_filename ("/sys/fs/cgroup", own, NULL);

  while (g_str_has_prefix (path, "/sys/fs/cgroup")) {
    g_autofree gchar *file = g_build_filename (path, "cpu.max", NULL);
    g_autofree gchar *text = NULL;
    gchar *parent;

    if (g_file_get_contents (file, &text, NULL, NULL)) {
      guint here = parse_cpu_max (text);

      if (here > 0 && (limit == 0 || here < limit))
        limit = here;
    }
    parent = g_path_get_dirname (path);
    g_free (path);
    path = parent;
  }
  return limit;
}

#endif

guint
vlm_team_get_n_cpus (void)
{
#ifdef __linux__
  guint n = count_affinity ();
  guint limit = read_cgroup_limit ();

  return limit > 0 ? MIN (n, limit) : n;
#else
  return g_get_num_processors ();
#endif
}

guint
vlm_count_cpus (void)
{
  return vlm_team_get_n_cpus ();
}
