/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "rows-fixture.h"

#include <math.h>
#include <string.h>

#include "engine/formats/half.h"
#include "engine/formats/tensors-private.h"

const VlmIntFormat rows_fixture_formats[] = {
  { 4, VLM_SCALE_F16, FALSE, 32 },   /* Q4_0 */
  { 4, VLM_SCALE_F16, TRUE, 32 },    /* Q4_1 */
  { 5, VLM_SCALE_F16, FALSE, 32 },   /* Q5_0 */
  { 5, VLM_SCALE_F16, TRUE, 32 },    /* Q5_1 */
  { 8, VLM_SCALE_F16, FALSE, 32 },   /* Q8_0 */
  { 4, VLM_SCALE_CODES, TRUE, 32 },  /* Q4_K */
  { 5, VLM_SCALE_CODES, TRUE, 32 },  /* Q5_K */
  { 6, VLM_SCALE_CODES, FALSE, 16 }, /* Q6_K */
  { 8, VLM_SCALE_ROW, FALSE, 0 },
  { 4, VLM_SCALE_ROW, FALSE, 0 },
  { 6, VLM_SCALE_ROW, FALSE, 0 },
  { 4, VLM_SCALE_F16, FALSE, 64 },
  { 4, VLM_SCALE_F32, TRUE, 64 },
  { 6, VLM_SCALE_F32, FALSE, 48 },
  { 5, VLM_SCALE_CODES, FALSE, 128 },
  { 8, VLM_SCALE_CODES, FALSE, 256 },
};
const guint rows_fixture_n_formats = G_N_ELEMENTS (rows_fixture_formats);

gchar *
rows_fixture_format_name (const VlmIntFormat *format)
{
  static const gchar *const scales[] = { "row", "f16", "f32", "codes" };

  return g_strdup_printf ("int%u %s/%" G_GSIZE_FORMAT "%s", format->bits, scales[format->scale],
      format->group, format->has_min ? " min" : "");
}

/* Of either sign, some of them zero. */
static gfloat
random_scale (GRand *random)
{
  if (g_rand_int_range (random, 0, 29) == 0)
    return 0;
  return (gfloat) g_rand_double_range (random, -1, 1) * (1.0f / 64);
}

static void
fill_scales (gpointer scales, VlmIntScale kind, gsize n, GRand *random)
{
  gsize i;

  for (i = 0; i < n; i++) {
    if (kind == VLM_SCALE_CODES)
      ((gint8 *) scales)[i] = (gint8) g_rand_int_range (random, -128, 128);
    else if (kind == VLM_SCALE_F16)
      ((guint16 *) scales)[i] = vlm_half_from_float (random_scale (random));
    else
      ((gfloat *) scales)[i] = random_scale (random);
  }
}

void
rows_fixture_fill (VlmQuantRows *rows, gsize n_rows, GRand *random)
{
  const VlmIntFormat *format = &rows->format;
  gint32 least = format->has_min ? 0 : -(1 << (format->bits - 1));
  gsize i;

  for (i = 0; i < n_rows * rows->cols; i++)
    rows->q[i] = (gint8) g_rand_int_range (random, least, least + (1 << format->bits));
  fill_scales (rows->scale, format->scale, n_rows * rows->n_groups, random);
  if (format->has_min)
    fill_scales (rows->min, format->scale, n_rows * rows->n_groups, random);
  if (format->scale == VLM_SCALE_CODES)
    fill_scales (rows->super, VLM_SCALE_F16, n_rows * rows->n_supers, random);
  if (format->scale == VLM_SCALE_CODES && format->has_min)
    fill_scales (rows->super_min, VLM_SCALE_F16, n_rows * rows->n_supers, random);
}

static gdouble
scale_value (
    const VlmQuantRows *rows, gconstpointer scales, const guint16 *halves, gsize row, gsize column)
{
  VlmIntScale kind = rows->format.scale;
  gsize at = row * rows->n_groups;

  if (kind == VLM_SCALE_ROW)
    return ((const gfloat *) scales)[at];
  at += column / rows->format.group;
  if (kind == VLM_SCALE_F32)
    return ((const gfloat *) scales)[at];
  if (kind == VLM_SCALE_F16)
    return vlm_half_to_float (((const guint16 *) scales)[at]);
  return (gdouble) ((const gint8 *) scales)[at]
      * vlm_half_to_float (halves[row * rows->n_supers + column / 256]);
}

gdouble
rows_fixture_value (const VlmQuantRows *rows, gsize row, gsize column, gdouble *size)
{
  gdouble value = rows->q[row * rows->cols + column]
      * scale_value (rows, rows->scale, rows->super, row, column);
  gdouble min =
      rows->format.has_min ? scale_value (rows, rows->min, rows->super_min, row, column) : 0;

  *size = fabs (value) + fabs (min);
  return value + min;
}

/* ---- A source ----------------------------------------------------------------------------- */

