/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tensors of GGUF files as those of a checkpoint: names, shapes, order of values, and refusals. */

#include <string.h>

#include "engine/formats/gguf-tensors.h"
#include "engine/vlm.h"
#include "gguf-model.h"

static VlmGguf *
open_writer (const GgufWriter *writer, const gchar *directory, const gchar *name)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);
  g_autoptr (GError) error = NULL;
  VlmGguf *gguf;

  gguf_writer_save (writer, directory, name);
  gguf = vlm_gguf_open (path, &error);
  g_assert_no_error (error);
  return gguf;
}

/* ---- The small model ---------------------------------------------------------------------- */

/* Without a level that checkpoints may have or not. */
static gchar *
short_name (const gchar *name)
{
  g_auto (GStrv) parts = g_strsplit (name, "vision_tower.vision_model.", 2);

  return g_strjoinv ("vision_tower.", parts);
}

/* The tensor has the shape and, read in pieces, the bytes that the model's has. */
static void
check_tensor (VlmTensorSource *source, const FixtureTensor *tensor)
{
  g_autofree gchar *name = short_name (tensor->name);
  const VlmTensorInfo *info = vlm_tensor_source_lookup (source, name);
  g_autoptr (GByteArray) expected = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  g_autofree guint8 *found = NULL;
  gsize at, n;
  guint i;

  if (!info)
    g_error ("there is no tensor %s", name);
  g_assert_cmpuint (info->dtype, ==, tensor->dtype);
  g_assert_cmpuint (info->rank, ==, tensor->rank);
  for (i = 0; i < info->rank; i++)
    g_assert_cmpuint (info->shape[i], ==, tensor->shape[i]);
  fixture_append_values (expected, tensor);
  g_assert_cmpuint (info->n_bytes, ==, expected->len);
  found = g_malloc (expected->len);
  for (at = 0; at < expected->len; at += n) {
    n = MIN (37, expected->len - at);
    g_assert_true (vlm_tensor_source_read (source, info, at, found + at, n, NULL, &error));
    g_assert_no_error (error);
  }
  g_assert_cmpmem (found, expected->len, expected->data, expected->len);
}

static void
check_model (FixtureModel *model, gboolean has_vision)
{
  g_autoptr (GgufWriter) text = gguf_model_text (model);
  g_autoptr (GgufWriter) vision = gguf_model_vision (model);
  g_autoptr (VlmGguf) text_file = open_writer (text, model->directory, GGUF_MODEL_TEXT);
  g_autoptr (VlmGguf) vision_file = open_writer (vision, model->directory, GGUF_MODEL_VISION);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmTensorSource) source =
      vlm_gguf_tensors_new (text_file, has_vision ? vision_file : NULL, &error);
  guint i;

  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, model->tensors->len);
  for (i = 0; i < model->tensors->len; i++)
    check_tensor (source, g_ptr_array_index (model->tensors, i));
  g_assert_true (vlm_tensor_source_verify_rest (source, NULL, &error));
}

static void
test_text (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);

  check_model (model, FALSE);
}

static void
test_vision (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);

  check_model (model, TRUE);
}

/* What not every model has, and the patches in other types. */
static void
test_options (void)
{
  static const VlmDType types[] = { VLM_DTYPE_F32, VLM_DTYPE_F16 };
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (FixtureModel) model = fixture_model_new (TRUE);

    fixture_find (model, "model.vision_tower.vision_model.embeddings.patch_embedding.weight")
        ->dtype = types[i];
    fixture_add (model, "lm_head.weight", VLM_DTYPE_F16, 2, 272, 16, 0);
    fixture_add (
        model, "model.multi_modal_projector.layer_norm.weight", VLM_DTYPE_F32, 1, 64, 0, 0);
    fixture_add (model, "model.multi_modal_projector.layer_norm.bias", VLM_DTYPE_F32, 1, 64, 0, 0);
    check_model (model, TRUE);
  }
}

