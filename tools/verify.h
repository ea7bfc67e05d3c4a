/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef TOOLS_VERIFY_H
#define TOOLS_VERIFY_H

#include <gio/gio.h>

/*
 * Looks through the model at path, a GGUF one with the vision part mmproj (or NULL), and prints each
 * finding on a line of its own. Errors: that there are problems (G_IO_ERROR_INVALID_DATA), and those
 * of vlm_model_verify ().
 */
gboolean verify_model (const gchar *path, const gchar *mmproj, GError **error);

#endif
