/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cellm-fixture.h"

#include <math.h>
#include <string.h>

#include "engine/formats/half.h"

static void
free_part (gpointer data)
{
  CellmPart *part = data;

  g_byte_array_unref (part->data);
  g_free (part->name);
  g_free (part);
}

CellmFixture *
cellm_fixture_new (void)
{
  CellmFixture *fixture = g_new0 (CellmFixture, 1);

  fixture->alignment = 64;
  fixture->parts = g_ptr_array_new_with_free_func (free_part);
  fixture->header = json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:n, s:n}",
      "model_type", "lfm2", "vocab_size", 272, "hidden_dim", 16, "intermediate_size", 16,
      "num_layers", 2, "num_heads", 2, "num_kv_heads", 1, "rms_norm_eps", 1e-6, "rope_theta",
      10000.0, "eos_token_id", 7, "bos_token_id", "head_dim");
  return fixture;
}

void
cellm_fixture_free (CellmFixture *fixture)
{
  json_decref (fixture->header);
  json_decref (fixture->index);
  g_free (fixture->text);
  g_ptr_array_unref (fixture->parts);
  g_free (fixture);
}

void
cellm_fixture_add (CellmFixture *fixture, const gchar *name, const gchar *dtype, guint rank,
    const guint64 *shape, gconstpointer data, gsize size)
{
  CellmPart *part = g_new0 (CellmPart, 1);

  part->name = g_strdup (name);
  part->dtype = dtype;
  part->rank = rank;
  memcpy (part->shape, shape, rank * sizeof (*shape));
  part->data = g_byte_array_new ();
  g_byte_array_append (part->data, data, size);
  g_ptr_array_add (fixture->parts, part);
}

CellmPart *
cellm_fixture_find (CellmFixture *fixture, const gchar *name)
{
  guint i;

  for (i = 0; i < fixture->parts->len; i++) {
    CellmPart *part = g_ptr_array_index (fixture->parts, i);

    if (strcmp (part->name, name) == 0)
      return part;
  }
  g_error ("the file has no tensor %s", name);
}

void
cellm_fixture_drop (CellmFixture *fixture, const gchar *name)
{
  g_ptr_array_remove (fixture->parts, cellm_fixture_find (fixture, name));
}

/* ---- Values ------------------------------------------------------------------------------- */

static void
append_u16 (GByteArray *bytes, guint16 value)
{
  g_byte_array_append (bytes, (const guint8 *) &value, sizeof (value));
}

static void
append_f32 (GByteArray *bytes, gfloat value)
{
  g_byte_array_append (bytes, (const guint8 *) &value, sizeof (value));
}

static void
add_bytes (CellmFixture *fixture, const gchar *name, const gchar *end, const gchar *dtype,
    guint rank, const guint64 *shape, const GByteArray *bytes)
{
  g_autofree gchar *full = g_strconcat (name, end, NULL);

  cellm_fixture_add (fixture, full, dtype, rank, shape, bytes->data, bytes->len);
}

static void
add_floats (CellmFixture *fixture, const gchar *name, CellmKind kind, guint rank,
    const guint64 *shape, const gfloat *values, gfloat *stored)
{
  static const gchar *const dtypes[] = { "f16", "f32", "bf16" };
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  gsize n = 1, i;

  for (i = 0; i < rank; i++)
    n *= shape[i];
  for (i = 0; i < n; i++) {
    guint16 half = vlm_half_from_float (values[i]);
    guint32 word;

    memcpy (&word, &values[i], sizeof (word));
    if (kind == CELLM_F32)
      append_f32 (bytes, values[i]);
    else
      append_u16 (bytes, kind == CELLM_F16 ? half : word >> 16);
    word &= 0xffff0000;
    if (stored != NULL && kind == CELLM_BF16)
      memcpy (&stored[i], &word, sizeof (word));
    else if (stored != NULL)
      stored[i] = kind == CELLM_F16 ? vlm_half_to_float (half) : values[i];
  }
  add_bytes (fixture, name, "", dtypes[kind], rank, shape, bytes);
}