/* A file of its own for the second half of the text: tensors keep their files. */
static void
test_split (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  GPtrArray *all = model->tensors;
  g_autofree gchar *path = g_build_filename (model->directory, "m-00001-of-00002.gguf", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  guint part, i;

  for (part = 0; part < 2; part++) {
    g_autofree gchar *name = g_strdup_printf ("m-%05u-of-00002.gguf", part + 1);
    g_autoptr (GgufWriter) writer = gguf_writer_new ();

    model->tensors = g_ptr_array_new ();
    for (i = part ? 5 : 0; i < (part ? all->len : 5); i++)
      g_ptr_array_add (model->tensors, g_ptr_array_index (all, i));
    gguf_model_put_tensors (writer, model, FALSE);
    gguf_put_u16 (writer, "split.no", part);
    gguf_put_u16 (writer, "split.count", 2);
    gguf_writer_save (writer, model->directory, name);
    g_ptr_array_unref (model->tensors);
  }
  model->tensors = all;
  gguf = vlm_gguf_open (path, &error);
  g_assert_no_error (error);
  source = vlm_gguf_tensors_new (gguf, NULL, &error);
  g_assert_no_error (error);
  for (i = 0; i < all->len; i++)
    check_tensor (source, g_ptr_array_index (all, i));
  g_assert_true (g_str_has_suffix (
      vlm_tensor_source_get_path (source, vlm_tensor_source_get_nth (source, all->len - 1)),
      "m-00002-of-00002.gguf"));
}

static void
test_norm_alias (void)
{
  static const guint64 dims[] = { 16 };
  const gfloat values[16] = { 1, 2, 3 };
  gfloat found[16];
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) one = NULL, both = NULL;
  g_autoptr (VlmTensorSource) source = NULL;

  gguf_add_tensor (writer, "output_norm.weight", 0, 1, dims, values, sizeof (values));
  one = open_writer (writer, directory, "one.gguf");
  source = vlm_gguf_tensors_new (one, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (vlm_tensor_source_read (source,
      vlm_tensor_source_lookup (source, "model.embedding_norm.weight"), 0, found, sizeof (found),
      NULL, &error));
  g_assert_cmpmem (found, sizeof (found), values, sizeof (values));

  gguf_add_tensor (writer, "token_embd_norm.weight", 0, 1, dims, values, sizeof (values));
  both = open_writer (writer, directory, "both.gguf");
  g_assert_null (vlm_gguf_tensors_new (both, NULL, &error));
  fixture_assert_message (
      error, VLM_ERROR_FORMAT, "has both tensor token_embd_norm.weight and output_norm.weight");
  fixture_directory_remove (directory);
}

/* ---- Blocks ------------------------------------------------------------------------------- */

#define COLS 96u
#define ROW_BYTES (COLS / 32 * 34)

/* Rows of Q8_0: byte i of row r is r + i, and the scale of block b is the half 1 + 2^-10 * b. */
static GByteArray *
make_rows (guint n_rows)
{
  GByteArray *bytes = g_byte_array_new ();
  guint row, block, i;

  for (row = 0; row < n_rows; row++) {
    for (block = 0; block < COLS / 32; block++) {
      guint8 data[34] = { block, 0x3c };

      for (i = 0; i < 32; i++)
        data[2 + i] = row + 32 * block + i;
      g_byte_array_append (bytes, data, sizeof (data));
    }
  }
  return bytes;
}

static void
add_blocks (GgufWriter *writer, const gchar *name, guint n_rows, const GByteArray *bytes)
{
  const guint64 dims[] = { COLS, n_rows };

  gguf_add_tensor (writer, name, 8, 2, dims, bytes->data, bytes->len);
}

/* Row i of the tensor is row first + i of make_rows (). */
static void
check_rows (VlmTensorSource *source, const gchar *name, guint n_rows, guint first)
{
  const VlmTensorInfo *info = vlm_tensor_source_lookup (source, name);
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;
  guint row, i;

  g_assert_nonnull (info);
  g_assert_cmpuint (info->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpuint (info->shape[0], ==, n_rows);
  g_assert_cmpuint (info->shape[1], ==, COLS);
  g_assert_cmpuint (info->n_bytes, ==, n_rows * ROW_BYTES);
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, n_rows, COLS, &error));
  for (row = 0; row < n_rows; row += 2) {
    VlmQuantRows rest = vlm_quant_rows_skip (&rows, row);

    g_assert_true (vlm_tensor_source_read_rows (
        source, info, row, MIN (2, n_rows - row), &rest, NULL, &error));
  }
  for (i = 0; i < n_rows * COLS; i++)
    g_assert_cmpint (rows.q[i], ==, (gint8) (first + i / COLS + i % COLS));
  for (i = 0; i < n_rows * COLS / 32; i++)
    g_assert_cmphex (((guint16 *) rows.scale)[i], ==, 0x3c00 + i % (COLS / 32));
  vlm_quant_rows_clear (&rows);
}

