/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A request's settings with every "as the model says" filled in and every value checked. */

#ifndef VLM_SETTINGS_H
#define VLM_SETTINGS_H

#include "model.h"
#include "sampler.h"

#define VLM_DEFAULT_MAX_TOKENS 64

typedef struct
{
  VlmSampling sampling;
  VlmProcessor processor;
  guint max_tokens; /* not beyond the context */
  guint prefill_chunk;
} VlmSettings;

/*
 * VLM_ERROR_SETTINGS naming the setting, its value and what is allowed.
 */
gboolean vlm_settings_resolve (
    VlmSettings *settings, const VlmModel *model, const VlmRequest *request, GError **error);

#endif
