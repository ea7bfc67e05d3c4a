/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The byte alphabet: one printable character for each byte, as vocabularies spell their pieces. */

#ifndef VLM_ALPHABET_H
#define VLM_ALPHABET_H

#include <glib.h>

gunichar vlm_alphabet_character (guint8 byte);

/* Appends length bytes in the alphabet. */
void vlm_alphabet_spell (GString *text, const gchar *bytes, gsize length);

/*
 * Sets bytes to what text, valid UTF-8, spells; FALSE when a character is not in the alphabet.
 */
gboolean vlm_alphabet_read (GString *bytes, const gchar *text);

#endif