typedef struct
{
  VlmQuantRows rows; /* of integers */
  gfloat *floats;    /* what they are, for whoever compares */
  guint8 *raw;       /* floats in the tensor's type */
} Content;

typedef struct
{
  VlmTensorSource *source;
  Content *contents;
  guint n;
} Memory;

/* All that are alive, so that a source's contents can be found. */
static GPtrArray *memories;

static gboolean
read_bytes (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  const Memory *memory = data;

  memcpy (buffer, memory->contents[n].raw + offset, length);
  return TRUE;
}

static gboolean
read_rows (gpointer data, guint n, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  const Memory *memory = data;
  VlmQuantRows from = vlm_quant_rows_skip (&memory->contents[n].rows, first);
  gsize scales = n_rows * rows->n_groups * vlm_int_scale_size (rows->format.scale);
  gsize supers = n_rows * rows->n_supers * sizeof (guint16);

  memcpy (rows->q, from.q, n_rows * rows->cols);
  memcpy (rows->scale, from.scale, scales);
  if (rows->min != NULL)
    memcpy (rows->min, from.min, scales);
  if (rows->super != NULL)
    memcpy (rows->super, from.super, supers);
  if (rows->super_min != NULL)
    memcpy (rows->super_min, from.super_min, supers);
  return TRUE;
}

static gboolean
is_verified (gpointer data, guint n)
{
  return TRUE;
}

static void
memory_free (gpointer data)
{
  Memory *memory = data;
  guint i;

  for (i = 0; i < memory->n; i++) {
    vlm_quant_rows_clear (&memory->contents[i].rows);
    g_free (memory->contents[i].floats);
    g_free (memory->contents[i].raw);
  }
  g_free (memory->contents);
  g_ptr_array_remove (memories, memory);
  g_free (memory);
}

/* Values that every type of floats holds. */
static void
fill_floats (Content *content, const RowsTensor *tensor, GRand *random)
{
  gsize n = tensor->rows * tensor->cols, i;
  gsize size = vlm_dtype_size (tensor->dtype);

  content->floats = g_new (gfloat, n);
  content->raw = g_malloc (n * size);
  for (i = 0; i < n; i++) {
    gfloat value = (gfloat) g_rand_int_range (random, -127, 128) / 64;
    guint16 half = vlm_half_from_float (value);
    guint32 bits;

    memcpy (&bits, &value, sizeof (bits));
    if (tensor->dtype == VLM_DTYPE_BF16)
      half = (guint16) (bits >> 16);
    if (size == sizeof (value))
      memcpy (content->raw + i * size, &value, size);
    else
      memcpy (content->raw + i * size, &half, size);
    content->floats[i] = value;
  }
}

static void
add_tensor (Memory *memory, const RowsTensor *tensor, GRand *random)
{
  Content *content = &memory->contents[memory->n++];
  VlmTensorInfo info = { .name = g_strdup (tensor->name),
    .dtype = tensor->dtype,
    .rank = 2,
    .shape = { tensor->rows, tensor->cols },
    .n_bytes = tensor->rows * tensor->cols * vlm_dtype_size (tensor->dtype),
    .format = tensor->format };

  if (tensor->dtype == VLM_DTYPE_QUANTISED) {
    g_assert_true (
        vlm_quant_rows_init (&content->rows, &tensor->format, tensor->rows, tensor->cols, NULL));
    rows_fixture_fill (&content->rows, tensor->rows, random);
  } else {
    fill_floats (content, tensor, random);
  }
  vlm_tensor_source_add (memory->source, &info);
}

VlmTensorSource *
rows_fixture_new (const RowsTensor *tensors, guint n, guint32 seed)
{
  static const VlmTensorReader functions = { read_bytes, read_rows, is_verified, memory_free };
  Memory *memory = g_new0 (Memory, 1);
  GRand *random = g_rand_new_with_seed (seed);
  guint i;

  memory->source = vlm_tensor_source_new ();
  memory->contents = g_new0 (Content, n);
  for (i = 0; i < n; i++)
    add_tensor (memory, &tensors[i], random);
  g_rand_free (random);
  if (memories == NULL)
    memories = g_ptr_array_new ();
  g_ptr_array_add (memories, memory);
  vlm_tensor_source_set_reader (memory->source, &functions, memory);
  g_assert_true (vlm_tensor_source_index (memory->source, NULL));
  return memory->source;
}

static const Content *
find_content (VlmTensorSource *source, guint i)
{
  guint m;

  for (m = 0; m < memories->len; m++) {
    const Memory *memory = memories->pdata[m];

    if (memory->source == source && i < memory->n)
      return &memory->contents[i];
  }
  g_assert_not_reached ();
}

const VlmQuantRows *
rows_fixture_get_rows (VlmTensorSource *source, guint i)
{
  return &find_content (source, i)->rows;
}

const gfloat *
rows_fixture_get_floats (VlmTensorSource *source, guint i)
{
  return find_content (source, i)->floats;
}
