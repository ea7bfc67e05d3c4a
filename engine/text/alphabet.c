/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "alphabet.h"

/*
 * Bytes 33..126, 161..172 and 174..255 are spelled by the code point of their value; the other 68,
 * in ascending order, by U+0100 and what follows.
 */
static gboolean
spells_itself (guint value)
{
  return (value >= 33 && value <= 126) || (value >= 161 && value <= 172)
      || (value >= 174 && value <= 255);
}

gunichar
vlm_alphabet_character (guint8 byte)
{
  if (spells_itself (byte))
    return byte;
  if (byte < 33)
    return 0x100 + byte;
  if (byte < 161)
    return 0x100 + 33 + (byte - 127);
  return 0x100 + 67; /* 173 is the last */
}

void
vlm_alphabet_spell (GString *text, const gchar *bytes, gsize length)
{
  gsize i;

  for (i = 0; i < length; i++)
    g_string_append_unichar (text, vlm_alphabet_character ((guint8) bytes[i]));
}

gboolean
vlm_alphabet_read (GString *bytes, const gchar *text)
{
  gunichar c;

  g_string_truncate (bytes, 0);
  for (; *text != '\0'; text = g_utf8_next_char (text)) {
    c = g_utf8_get_char (text);
    if (spells_itself (c))
      g_string_append_c (bytes, (gchar) c);
    else if (c >= 0x100 && c < 0x100 + 33)
      g_string_append_c (bytes, (gchar) (c - 0x100));
    else if (c >= 0x100 + 33 && c < 0x100 + 67)
      g_string_append_c (bytes, (gchar) (c - 0x100 - 33 + 127));
    else if (c == 0x100 + 67)
      g_string_append_c (bytes, (gchar) 173);
    else
      return FALSE;
  }
  return TRUE;
}
