/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the drawings of vlm-bench are made of: plain SVG in colours of the viewer's scheme. */

#ifndef TOOLS_BENCH_SVG_H
#define TOOLS_BENCH_SVG_H

#include <glib.h>

/*
 * An empty drawing. Classes of text are "ink", "pale" and "title"; "bar" fills, "line" and "grid"
 * are strokes. (transfer full)
 */
GString *bench_svg_begin (gint width, gint height);

/* Text whose start, middle or end (anchor) is at x; any text will do. */
void bench_svg_text (GString *svg, const gchar *classes, const gchar *anchor, gdouble x, gdouble y,
    const gchar *text);

void bench_svg_line (
    GString *svg, const gchar *classes, gdouble x1, gdouble y1, gdouble x2, gdouble y2);

/* Closes the drawing and gives its text. (transfer full) */
gchar *bench_svg_end (GString *svg);

#endif
