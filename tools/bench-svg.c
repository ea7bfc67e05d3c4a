/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-svg.h"

static const gchar style[] =
    "<style>\n"
    ".back { fill: #ffffff } .ink { fill: #1f2430 } .pale { fill: #5b6270 }\n"
    ".bar { fill: #2f6fb3 } .line { stroke: #1f2430; stroke-width: 1.5 }\n"
    ".grid { stroke: #d9dce2; stroke-width: 1 }\n"
    "text { font: 13px sans-serif } .title { font-weight: bold }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".back { fill: #14171c } .ink { fill: #e8eaee } .pale { fill: #a3abb8 }\n"
    ".bar { fill: #5b9bdd } .line { stroke: #e8eaee }\n"
    ".grid { stroke: #343a44 }\n"
    "}\n"
    "</style>\n";

GString *
bench_svg_begin (gint width, gint height)
{
  GString *svg = g_string_new (NULL);

  g_string_append_printf (svg,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
      "role=\"img\">\n%s<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n",
      width, height, width, height, style, width, height);
  return svg;
}

void
bench_svg_text (GString *svg, const gchar *classes, const gchar *anchor, gdouble x, gdouble y,
    const gchar *text)
{
  g_autofree gchar *shown = g_utf8_make_valid (text, -1);
  g_autofree gchar *escaped = NULL;
  gchar *c;

  /* XML has no way to write control characters. */
  for (c = shown; *c != '\0'; c++) {
    if (g_ascii_iscntrl (*c))
      *c = '?';
  }
  escaped = g_markup_escape_text (shown, -1);
  g_string_append_printf (svg,
      "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", classes, anchor, x,
      y, escaped);
}

void
bench_svg_line (GString *svg, const gchar *classes, gdouble x1, gdouble y1, gdouble x2, gdouble y2)
{
  g_string_append_printf (svg,
      "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", classes, x1, x2, y1,
      y2);
}

gchar *
bench_svg_end (GString *svg)
{
  g_string_append (svg, "</svg>\n");
  return g_string_free (svg, FALSE);
}