/* Four bits of the values of one row, behind each other; a row begins with a new byte. */
static void
append_nibbles (GByteArray *bytes, const gint8 *q, gsize n, gint bias)
{
  gsize i;

  for (i = 0; i < n; i += 2) {
    guint8 high = i + 1 < n ? q[i + 1] + bias : bias;
    guint8 byte = (guint8) (q[i] + bias) | high << 4;

    g_byte_array_append (bytes, &byte, 1);
  }
}

/* The largest magnitude of a group becomes limit; the quotient is rounded with the f32 scale. */
static gfloat
round_group (const gfloat *values, gsize n, gfloat limit, gint8 *q, gfloat *stored)
{
  gfloat largest = 0, scale, half;
  gsize i;

  for (i = 0; i < n; i++)
    largest = fmaxf (largest, fabsf (values[i]));
  scale = fmaxf (largest / limit, 1e-12f);
  half = vlm_half_to_float (vlm_half_from_float (scale));
  for (i = 0; i < n; i++) {
    q[i] = CLAMP (rintf (values[i] / scale), -limit, limit);
    if (stored != NULL)
      stored[i] = q[i] * half;
  }
  return scale;
}

static void
add_symmetric (CellmFixture *fixture, const gchar *name, CellmKind kind, const guint64 *shape,
    const gfloat *values, gfloat *stored)
{
  gsize cols = shape[1], row, first;
  gsize group = kind == CELLM_I4_64 ? 64 : kind == CELLM_I4_128 ? 128 : cols;
  guint64 scale_shape[] = { shape[0], (cols + group - 1) / group };
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autoptr (GByteArray) scales = g_byte_array_new ();
  g_autofree gint8 *q = g_new (gint8, cols);

  for (row = 0; row < shape[0]; row++) {
    for (first = 0; first < cols; first += group) {
      gfloat scale = round_group (values + row * cols + first, MIN (group, cols - first),
          kind == CELLM_I8 ? 127 : 7, q + first, stored ? stored + row * cols + first : NULL);

      append_u16 (scales, vlm_half_from_float (scale));
    }
    if (kind == CELLM_I8)
      g_byte_array_append (bytes, (const guint8 *) q, cols);
    else
      append_nibbles (bytes, q, cols, 8);
  }
  add_bytes (fixture, name, "", kind == CELLM_I8 ? "i8" : "i4", 2, shape, bytes);
  add_bytes (fixture, name, ".qscale", "f16", group == cols ? 1 : 2, scale_shape, scales);
}

static void
add_affine (CellmFixture *fixture, const gchar *name, const guint64 *shape, const gfloat *values,
    gfloat *stored)
{
  gsize cols = shape[1], n = shape[0] * cols, first, i;
  guint64 packed[] = { shape[0], cols / 8 }, groups[] = { shape[0], cols / 64 };
  g_autofree gchar *base = g_strndup (name, strlen (name) - strlen (".weight"));
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autoptr (GByteArray) scales = g_byte_array_new ();
  g_autoptr (GByteArray) biases = g_byte_array_new ();

  g_assert_true (g_str_has_suffix (name, ".weight") && cols % 64 == 0);
  for (first = 0; first < n; first += 64) {
    gfloat least = values[first], largest = values[first], scale;
    gint8 q[64];

    for (i = 0; i < 64; i++) {
      least = fminf (least, values[first + i]);
      largest = fmaxf (largest, values[first + i]);
    }
    scale = (largest - least) / 15;
    for (i = 0; i < 64; i++) {
      q[i] = scale == 0 ? 0 : rintf ((values[first + i] - least) / scale);
      if (stored != NULL)
        stored[first + i] = q[i] * scale + least;
    }
    append_nibbles (bytes, q, 64, 0);
    append_f32 (scales, scale);
    append_f32 (biases, least);
  }
  add_bytes (fixture, name, "", "u32", 2, packed, bytes);
  add_bytes (fixture, base, ".scales", "f32", 2, groups, scales);
  add_bytes (fixture, base, ".biases", "f32", 2, groups, biases);
}

