/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Every expression here has the operation order and the precision (double, or float where a cast
 * says so) of PyTorch's antialiased upsampling; results are compared to the last bit.
 */

#include "taps.h"

#include <math.h>

#include "engine/vlm.h"

/* Beyond this a float no longer tells neighbouring pixels apart. */
#define MAX_SIDE (1 << 24)
#define MAX_BITS 22

static gdouble
bilinear (gdouble x)
{
  x = fabs (x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

static gdouble
bicubic (gdouble x)
{
  const gdouble a = -0.5;

  x = fabs (x);
  if (x < 1.0)
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0)
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
  return 0.0;
}

/* The samples between two positions, at most max_taps of them; always within the axis. */
static void
set_range (VlmTaps *taps, guint i, gdouble from, gdouble to, guint in)
{
  gint64 low = CLAMP ((gint64) from, 0, (gint64) in - 1);
  gint64 high = MIN ((gint64) to, (gint64) in);

  taps->start[i] = (gint32) low;
  taps->count[i] = (gint32) CLAMP (high - low, 1, (gint64) taps->max_taps);
}

/* Normalised weights in double; returns the largest. */
static gdouble
fill_double (VlmTaps *taps, gdouble *weights, guint in, VlmFilter filter)
{
  gdouble scale = (gdouble) in / taps->n;
  gdouble half = (filter == VLM_FILTER_BICUBIC ? 4 : 2) * 0.5;
  gdouble support = scale >= 1.0 ? half * scale : half;
  gdouble inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
  gdouble largest = 0.0;
  guint i;

  for (i = 0; i < taps->n; i++) {
    gdouble *w = weights + i * taps->max_taps;
    gdouble centre = scale * (i + 0.5);
    gdouble total = 0.0;
    gint32 j;

    set_range (taps, i, centre - support + 0.5, centre + support + 0.5, in);
    for (j = 0; j < taps->count[i]; j++) {
      gdouble x = (j + taps->start[i] - centre + 0.5) * inverse;

      w[j] = filter == VLM_FILTER_BICUBIC ? bicubic (x) : bilinear (x);
      total += w[j];
    }
    for (j = 0; j < taps->count[i]; j++) {
      w[j] /= total;
      largest = MAX (largest, w[j]);
    }
  }
  return largest;
}

/* As many fraction bits as keep the largest weight of the axis in 16 bits. */
static guint
fraction_bits (gdouble largest)
{
  guint bits = 0;

  while (bits < MAX_BITS && (gint64) (0.5 + largest * (gdouble) (1 << (bits + 1))) < 32768)
    bits++;
  return bits;
}

static gboolean
fill_integer (VlmTaps *taps, guint in, VlmFilter filter)
{
  gsize n_weights = taps->n * taps->max_taps;
  gdouble *exact = g_try_new0 (gdouble, n_weights);
  gsize i;

  taps->weights = g_try_new0 (gint16, n_weights);
  if (exact == NULL || taps->weights == NULL) {
    g_free (exact);
    return FALSE;
  }
  taps->bits = fraction_bits (fill_double (taps, exact, in, filter));
  for (i = 0; i < n_weights; i++) {
    gdouble w = exact[i] * (gdouble) (1 << taps->bits);

    taps->weights[i] = (gint16) (w >= 0 ? w + 0.5 : w - 0.5);
  }
  g_free (exact);
  return TRUE;
}

static gboolean
fill_float (VlmTaps *taps, guint in)
{
  gfloat scale = (gfloat) in / (gfloat) taps->n;
  gfloat support = scale >= 1.0f ? scale : 1.0f;
  gfloat inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
  guint i;

  taps->float_weights = g_try_new0 (gfloat, taps->n * taps->max_taps);
  if (taps->float_weights == NULL)
    return FALSE;

  for (i = 0; i < taps->n; i++) {
    gfloat *w = taps->float_weights + i * taps->max_taps;
    gfloat centre = (gfloat) ((gdouble) scale * (i + 0.5));
    gfloat low = centre - support, high = centre + support;
    gfloat total = 0.0f;
    gint32 j;

    set_range (taps, i, (gdouble) low + 0.5, (gdouble) high + 0.5, in);
    for (j = 0; j < taps->count[i]; j++) {
      gfloat distance = (gfloat) (j + taps->start[i]) - centre;
      gfloat x = fabsf ((gfloat) (((gdouble) distance + 0.5) * (gdouble) inverse));

      w[j] = x < 1.0f ? 1.0f - x : 0.0f;
      total += w[j];
    }
    for (j = 0; j < taps->count[i]; j++)
      w[j] /= total;
  }
  return TRUE;
}

static gsize
max_taps (guint in, guint out, VlmFilter filter, VlmResamplePath path)
{
  gdouble half = filter == VLM_FILTER_BICUBIC ? 2.0 : 1.0;
  gdouble scale = (gdouble) in / out;

  if (path == VLM_RESAMPLE_FLOAT)
    scale = (gfloat) in / (gfloat) out;
  return (gsize) ceil (scale >= 1.0 ? half * scale : half) * 2 + 1;
}

gboolean
vlm_taps_init (
    VlmTaps *taps, guint in, guint out, VlmFilter filter, VlmResamplePath path, GError **error)
{
  VlmTaps fresh = { 0 };
  gsize n_weights, bytes;
  gboolean filled = FALSE;

  if (in == 0 || out == 0 || in > MAX_SIDE || out > MAX_SIDE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "Cannot resample %u pixels to %u: expected 1 to %d", in, out, MAX_SIDE);
    return FALSE;
  }
  fresh.n = out;
  fresh.max_taps = max_taps (in, out, filter, path);
  if (g_size_checked_mul (&n_weights, out, fresh.max_taps)
      && g_size_checked_mul (&bytes, n_weights, sizeof (gdouble))) {
    fresh.start = g_try_new0 (gint32, out);
    fresh.count = g_try_new0 (gint32, out);
    if (fresh.start != NULL && fresh.count != NULL)
      filled =
          path == VLM_RESAMPLE_FLOAT ? fill_float (&fresh, in) : fill_integer (&fresh, in, filter);
  }
  if (!filled) {
    vlm_taps_clear (&fresh);
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for the weights of resampling %u pixels to %u", in, out);
    return FALSE;
  }
  *taps = fresh;
  return TRUE;
}

void
vlm_taps_clear (VlmTaps *taps)
{
  g_free (taps->start);
  g_free (taps->count);
  g_free (taps->weights);
  g_free (taps->float_weights);
  *taps = (VlmTaps){ 0 };
}
