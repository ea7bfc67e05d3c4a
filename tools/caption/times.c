/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "times.h"

#include <string.h>

#define SECOND 1e9
#define MAX_SECONDS 3.6e6

/* Reads digits, perhaps with a fraction; no signs, exponents or words, as strtod would. */
static gboolean
parse_number (const gchar **text, gdouble *number)
{
  const gchar *end = *text;

  while (g_ascii_isdigit (*end) || *end == '.')
    end++;
  if (end == *text || strchr ("0123456789.", **text) == NULL || (end - *text == 1 && **text == '.'))
    return FALSE;
  *number = g_ascii_strtod (*text, (gchar **) text);
  return *text == end;
}

/* H:M:S or M:S, after the first number. */
static gboolean
parse_clock (const gchar *text, gdouble first, gdouble *seconds)
{
  guint n = 1;

  *seconds = first;
  while (*text == ':' && n < 3) {
    gdouble next;

    text++;
    if (!parse_number (&text, &next) || next >= 60)
      return FALSE;
    *seconds = *seconds * 60 + next;
    n++;
  }
  return *text == '\0';
}

/* Numbers with units, the first number being read already. */
static gboolean
parse_units (const gchar *text, gdouble number, gdouble *seconds)
{
  static const struct
  {
    const gchar *name;
    gdouble seconds;
  } units[] = { { "ms", 0.001 }, { "s", 1 }, { "min", 60 }, { "m", 60 }, { "h", 3600 } };

  *seconds = 0;
  for (;;) {
    guint i;

    for (i = 0; i < G_N_ELEMENTS (units) && !g_str_has_prefix (text, units[i].name); i++)
      ;
    if (i == G_N_ELEMENTS (units))
      return FALSE;
    *seconds += number * units[i].seconds;
    text += strlen (units[i].name);
    if (*text == '\0')
      return TRUE;
    if (!parse_number (&text, &number))
      return FALSE;
  }
}

gboolean
vlm_time_parse (const gchar *text, gint64 *time)
{
  gdouble number, seconds;

  if (!parse_number (&text, &number))
    return FALSE;
  if (*text == '\0')
    seconds = number;
  else if (*text == ':' ? !parse_clock (text, number, &seconds)
                        : !parse_units (text, number, &seconds))
    return FALSE;
  if (!(seconds <= MAX_SECONDS))
    return FALSE;
  *time = (gint64) (seconds * SECOND + 0.5);
  return TRUE;
}

gchar *
vlm_time_to_text (gint64 time)
{
  gint64 ms = (MAX (time, 0) + 500000) / 1000000;

  return g_strdup_printf ("%d:%02d:%02d.%03d", (gint) (ms / 3600000), (gint) (ms / 60000 % 60),
      (gint) (ms / 1000 % 60), (gint) (ms % 1000));
}

gchar *
vlm_time_to_short_text (gint64 time)
{
  gint seconds = (gint) ((MAX (time, 0) + 500000000) / 1000000000);

  if (seconds < 3600)
    return g_strdup_printf ("%d:%02d", seconds / 60, seconds % 60);
  return g_strdup_printf ("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}
