/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The published sizes of the family: what a checkpoint of such a name must look like. */

#ifndef VLM_PUBLISHED_H
#define VLM_PUBLISHED_H

#include "engine/model/config.h"

typedef struct _VlmPublished VlmPublished;

/*
 * The published size whose decoder has config's width, depth and feed-forward rows, and whose tower
 * has its width and depth; NULL when there is none. A projector norm tells the two generations of
 * vision models apart. config is one that the tensors have settled.
 */
const VlmPublished *vlm_published_find (const VlmConfig *config);

/* "LFM2.5-VL-450M" */
const gchar *vlm_published_get_name (const VlmPublished *published);

/* The name of another publication of the same shape, or NULL. */
const gchar *vlm_published_get_twin (const VlmPublished *published);

/* FALSE when the figures were put together from counts and shapes alone. */
gboolean vlm_published_is_verified (const VlmPublished *published);

/*
 * Every deviation from the published size as a sentence "KEY is FOUND, LFM2-350M has EXPECTED".
 * n_tensors and n_parameters are those of the model without what it does not use. Array of gchar *
 * (transfer full)
 */
GPtrArray *vlm_published_compare (
    const VlmPublished *published, const VlmConfig *config, guint n_tensors, guint64 n_parameters);

#endif
