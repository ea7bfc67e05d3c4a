/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <gio/gio.h>

/*
 * Prints what the model at path is, a GGUF one with the vision part mmproj (or NULL): a table, or the
 * JSON of vlm_model_describe (). Errors: those of that function.
 */
gboolean info_print (const gchar *path, const gchar *mmproj, gboolean json, GError **error);

#endif
