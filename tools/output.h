/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Standard output, none of whose failures may go unseen. */

#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <gio/gio.h>

/*
 * Whether all printing went well. To be called right after it, while errno tells the reason of a
 * failure. Error: that of writing (G_IO_ERROR), naming standard output.
 */
gboolean output_check (GError **error);

/* Sends on what is still held back, then checks. */
gboolean output_flush (GError **error);

#endif
