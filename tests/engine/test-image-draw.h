/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The pictures of tests/golden, drawn again from their formulas. */

#ifndef TEST_IMAGE_DRAW_H
#define TEST_IMAGE_DRAW_H

#include <glib.h>

/*
 * (transfer full) width * height * 3 bytes of RGB. pattern is "hash", "tri", "mix", "ramp",
 * "halves", "checker" or "solid"; another one ends the program.
 */
guint8 *test_image_draw (const gchar *pattern, guint width, guint height, guint64 seed);

/* FNV-1a, 64 bit, as 16 hexadecimal digits. (transfer full) */
gchar *test_image_hash (const guint8 *data, gsize size);

/* One output of the splitmix64 mixer. */
guint64 test_image_splitmix (guint64 state);

#endif
