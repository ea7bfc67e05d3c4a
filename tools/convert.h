/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef TOOLS_CONVERT_H
#define TOOLS_CONVERT_H

#include "engine/vlm.h"

/*
 * The type called word: f16, int8 or int4. FALSE with G_OPTION_ERROR naming the option for any
 * other.
 */
gboolean convert_parse_type (
    const gchar *option, const gchar *word, VlmWeightType *type, GError **error);

/*
 * Converts source to destination, shows how far it is, and prints what came of it. Errors: those of
 * vlm_model_convert ().
 */
gboolean convert_model (const gchar *source, const gchar *destination,
    const VlmConvertOptions *options, GError **error);

#endif
