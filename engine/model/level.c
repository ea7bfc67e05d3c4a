/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "level.h"

#include "engine/vlm.h"

gboolean
vlm_cpu_level_choose (VlmCpuLevel *level, GError **error)
{
  const gchar *name = g_getenv ("VLM_CPU");
  gint named;

  /* Not before: asking for the best one tells the system that tiles may be used. */
  if (name == NULL || name[0] == '\0') {
    *level = vlm_cpu_best_level ();
    return TRUE;
  }

  named = vlm_cpu_level_from_name (name);
  if (named < 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "VLM_CPU=%s is not the name of a CPU level "
        "(scalar, orc, avx2, avxvnni, avx512, avx512vnni, amx, neon, dotprod, i8mm)",
        name);
    return FALSE;
  }
  if (!vlm_cpu_supports ((VlmCpuLevel) named)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "VLM_CPU=%s is not supported by this processor, whose best level is %s", name,
        vlm_cpu_level_name (vlm_cpu_best_level ()));
    return FALSE;
  }
  *level = (VlmCpuLevel) named;
  return TRUE;
}