void
cellm_fixture_add_values (CellmFixture *fixture, const gchar *name, CellmKind kind, guint rank,
    const guint64 *shape, const gfloat *values, gfloat *stored)
{
  if (kind <= CELLM_BF16) {
    add_floats (fixture, name, kind, rank, shape, values, stored);
    return;
  }
  g_assert_cmpuint (rank, ==, 2);
  if (kind == CELLM_U32)
    add_affine (fixture, name, shape, values, stored);
  else
    add_symmetric (fixture, name, kind, shape, values, stored);
}

static void
copy_floats (
    CellmFixture *fixture, VlmTensorSource *source, const VlmTensorInfo *info, const gchar *name)
{
  static const gchar *const dtypes[] = { "f32", "f16", "bf16" };
  g_autofree guint8 *bytes = g_malloc (info->n_bytes);
  g_autoptr (GError) error = NULL;

  g_assert_true (vlm_tensor_source_read (source, info, 0, bytes, info->n_bytes, NULL, &error));
  g_assert_no_error (error);
  cellm_fixture_add (
      fixture, name, dtypes[info->dtype], info->rank, info->shape, bytes, info->n_bytes);
}

void
cellm_fixture_add_copy (
    CellmFixture *fixture, VlmTensorSource *source, const VlmTensorInfo *info, const gchar *name)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autoptr (GByteArray) scales = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  gsize n_rows = info->shape[0], cols = info->shape[1], i;
  gboolean per_row = info->format.scale == VLM_SCALE_ROW;
  guint64 scale_shape[2] = { n_rows };
  VlmQuantRows rows;

  if (info->dtype != VLM_DTYPE_QUANTISED) {
    copy_floats (fixture, source, info, name);
    return;
  }
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, n_rows, cols, &error));
  g_assert_true (vlm_tensor_source_read_rows (source, info, 0, n_rows, &rows, NULL, &error));
  scale_shape[1] = rows.n_groups;
  for (i = 0; i < n_rows; i++) {
    if (info->format.bits == 8)
      g_byte_array_append (bytes, (const guint8 *) rows.q + i * cols, cols);
    else
      append_nibbles (bytes, rows.q + i * cols, cols, 8);
  }
  for (i = 0; i < n_rows * rows.n_groups; i++)
    append_u16 (scales,
        per_row ? vlm_half_from_float (((gfloat *) rows.scale)[i]) : ((guint16 *) rows.scale)[i]);
  vlm_quant_rows_clear (&rows);
  add_bytes (fixture, name, "", info->format.bits == 8 ? "i8" : "i4", 2, info->shape, bytes);
  add_bytes (fixture, name, ".qscale", "f16", per_row ? 1 : 2, scale_shape, scales);
}

/* ---- The file ----------------------------------------------------------------------------- */

#define PREFIX 10

gchar *
cellm_fixture_print_header (CellmFixture *fixture)
{
  json_t *whole = json_copy (fixture->header);
  gchar *copy;
  char *text;

  json_object_set (whole, "tensors", fixture->index);
  text = json_dumps (whole, 0);
  g_assert_nonnull (text);
  copy = g_strdup (text);
  free (text);
  json_decref (whole);
  return copy;
}

/* A key of one object, or null, under another name in the header. */
static void
take_over (CellmFixture *fixture, const gchar *key, const json_t *object, const gchar *from)
{
  json_t *value = json_object_get (object, from);

  json_object_set_new (fixture->header, key, value ? json_incref (value) : json_null ());
}

