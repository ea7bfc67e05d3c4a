/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "utf8.h"

/* How many bytes follow lead, and the range of the first of them; 0 for no lead byte. */
static guint
trail_of_lead (guint8 lead, guint8 *low, guint8 *high)
{
  *low = 0x80;
  *high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf)
    return 1;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (lead == 0xe0)
      *low = 0xa0;
    if (lead == 0xed)
      *high = 0x9f;
    return 2;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (lead == 0xf0)
      *low = 0x90;
    if (lead == 0xf4)
      *high = 0x8f;
    return 3;
  }
  return 0;
}

VlmUtf8
vlm_utf8_step (const gchar *bytes, gsize length, gsize *size)
{
  const guint8 *p = (const guint8 *) bytes;
  guint8 low, high;
  guint n_trail, i;

  *size = 1;
  if (p[0] < 0x80)
    return VLM_UTF8_CHARACTER;
  n_trail = trail_of_lead (p[0], &low, &high);
  if (n_trail == 0)
    return VLM_UTF8_INVALID;
  for (i = 1; i <= n_trail; i++) {
    *size = i;
    if (i == length)
      return VLM_UTF8_CUT;
    if (p[i] < low || p[i] > high)
      return VLM_UTF8_INVALID;
    low = 0x80;
    high = 0xbf;
  }
  *size = n_trail + 1;
  return VLM_UTF8_CHARACTER;
}

void
vlm_utf8_append_lossy (GString *text, const gchar *bytes, gsize length)
{
  gsize done = 0, valid_from = 0, size;

  while (done < length) {
    if (vlm_utf8_step (bytes + done, length - done, &size) != VLM_UTF8_CHARACTER) {
      g_string_append_len (text, bytes + valid_from, done - valid_from);
      g_string_append (text, VLM_UTF8_REPLACEMENT);
      valid_from = done + size;
    }
    done += size;
  }
  g_string_append_len (text, bytes + valid_from, length - valid_from);
}

gboolean
vlm_utf8_is_space (gunichar character)
{
  switch (character) {
    case 0x20:
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000:
      return TRUE;
    default:
      return (character >= 0x09 && character <= 0x0d)
          || (character >= 0x2000 && character <= 0x200a);
  }
}
