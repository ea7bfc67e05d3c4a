/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Rows are resampled in width first and stored (as bytes on the integer path, as floats on the
 * other), then the stored rows are combined in height. Only the rows that the current output row
 * reads are kept: a window that slides down the picture. It holds twice the needed rows, so each
 * row is moved once at most.
 */

#include "crops.h"

#include <math.h>
#include <string.h>

#include "taps.h"

typedef struct
{
  guint8 *base;
  gsize row_bytes;
  gsize capacity; /* rows */
  gsize first, n; /* rows first .. first + n - 1 of the picture are held */
  gsize offset;   /* of the first held row from base, in rows */
} Window;

typedef struct
{
  const VlmKernels *kernels;
  const guint8 *src;
  gsize stride;
  guint width, height;
  guint8 *dst;
  guint out_width, out_height;
  VlmTaps across, down; /* empty when that side keeps its size */
} Resample;

static gboolean
window_init (Window *window, gsize row_bytes, gsize max_taps, guint height)
{
  gsize size;

  *window = (Window){ 0 };
  window->row_bytes = row_bytes;
  window->capacity = MIN (max_taps * 2 + 16, (gsize) height);
  if (!g_size_checked_mul (&size, window->capacity, row_bytes))
    return FALSE;
  window->base = g_try_malloc (size);
  return window->base != NULL;
}

/* Drops the rows above first. */
static void
window_drop (Window *window, gsize first)
{
  gsize gone = MIN (first - window->first, window->n);

  window->offset += gone;
  window->n -= gone;
  window->first = first;
}

/* Where the next row is to be written. */
static guint8 *
window_push (Window *window)
{
  if (window->offset + window->n == window->capacity) {
    memmove (window->base, window->base + window->offset * window->row_bytes,
        window->n * window->row_bytes);
    window->offset = 0;
  }
  window->n++;
  return window->base + (window->offset + window->n - 1) * window->row_bytes;
}

static void
integer_row (const Resample *job, guint8 *dst, guint y)
{
  const guint8 *src = job->src + (gsize) y * job->stride;

  if (job->across.n == 0)
    memcpy (dst, src, (gsize) job->width * 3);
  else
    job->kernels->resample_row (dst, src, job->out_width, job->across.start, job->across.count,
        job->across.weights, job->across.max_taps, job->across.bits);
}

/* Width only, or nothing at all: no row needs another. */
static void
integer_rows_only (const Resample *job)
{
  guint y;

  for (y = 0; y < job->height; y++)
    integer_row (job, job->dst + (gsize) y * job->out_width * 3, y);
}

static void
integer_columns_only (const Resample *job)
{
  gsize row_bytes = (gsize) job->out_width * 3;
  guint y;

  for (y = 0; y < job->out_height; y++)
    job->kernels->resample_column (job->dst + y * row_bytes,
        job->src + (gsize) job->down.start[y] * job->stride, job->stride, row_bytes,
        job->down.weights + y * job->down.max_taps, job->down.count[y], job->down.bits);
}

static gboolean
integer_both (const Resample *job)
{
  gsize row_bytes = (gsize) job->out_width * 3;
  Window window;
  guint y;

  if (!window_init (&window, row_bytes, job->down.max_taps, job->height))
    return FALSE;
  for (y = 0; y < job->out_height; y++) {
    gsize end = (gsize) job->down.start[y] + job->down.count[y];

    window_drop (&window, job->down.start[y]);
    while (window.first + window.n < end) {
      guint row = window.first + window.n;

      integer_row (job, window_push (&window), row);
    }
    job->kernels->resample_column (job->dst + y * row_bytes,
        window.base + window.offset * row_bytes, row_bytes, row_bytes,
        job->down.weights + y * job->down.max_taps, job->down.count[y], job->down.bits);
  }
  g_free (window.base);
  return TRUE;
}

static gboolean
integer_run (const Resample *job)
{
  if (job->down.n == 0)
    integer_rows_only (job);
  else if (job->across.n == 0)
    integer_columns_only (job);
  else
    return integer_both (job);
  return TRUE;
}

