/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include <math.h>

#include "region.h"

/* Far beyond any picture, and far from overflowing. */
#define LARGEST 1e6

static gboolean
parse_number (const gchar *text, gdouble *number)
{
  gchar *end;

  *number = g_ascii_strtod (text, &end);
  while (g_ascii_isspace (*end))
    end++;

  return end != text && *end == '\0' && *number >= 0 && *number <= LARGEST;
}

gboolean
gst_vlm_region_parse (GstVlmRegion *region, const gchar *text, const gchar **refused)
{
  g_auto (GStrv) parts = NULL;
  gdouble numbers[4] = { 0, 0, 1, 1 };
  guint i;

  if (text != NULL && *text != '\0') {
    parts = g_strsplit (text, ",", 5);
    if (g_strv_length (parts) != 4)
      goto not_four;
    for (i = 0; i < 4; i++) {
      if (!parse_number (parts[i], &numbers[i]))
        goto not_four;
    }
  }
  if (numbers[2] == 0 || numbers[3] == 0)
    goto empty;

  region->x = numbers[0];
  region->y = numbers[1];
  region->width = numbers[2];
  region->height = numbers[3];
  region->fractions = numbers[0] <= 1 && numbers[1] <= 1 && numbers[2] <= 1 && numbers[3] <= 1;
  return TRUE;

not_four:
  *refused = "it must be x,y,width,height: four numbers, none of them negative";
  return FALSE;

empty:
  *refused = "its width and height must not be 0";
  return FALSE;
}

/* The whole pixels between two edges, within 0 .. size. */
static void
cut (gdouble start, gdouble length, gint size, gint *first, gint *n)
{
  gdouble from = CLAMP (floor (start), 0, size);
  gdouble to = CLAMP (ceil (start + length), 0, size);

  *first = (gint) from;
  *n = (gint) (to - from);
}

gboolean
gst_vlm_region_resolve (
    const GstVlmRegion *region, const GstVideoRectangle *picture, GstVideoRectangle *covered)
{
  gdouble x_unit = region->fractions ? picture->w : 1;
  gdouble y_unit = region->fractions ? picture->h : 1;

  cut (region->x * x_unit, region->width * x_unit, picture->w, &covered->x, &covered->w);
  cut (region->y * y_unit, region->height * y_unit, picture->h, &covered->y, &covered->h);
  covered->x += picture->x;
  covered->y += picture->y;

  return covered->w > 0 && covered->h > 0;
}
