/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* UTF-8 that may be broken, one character at a time. */

#ifndef VLM_UTF8_H
#define VLM_UTF8_H

#include <glib.h>

/* U+FFFD */
#define VLM_UTF8_REPLACEMENT "\357\277\275"

typedef enum
{
  VLM_UTF8_CHARACTER, /* size bytes are one character */
  VLM_UTF8_INVALID,   /* size bytes can never become one: one U+FFFD stands for them */
  VLM_UTF8_CUT        /* all bytes there are begin one that more bytes could end */
} VlmUtf8;

/*
 * Looks at the start of length > 0 bytes. An invalid part is as long as the Unicode standard's
 * "maximal subpart": what a decoder accepts before the byte that breaks the character.
 */
VlmUtf8 vlm_utf8_step (const gchar *bytes, gsize length, gsize *size);

/* Appends length bytes with every invalid part, a cut one at the end too, as U+FFFD. */
void vlm_utf8_append_lossy (GString *text, const gchar *bytes, gsize length);

/* Unicode's White_Space property, as the reference implementation's regexes read \s. */
gboolean vlm_utf8_is_space (gunichar character);

#endif
