/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Full-size checkpoints of random weights, for timing and for tests: they say nothing sensible. */

#ifndef TOOLS_SYNTH_H
#define TOOLS_SYNTH_H

#include <gio/gio.h>

/* The names of all presets, separated by ", ". (transfer full) */
gchar *synth_preset_names (void);

/* The most channels that can be made to stand out. */
#define SYNTH_MAX_OUTLIERS 16

/*
 * Writes a Hugging Face directory (bfloat16) of the preset's shape into folder, which is made when
 * it does not exist; files of the same names in it are replaced. Equal arguments give equal bytes.
 * n_outliers (at most SYNTH_MAX_OUTLIERS) channels of the decoder, and as many of the tower, get
 * thirty times the weight in every layer's norms, as the activations of trained models have a few.
 * Errors: G_OPTION_ERROR for an unknown preset, else those of writing, which name the file.
 */
gboolean synth_write (
    const gchar *preset, gint64 seed, guint n_outliers, const gchar *folder, GError **error);

#endif
