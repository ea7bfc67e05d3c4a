/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which kernels a model is loaded for. */

#ifndef VLM_LEVEL_H
#define VLM_LEVEL_H

#include <glib.h>

#include "kernels/kernels.h"

/*
 * The level that the environment variable VLM_CPU allows, or the best one without it.
 * VLM_ERROR_SETTINGS when it names none, or one that this processor has not.
 */
gboolean vlm_cpu_level_choose (VlmCpuLevel *level, GError **error);

#endif