/* What writers put where the configuration says nothing. */
static void
fill_in (CellmFixture *fixture, const gchar *key, gdouble value)
{
  if (json_is_null (json_object_get (fixture->header, key)))
    json_object_set_new (fixture->header, key, json_real (value));
}

void
cellm_fixture_set_config (CellmFixture *fixture, const json_t *config)
{
  static const gchar *const keys[][2] = { { "vocab_size", "vocab_size" },
    { "hidden_dim", "hidden_size" }, { "intermediate_size", "intermediate_size" },
    { "num_layers", "num_hidden_layers" }, { "num_heads", "num_attention_heads" },
    { "num_kv_heads", "num_key_value_heads" }, { "head_dim", "head_dim" },
    { "rms_norm_eps", "norm_eps" }, { "max_position_embeddings", "max_position_embeddings" } };
  static const gchar *const top[] = { "projector_hidden_size", "projector_hidden_act",
    "projector_bias", "projector_use_layernorm", "downsample_factor", "image_token_id" };
  const json_t *text = json_object_get (config, "text_config");
  json_t *projector = json_object ();
  const json_t *rope;
  guint i;

  text = text != NULL ? text : config;
  rope = json_object_get (text, "rope_parameters");
  for (i = 0; i < G_N_ELEMENTS (keys); i++)
    take_over (fixture, keys[i][0], text, keys[i][1]);
  take_over (fixture, "rope_theta", rope != NULL ? rope : text, "rope_theta");
  fill_in (fixture, "rms_norm_eps", 1e-5);
  fill_in (fixture, "rope_theta", 1e6);
  take_over (fixture, "bos_token_id", text, "bos_token_id");
  take_over (fixture, "eos_token_id", text, "eos_token_id");
  take_over (fixture, "tie_word_embeddings", config, "tie_word_embeddings");
  json_object_set (fixture->header, "source_text_config", (json_t *) text);
  take_over (fixture, "source_vision_config", config, "vision_config");
  for (i = 0; i < G_N_ELEMENTS (top); i++) {
    json_t *value = json_object_get (config, top[i]);

    if (value != NULL)
      json_object_set (projector, top[i], value);
  }
  json_object_set_new (fixture->header, "source_projector_config", projector);
}

static guint64
align (guint64 offset, guint64 alignment)
{
  return (offset + alignment - 1) / alignment * alignment;
}

/* The index with places that begin at start. (transfer full) */
static json_t *
make_index (const CellmFixture *fixture, guint64 start)
{
  json_t *index = json_array ();
  guint64 offset = start;
  guint i, d;

  for (i = 0; i < fixture->parts->len; i++) {
    const CellmPart *part = g_ptr_array_index (fixture->parts, i);
    json_t *shape = json_array ();
    gboolean follows = fixture->tight && g_str_has_suffix (part->name, ".qscale");

    for (d = 0; d < part->rank; d++)
      json_array_append_new (shape, json_integer (part->shape[d]));
    offset = align (offset, follows ? 2 : fixture->alignment);
    json_array_append_new (index,
        json_pack ("{s:s, s:I, s:I, s:o, s:s}", "name", part->name, "offset_bytes",
            (json_int_t) offset, "nbytes", (json_int_t) part->data->len, "shape", shape, "dtype",
            part->dtype));
    offset += part->data->len;
  }
  return index;
}

/* Offsets and the header's length depend on each other: until both stay. */
void
cellm_fixture_lay_out (CellmFixture *fixture)
{
  guint64 before;

  fixture->start = 0;
  do {
    g_autofree gchar *text = NULL;

    json_decref (fixture->index);
    fixture->index = make_index (fixture, fixture->start);
    before = fixture->start;
    text = cellm_fixture_print_header (fixture);
    fixture->start = align (PREFIX + strlen (text), 64);
  } while (fixture->start != before);
}

json_t *
cellm_fixture_entry (CellmFixture *fixture, const gchar *name)
{
  json_t *entry;
  gsize i;

  json_array_foreach (fixture->index, i, entry) {
    if (strcmp (json_string_value (json_object_get (entry, "name")), name) == 0)
      return entry;
  }
  g_error ("the index has no tensor %s", name);
}