/* A tensor of blocks, and one that holds queries, keys and values. */
static void
test_blocks (void)
{
  static const guint64 out[] = { 5, COLS };
  static const gfloat zeros[5 * COLS];
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GByteArray) bytes = make_rows (9);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;
  g_autoptr (VlmTensorSource) source = NULL;

  add_blocks (writer, "blk.11.ffn_up.weight", 9, bytes);
  add_blocks (writer, "blk.3.attn_qkv.weight", 9, bytes);
  gguf_add_tensor (writer, "blk.3.attn_output.weight", 0, 2, out, zeros, sizeof (zeros));
  gguf = open_writer (writer, directory, "blocks.gguf");
  source = vlm_gguf_tensors_new (gguf, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 5);
  check_rows (source, "model.layers.11.feed_forward.w3.weight", 9, 0);
  check_rows (source, "model.layers.3.self_attn.q_proj.weight", 5, 0);
  check_rows (source, "model.layers.3.self_attn.k_proj.weight", 2, 5);
  check_rows (source, "model.layers.3.self_attn.v_proj.weight", 2, 7);
  fixture_directory_remove (directory);
}

/* Fused floats are three tensors too. */
static void
test_fused_floats (void)
{
  static const guint64 fused[] = { 2, 8 }, out[] = { 4, 2 };
  const gfloat values[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  gfloat found[4];

  gguf_add_tensor (writer, "blk.0.attn_output.weight", 0, 2, out, values, 32);
  gguf_add_tensor (writer, "blk.0.attn_qkv.weight", 0, 2, fused, values, 64);
  gguf = open_writer (writer, directory, "fused.gguf");
  source = vlm_gguf_tensors_new (gguf, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (vlm_tensor_source_read (source,
      vlm_tensor_source_lookup (source, "model.layers.0.self_attn.v_proj.weight"), 0, found, 16,
      NULL, &error));
  g_assert_cmpmem (found, 16, values + 12, 16);
  fixture_directory_remove (directory);
}

/* A scale that is no number, in one row of the values of a fused tensor. */
static void
test_special_scale (void)
{
  static const guint64 out[] = { 5, COLS };
  static const gfloat zeros[5 * COLS];
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GByteArray) bytes = make_rows (9);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  const VlmTensorInfo *info;
  VlmQuantRows rows;

  bytes->data[8 * ROW_BYTES + 2 * 34 + 1] = 0x7c;
  add_blocks (writer, "blk.3.attn_qkv.weight", 9, bytes);
  gguf_add_tensor (writer, "blk.3.attn_output.weight", 0, 2, out, zeros, sizeof (zeros));
  gguf = open_writer (writer, directory, "special.gguf");
  source = vlm_gguf_tensors_new (gguf, NULL, &error);
  g_assert_no_error (error);
  info = vlm_tensor_source_lookup (source, "model.layers.3.self_attn.v_proj.weight");
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, 2, COLS, &error));
  g_assert_true (vlm_tensor_source_read_rows (source, info, 0, 1, &rows, NULL, &error));
  g_assert_false (vlm_tensor_source_read_rows (source, info, 1, 1, &rows, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT,
      "special.gguf: block 2 of row 8 of tensor blk.3.attn_qkv.weight has a scale that is NaN or "
      "infinite");
  vlm_quant_rows_clear (&rows);
  fixture_directory_remove (directory);
}

/* ---- Refusals ----------------------------------------------------------------------------- */

typedef struct
{
  const gchar *name; /* of the tensor */
  gboolean vision;
  guint type, rank;
  guint64 dims[4];
  gint code;
  const gchar *part;
} Refusal;

