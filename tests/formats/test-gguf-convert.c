/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * GGUF models as .slm files: blocks of every type keep their values, and what would round them a
 * second time is refused.
 */

#define _GNU_SOURCE /* memmem () */

#include <glib/gstdio.h>
#include <string.h>

#include "cellm-models.h"
#include "engine/formats/model-files.h"
#include "gguf-model.h"

/* Rows of its matrices are as long as the largest block. */
#define MODEL "gguf-q4_k_m"
#define TEXT "model-Q4_K_M.gguf"
#define VISION "mmproj-Q8_0.gguf"

/* Where a file's counts end and its keys begin. */
#define KEYS 24

typedef struct
{
  const gchar *name;
  guint type, n_values, n_bytes;
  guint n_halves, halves[2]; /* where in a block its halves are; codes and integers are the rest */
} BlockType;

static const BlockType block_types[] = {
  { "Q8_0", 8, 32, 34, 1, { 0 } },
  { "Q4_0", 2, 32, 18, 1, { 0 } },
  { "Q4_1", 3, 32, 20, 2, { 0, 2 } },
  { "Q5_0", 6, 32, 22, 1, { 0 } },
  { "Q5_1", 7, 32, 24, 2, { 0, 2 } },
  { "Q4_K", 12, 256, 144, 2, { 0, 2 } },
  { "Q5_K", 13, 256, 176, 2, { 0, 2 } },
  { "Q6_K", 14, 256, 210, 1, { 208 } },
};

/* ---- A model with blocks of one type ------------------------------------------------------- */

/* Any integers and codes, and halves between 2^-13 and 2^-11 of either sign. */
static void
append_blocks (GByteArray *data, const BlockType *type, guint64 n, GRand *random)
{
  guint64 block;
  guint i;

  for (block = 0; block < n; block++) {
    gsize begin = data->len;

    g_byte_array_set_size (data, begin + type->n_bytes);
    for (i = 0; i < type->n_bytes; i++)
      data->data[begin + i] = g_rand_int_range (random, 0, 256);
    for (i = 0; i < type->n_halves; i++) {
      guint8 *half = data->data + begin + type->halves[i] + 1;

      *half = (*half & 0x80) | 0x08 | (*half & 0x07);
    }
  }
}

/* The bytes of the keys, which stand in front of the first tensor's name. */
static void
copy_keys (GgufWriter *writer, const gchar *path, const VlmGguf *gguf)
{
  const gchar *first = vlm_gguf_get_tensor (gguf, 0)->name;
  g_autoptr (GByteArray) name = g_byte_array_new ();
  guint64 length = GUINT64_TO_LE (strlen (first));
  g_autofree gchar *bytes = NULL;
  const gchar *end;
  gsize size;

  g_byte_array_append (name, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (name, (const guint8 *) first, strlen (first));
  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  end = memmem (bytes, size, name->data, name->len);
  g_assert_nonnull (end);
  g_byte_array_append (writer->keys, (const guint8 *) bytes + KEYS, end - bytes - KEYS);
  memcpy (&writer->n_keys, bytes + KEYS - 8, 8);
  writer->n_keys = GUINT64_FROM_LE (writer->n_keys);
}

/* What a .slm file holds of floats are halves: those that are none are made some. */
static void
append_floats (GByteArray *data, const VlmGguf *gguf, const VlmGgufTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  gsize i;

  g_byte_array_set_size (data, tensor->n_bytes);
  g_assert_true (vlm_file_read (
      vlm_gguf_get_file (gguf, 0), tensor->offset, data->data, data->len, NULL, &error));
  for (i = 0; tensor->type == 0 && i < data->len; i += 4) {
    guint32 bits;

    memcpy (&bits, data->data + i, sizeof (bits));
    /* Of f32's 23 bits the upper 10, and nothing below 2^-14. */
    bits = (bits >> 23 & 0xff) < 127 - 14 ? 0 : bits & 0xffffe000;
    memcpy (data->data + i, &bits, sizeof (bits));
  }
}

/* The file at path with random blocks of the type in place of its own blocks. */
static void
write_with_blocks (const gchar *path, const gchar *directory, const BlockType *type)
{
  g_autofree gchar *name = g_path_get_basename (path);
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GRand) random = g_rand_new_with_seed (type->type);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = vlm_gguf_open (path, &error);
  guint n_blocks = 0, i;

  g_assert_no_error (error);
  copy_keys (writer, path, gguf);
  for (i = 0; i < vlm_gguf_get_n_tensors (gguf); i++) {
    const VlmGgufTensor *tensor = vlm_gguf_get_tensor (gguf, i);
    gboolean is_blocks = tensor->rank == 2 && tensor->type > 1;
    g_autoptr (GByteArray) data = g_byte_array_new ();

    if (is_blocks)
      append_blocks (data, type, tensor->dims[0] / type->n_values * tensor->dims[1], random);
    else
      append_floats (data, gguf, tensor);
    gguf_add_tensor (writer, tensor->name, is_blocks ? type->type : tensor->type, tensor->rank,
        tensor->dims, data->data, data->len);
    n_blocks += is_blocks;
  }
  g_assert_cmpuint (n_blocks, >, 10);
  gguf_writer_save (writer, directory, name);
}