static void
float_row (const Resample *job, gfloat *dst, guint y)
{
  const guint8 *src = job->src + (gsize) y * job->stride;
  guint i, c;
  gint32 j;

  if (job->across.n == 0) {
    for (i = 0; i < job->width * 3; i++)
      dst[i] = src[i];
    return;
  }
  for (i = 0; i < job->out_width; i++) {
    const guint8 *p = src + (gsize) job->across.start[i] * 3;
    const gfloat *w = job->across.float_weights + i * job->across.max_taps;

    for (c = 0; c < 3; c++) {
      gfloat acc = p[c] * w[0];

      for (j = 1; j < job->across.count[i]; j++)
        acc = fmaf (p[j * 3 + c], w[j], acc);
      dst[i * 3 + c] = acc;
    }
  }
}

static guint8
float_to_byte (gfloat value)
{
  return (guint8) CLAMP (rintf (value), 0.0f, 255.0f);
}

static void
float_column (const Resample *job, const gfloat *rows, guint y)
{
  gsize n = (gsize) job->out_width * 3;
  guint8 *dst = job->dst + y * n;
  const gfloat *w = job->down.float_weights + y * job->down.max_taps;
  gsize i;
  gint32 j;

  for (i = 0; i < n; i++) {
    gfloat acc = rows[i] * w[0];

    for (j = 1; j < job->down.count[y]; j++)
      acc = fmaf (rows[j * n + i], w[j], acc);
    dst[i] = float_to_byte (acc);
  }
}

static gboolean
float_run (const Resample *job)
{
  gsize n = (gsize) job->out_width * 3;
  gsize taps = job->down.n != 0 ? job->down.max_taps : 1;
  Window window;
  gsize i;
  guint y;

  if (!window_init (&window, n * sizeof (gfloat), taps, job->height))
    return FALSE;
  for (y = 0; y < job->out_height; y++) {
    gsize start = job->down.n != 0 ? (gsize) job->down.start[y] : y;
    gsize end = start + (job->down.n != 0 ? job->down.count[y] : 1);
    const gfloat *rows;

    window_drop (&window, start);
    while (window.first + window.n < end) {
      guint row = window.first + window.n;

      float_row (job, (gfloat *) window_push (&window), row);
    }
    rows = (const gfloat *) (window.base + window.offset * window.row_bytes);
    if (job->down.n != 0) {
      float_column (job, rows, y);
    } else {
      for (i = 0; i < n; i++)
        job->dst[y * n + i] = float_to_byte (rows[i]);
    }
  }
  g_free (window.base);
  return TRUE;
}

static gboolean
check_sides (const Resample *job, GError **error)
{
  gsize bytes;

  if (job->width == 0 || job->height == 0 || job->out_width == 0 || job->out_height == 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "Cannot resample %ux%u pixels to %ux%u: no side may be 0", job->width, job->height,
        job->out_width, job->out_height);
    return FALSE;
  }
  if (!g_size_checked_mul (&bytes, job->out_width, (gsize) job->out_height)
      || !g_size_checked_mul (&bytes, bytes, 3 * sizeof (gfloat))
      || !g_size_checked_mul (&bytes, job->stride, (gsize) job->height)
      || job->width > G_MAXINT32 / 3 || job->out_width > G_MAXINT32 / 3) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "Cannot resample %ux%u pixels to %ux%u: too large", job->width, job->height, job->out_width,
        job->out_height);
    return FALSE;
  }
  if (job->stride < (gsize) job->width * 3) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "Rows of %" G_GSIZE_FORMAT " bytes cannot hold %u RGB pixels", job->stride, job->width);
    return FALSE;
  }
  return TRUE;
}

gboolean
vlm_resample_rgb (const VlmKernels *kernels, const guint8 *src, gsize stride, guint width,
    guint height, guint8 *dst, guint out_width, guint out_height, VlmFilter filter,
    VlmResamplePath path, GError **error)
{
  Resample job = { kernels, src, stride, width, height, dst, out_width, out_height, { 0 }, { 0 } };
  gboolean done = FALSE;

  if (!check_sides (&job, error))
    return FALSE;
  if (path == VLM_RESAMPLE_FLOAT && filter == VLM_FILTER_BICUBIC) {
    g_set_error_literal (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "The float resample knows the bilinear filter only");
    return FALSE;
  }

  if (width != out_width && !vlm_taps_init (&job.across, width, out_width, filter, path, error))
    goto out;
  if (height != out_height && !vlm_taps_init (&job.down, height, out_height, filter, path, error))
    goto out;

  done = path == VLM_RESAMPLE_FLOAT ? float_run (&job) : integer_run (&job);
  if (!done)
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for resampling %ux%u pixels to %ux%u", width, height, out_width, out_height);

out:
  vlm_taps_clear (&job.across);
  vlm_taps_clear (&job.down);
  return done;
}