static const Refusal refusals[] = {
  { "rope_freqs.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT,
      "x.gguf: tensor rope_freqs.weight is F32 [4], expected no tensor of this name in the text" },
  { "v.post_ln.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT,
      "no tensor of this name in the text" },
  { "token_embd.weight", TRUE, 0, 1, { 4 }, VLM_ERROR_FORMAT,
      "no tensor of this name in the vision" },
  { "token_embd.bias", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk.00.ffn_norm.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk.12345.ffn_norm.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk.-1.ffn_norm.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk..ffn_norm.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk.0.", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "blk.0.ffn_gate_exps.weight", FALSE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name" },
  { "mm.3.weight", TRUE, 0, 1, { 4 }, VLM_ERROR_FORMAT, "no tensor of this name in the vision" },
  { "token_embd.weight", FALSE, 10, 2, { 256, 2 }, VLM_ERROR_UNSUPPORTED,
      "tensor token_embd.weight is Q2_K [256, 2], expected one of F32, F16, BF16, Q8_0" },
  { "token_embd.weight", FALSE, 26, 2, { 16, 2 }, VLM_ERROR_UNSUPPORTED, "is I32 [16, 2]" },
  { "blk.0.ffn_norm.weight", FALSE, 8, 1, { 32 }, VLM_ERROR_FORMAT,
      "is Q8_0 [32], expected two dimensions" },
  { "token_embd.weight", FALSE, 8, 3, { 32, 1, 2 }, VLM_ERROR_FORMAT,
      "is Q8_0 [32, 1, 2], expected two dimensions" },
  { "blk.0.attn_qkv.weight", FALSE, 0, 2, { 4, 8 }, VLM_ERROR_FORMAT,
      "is F32 [4, 8], but there is no blk.0.attn_output.weight" },
  { "v.patch_embd.weight", TRUE, 0, 2, { 12, 4 }, VLM_ERROR_FORMAT,
      "is F32 [12, 4], expected dimensions [P, P, 3, N]" },
  { "v.patch_embd.weight", TRUE, 0, 4, { 2, 3, 3, 4 }, VLM_ERROR_FORMAT, "[P, P, 3, N]" },
  { "v.patch_embd.weight", TRUE, 0, 4, { 2, 2, 4, 4 }, VLM_ERROR_FORMAT, "[P, P, 3, N]" },
};

static void
test_refusal (gconstpointer data)
{
  static const guint8 zeros[2048];
  const Refusal *it = data;
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) empty = gguf_writer_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) none = NULL, gguf = NULL;

  gguf_add_tensor (writer, it->name, it->type, it->rank, it->dims, zeros, sizeof (zeros));
  none = open_writer (empty, directory, "empty.gguf");
  gguf = open_writer (writer, directory, "x.gguf");
  g_assert_null (vlm_gguf_tensors_new (it->vision ? none : gguf, it->vision ? gguf : NULL, &error));
  fixture_assert_message (error, it->code, it->part);
  fixture_directory_remove (directory);
}

/* Rows that cannot be queries, keys and values. */
static void
test_fused_refused (void)
{
  static const guint64 fused[] = { 4, 9 }, out[] = { 4, 4 };
  static const gfloat zeros[36];
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;

  gguf_add_tensor (writer, "blk.0.attn_output.weight", 0, 2, out, zeros, 64);
  gguf_add_tensor (writer, "blk.0.attn_qkv.weight", 0, 2, fused, zeros, 144);
  gguf = open_writer (writer, directory, "fused.gguf");
  g_assert_null (vlm_gguf_tensors_new (gguf, NULL, &error));
  fixture_assert_message (
      error, VLM_ERROR_FORMAT, "is F32 [4, 9], expected two dimensions, and rows for 4 queries");
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  gsize i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (refusals); i++) {
    g_autofree gchar *path =
        g_strdup_printf ("/gguf-tensors/refused/%" G_GSIZE_FORMAT "-%s", i, refusals[i].name);

    g_test_add_data_func (path, &refusals[i], test_refusal);
  }
  g_test_add_func ("/gguf-tensors/text", test_text);
  g_test_add_func ("/gguf-tensors/vision", test_vision);
  g_test_add_func ("/gguf-tensors/options", test_options);
  g_test_add_func ("/gguf-tensors/split", test_split);
  g_test_add_func ("/gguf-tensors/norm-alias", test_norm_alias);
  g_test_add_func ("/gguf-tensors/blocks", test_blocks);
  g_test_add_func ("/gguf-tensors/fused-floats", test_fused_floats);
  g_test_add_func ("/gguf-tensors/special-scale", test_special_scale);
  g_test_add_func ("/gguf-tensors/fused-refused", test_fused_refused);
  return g_test_run ();
}