static gchar *
golden_file (const gchar *name)
{
  return g_test_build_filename (G_TEST_DIST, "golden", "models", MODEL, name, NULL);
}

/* A directory with the pair. Rows of the vision part are too short for the larger blocks. */
static gchar *
make_pair (const BlockType *type)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *text = golden_file (TEXT), *vision = golden_file (VISION);

  write_with_blocks (text, directory, type);
  write_with_blocks (vision, directory, type->n_values == 32 ? type : &block_types[0]);
  return directory;
}

/* ---- What becomes of it -------------------------------------------------------------------- */

/* Every value of every tensor that the model uses. */
static void
compare_values (const gchar *gguf, const gchar *slm)
{
  g_autoptr (VlmTensorSource) one = cellm_models_open (gguf), other = cellm_models_open (slm);
  guint i, n_integers = 0;

  g_assert_cmpuint (vlm_tensor_source_get_count (one), ==, vlm_tensor_source_get_count (other));
  for (i = 0; i < vlm_tensor_source_get_count (one); i++) {
    const VlmTensorInfo *a = vlm_tensor_source_get_nth (one, i);
    const VlmTensorInfo *b = vlm_tensor_source_lookup (other, a->name);
    g_autofree gfloat *x = NULL, *y = NULL;

    g_assert_nonnull (b);
    if (a->dtype != VLM_DTYPE_QUANTISED)
      continue;
    n_integers++;
    g_assert_cmpint (b->dtype, ==, VLM_DTYPE_QUANTISED);
    x = cellm_models_read (one, a);
    y = cellm_models_read (other, b);
    g_assert_cmpmem (
        x, vlm_tensor_count_values (a) * sizeof (*x), y, vlm_tensor_count_values (b) * sizeof (*y));
  }
  g_assert_cmpuint (n_integers, >, 20);
}

static void
refuse_rounding (const gchar *from, const gchar *to)
{
  static const VlmWeightType types[] = { VLM_WEIGHT_F16, VLM_WEIGHT_INT8, VLM_WEIGHT_INT4 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    VlmConvertOptions options = { types[i], VLM_WEIGHT_AUTO, FALSE, 1, NULL };
    g_autoptr (GError) error = NULL;

    g_assert_false (vlm_model_convert (from, to, &options, NULL, NULL, NULL, &error));
    fixture_assert_message (
        error, VLM_ERROR_UNSUPPORTED, "model.language_model.embed_tokens.weight");
    fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "quantised a second time");
    g_assert_false (g_file_test (to, G_FILE_TEST_EXISTS));
    options.requantise = TRUE;
    if (types[i] == VLM_WEIGHT_INT8) {
      g_clear_error (&error);
      vlm_model_convert (from, to, &options, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (g_unlink (to), ==, 0);
    }
  }
}

static void
test_keep (gconstpointer data)
{
  const VlmConvertOptions options = { VLM_WEIGHT_KEEP, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  gchar *directory = make_pair (data);
  gchar *elsewhere = fixture_directory_new ();
  g_autofree gchar *slm = g_build_filename (elsewhere, "model.slm", NULL);
  g_autoptr (CellmAnswer) before = NULL, after = NULL;
  g_autoptr (GError) error = NULL;

  refuse_rounding (directory, slm);
  vlm_model_convert (directory, slm, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  compare_values (directory, slm);
  before = cellm_models_ask (directory, VLM_PRECISION_EXACT);
  after = cellm_models_ask (slm, VLM_PRECISION_EXACT);
  g_assert_cmpuint (before->n_ids, >, 3);
  cellm_answer_compare (before, after, 0);
  fixture_directory_remove (elsewhere);
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  gsize i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (block_types); i++) {
    g_autofree gchar *path = g_strconcat ("/gguf-convert/", block_types[i].name, NULL);

    g_test_add_data_func (path, &block_types[i], test_keep);
  }
  return g_test_run ();
}