GByteArray *
cellm_fixture_print (CellmFixture *fixture)
{
  GByteArray *bytes = g_byte_array_new ();
  g_autofree gchar *text = NULL;
  json_t *places;
  guint32 length;
  guint i;

  if (fixture->index == NULL)
    cellm_fixture_lay_out (fixture);
  text = fixture->text ? g_strdup (fixture->text) : cellm_fixture_print_header (fixture);
  length = GUINT32_TO_LE (strlen (text));
  g_byte_array_append (bytes, (const guint8 *) "CELLM\1", 6);
  g_byte_array_append (bytes, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (bytes, (const guint8 *) text, strlen (text));
  places = make_index (fixture, MAX (fixture->start, align (bytes->len, 64)));
  for (i = 0; i < fixture->parts->len; i++) {
    const CellmPart *part = g_ptr_array_index (fixture->parts, i);
    const json_t *place = json_object_get (json_array_get (places, i), "offset_bytes");
    gsize end = bytes->len, offset = json_integer_value (place);

    g_byte_array_set_size (bytes, offset);
    memset (bytes->data + end, 0, offset - end);
    g_byte_array_append (bytes, part->data->data, part->data->len);
  }
  json_decref (places);
  return bytes;
}

void
cellm_fixture_save (CellmFixture *fixture, const gchar *path)
{
  g_autoptr (GByteArray) bytes = cellm_fixture_print (fixture);
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents (path, (const gchar *) bytes->data, bytes->len, &error));
  g_assert_no_error (error);
}

gchar *
cellm_fixture_save_in (const gchar *directory, CellmFixture *fixture)
{
  gchar *path = g_build_filename (directory, "victim.cellm", NULL);

  cellm_fixture_save (fixture, path);
  return path;
}

/* ---- Samples ------------------------------------------------------------------------------ */

const CellmSample cellm_samples[CELLM_N_SAMPLES] = {
  { "norm.weight", CELLM_F16, 1, { 5 } },
  { "taps.weight", CELLM_F32, 3, { 16, 1, 2 } },
  { "brain.weight", CELLM_BF16, 2, { 3, 2 } },
  { "rows.weight", CELLM_I8, 2, { 4, 7 } },
  { "whole.weight", CELLM_I4_ROW, 2, { 3, 320 } },
  { "odd.weight", CELLM_I4_ROW, 2, { 2, 5 } },
  { "groups.weight", CELLM_I4_64, 2, { 3, 320 } },
  { "rest.weight", CELLM_I4_64, 2, { 4, 129 } },
  { "wide.weight", CELLM_I4_128, 2, { 3, 320 } },
  { "affine.weight", CELLM_U32, 2, { 2, 128 } },
};

gsize
cellm_sample_count (const CellmSample *sample)
{
  gsize n = 1, i;

  for (i = 0; i < sample->rank; i++)
    n *= sample->shape[i];
  return n;
}

/* Values without order, of one sign or two. */
void
cellm_fixture_add_sample (CellmFixture *fixture, const CellmSample *sample, gfloat *stored)
{
  gsize n = cellm_sample_count (sample), i;
  g_autofree gfloat *values = g_new (gfloat, n);

  for (i = 0; i < n; i++)
    values[i] = sinf (i * 12.9898f) * (1 + i % 7) + 0.25f;
  cellm_fixture_add_values (
      fixture, sample->name, sample->kind, sample->rank, sample->shape, values, stored);
}

CellmFixture *
cellm_fixture_new_samples (void)
{
  CellmFixture *fixture = cellm_fixture_new ();
  guint i;

  for (i = 0; i < CELLM_N_SAMPLES; i++)
    cellm_fixture_add_sample (fixture, &cellm_samples[i], NULL);
  return fixture;
}
