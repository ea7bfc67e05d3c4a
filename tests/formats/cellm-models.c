/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cellm-models.h"

#include <math.h>
#include <string.h>

#include "engine/formats/checkpoint.h"
#include "engine/formats/floats.h"
#include "fixture.h"

#define TEXT "model.language_model."
#define VISION "model.vision_tower.vision_model."
#define PROJECTOR "model.multi_modal_projector."

/* ---- Names -------------------------------------------------------------------------------- */

static const struct
{
  const gchar *text, *vision, *projector; /* NULL: as they are */
} spellings[] = {
  [CELLM_PUBLISHED] = { "model.", NULL, NULL },
  [CELLM_KEPT] = { NULL, NULL, NULL },
  [CELLM_NULL] = { "model.", NULL, NULL },
  [CELLM_NO_LEVEL] = { "model.", "model.vision_tower.", "multi_modal_projector." },
  [CELLM_BARE] = { "", "vision_tower.vision_model.", "projector." },
  [CELLM_LEVEL] = { "model.text_model.", NULL, NULL },
};

static gchar *
spell (const gchar *name, CellmSpelling spelling)
{
  static const gchar *const prefixes[] = { TEXT, VISION, PROJECTOR };
  const gchar *const others[] = { spellings[spelling].text, spellings[spelling].vision,
    spellings[spelling].projector };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (prefixes); i++) {
    if (others[i] != NULL && g_str_has_prefix (name, prefixes[i]))
      return g_strconcat (others[i], name + strlen (prefixes[i]), NULL);
  }
  return g_strdup (name);
}

static void
set_prefixes (json_t *header, CellmSpelling spelling)
{
  static const gchar *const keys[] = { "text_tensor_prefix", "vision_tensor_prefix",
    "projector_tensor_prefix" };
  const gchar *const published[] = { "model", VISION, PROJECTOR };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys); i++)
    json_object_set_new (
        header, keys[i], spelling == CELLM_PUBLISHED ? json_string (published[i]) : json_null ());
}

/* ---- Values ------------------------------------------------------------------------------- */

gfloat *
cellm_models_read (VlmTensorSource *source, const VlmTensorInfo *info)
{
  gsize n = vlm_tensor_count_values (info), i;
  gfloat *values = g_new (gfloat, n);
  g_autofree guint8 *raw = g_malloc (n * 4);
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;
  VlmIntRows view;
  VlmKernels kernels;

  if (info->dtype != VLM_DTYPE_QUANTISED) {
    g_assert_cmpint (vlm_kernels_init (&kernels, VLM_CPU_SCALAR), ==, 0);
    g_assert_true (vlm_tensor_source_read (source, info, 0, raw, info->n_bytes, NULL, &error));
    vlm_floats_widen (&kernels, info->dtype, raw, values, n);
    return values;
  }
  g_assert_true (
      vlm_quant_rows_init (&rows, &info->format, info->shape[0], info->shape[1], &error));
  g_assert_true (
      vlm_tensor_source_read_rows (source, info, 0, info->shape[0], &rows, NULL, &error));
  view = vlm_quant_rows_view (&rows, 0);
  for (i = 0; i < info->shape[0]; i++)
    vlm_int_dequantise_row (&info->format, values + i * info->shape[1], &view, i, info->shape[1]);
  vlm_quant_rows_clear (&rows);
  return values;
}

VlmTensorSource *
cellm_models_open (const gchar *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmModelFiles) files = vlm_model_files_open (path, NULL, &error);
  VlmTensorSource *source;

  g_assert_no_error (error);
  source = vlm_model_files_open_tensors (files, &error);
  g_assert_no_error (error);
  return source;
}

/* What writers make integers of: products, and the embedding. */
static gboolean
is_matrix (const VlmTensorInfo *info)
{
  return info->rank == 2 && !strstr (info->name, "vision_tower")
      && !strstr (info->name, "multi_modal_projector");
}

CellmFixture *
cellm_models_convert (const gchar *directory, VlmTensorSource *source, CellmSpelling spelling,
    CellmKind kind, GHashTable *values)
{
  g_autofree gchar *path = g_build_filename (directory, "config.json", NULL);
  json_t *config = json_load_file (path, 0, NULL);
  CellmFixture *fixture = cellm_fixture_new ();
  guint i;

  g_assert_nonnull (config);
  cellm_fixture_set_config (fixture, config);
  json_decref (config);
  set_prefixes (fixture->header, spelling);
  for (i = 0; i < vlm_tensor_source_get_count (source); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);
    g_autofree gchar *name = spell (info->name, spelling);
    g_autofree gfloat *given = NULL;
    gfloat *stored;

    if (kind == CELLM_N_KINDS || !is_matrix (info)) {
      cellm_fixture_add_copy (fixture, source, info, name);
      continue;
    }
    given = cellm_models_read (source, info);
    stored = g_memdup2 (given, vlm_tensor_count_values (info) * sizeof (*given));
    cellm_fixture_add_values (fixture, name, kind, info->rank, info->shape, given, stored);
    if (values != NULL)
      g_hash_table_insert (values, g_strdup (info->name), stored);
    else
      g_free (stored);
  }
  return fixture;
}

/* ---- Directories -------------------------------------------------------------------------- */

gchar *
cellm_models_copy_settings (const gchar *directory)
{
  static const gchar *const names[] = { "config.json", "tokenizer.json", "tokenizer_config.json",
    "processor_config.json", "preprocessor_config.json", "generation_config.json" };
  gchar *copy = fixture_directory_new ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree gchar *path = g_build_filename (directory, names[i], NULL);
    g_autofree gchar *text = NULL;
    gsize size;

    if (g_file_get_contents (path, &text, &size, NULL))
      fixture_write (copy, names[i], text, size);
  }
  return copy;
}

void
cellm_models_write_floats (const gchar *directory, VlmTensorSource *source, GHashTable *values)
{
  json_t *header = json_object ();
  g_autoptr (GByteArray) data = g_byte_array_new ();
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint64 length;
  char *text;
  guint i, d;

  for (i = 0; i < vlm_tensor_source_get_count (source); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);
    const gfloat *other = values ? g_hash_table_lookup (values, info->name) : NULL;
    g_autofree gfloat *own = other ? NULL : cellm_models_read (source, info);
    json_int_t begin = data->len;
    json_t *shape = json_array ();

    for (d = 0; d < info->rank; d++)
      json_array_append_new (shape, json_integer (info->shape[d]));
    g_byte_array_append (
        data, (const guint8 *) (other ? other : own), 4 * vlm_tensor_count_values (info));
    json_object_set_new (header, info->name,
        json_pack ("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets", begin,
            (json_int_t) data->len));
  }
  text = json_dumps (header, JSON_COMPACT);
  length = GUINT64_TO_LE (strlen (text));
  g_byte_array_append (bytes, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (bytes, (const guint8 *) text, strlen (text));
  g_byte_array_append (bytes, data->data, data->len);
  fixture_write (directory, "model.safetensors", bytes->data, bytes->len);
  free (text);
  json_decref (header);
}

/* ---- Answers ------------------------------------------------------------------------------ */

#define WIDTH 40
#define HEIGHT 28

static void
keep_logits (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  CellmAnswer *answer = user_data;

  if (strcmp (name, "logits") == 0)
    g_array_append_vals (answer->logits, data, shape[0]);
}

CellmAnswer *
cellm_models_ask (const gchar *path, VlmPrecision precision)
{
  CellmAnswer *answer = g_new0 (CellmAnswer, 1);
  const VlmLoadOptions options = { .precision = precision };
  const VlmWatch watch = { NULL, keep_logits, answer, NULL };
  guint8 pixels[HEIGHT * WIDTH * 3];
  const VlmImage image = { pixels, WIDTH * 3, WIDTH, HEIGHT };
  g_autoptr (GError) error = NULL;
  VlmModel *model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  VlmSession *session;
  VlmModelInfo info;
  guint i;

  g_assert_no_error (error);
  for (i = 0; i < sizeof (pixels); i++)
    pixels[i] = i * 7 + i / WIDTH * 3;
  vlm_model_get_info (model, &info);
  request.prompt = "What is this?";
  request.images = &image;
  request.n_images = info.has_vision;
  request.tiling = VLM_TILING_OFF;
  request.max_tokens = 16;
  request.temperature = 0;
  answer->logits = g_array_new (FALSE, FALSE, sizeof (gfloat));
  session = vlm_session_new (model);
  vlm_session_generate (session, &request, &watch, &result, &error);
  g_assert_no_error (error);
  answer->ids = g_memdup2 (result.ids, result.n_ids * sizeof (*result.ids));
  answer->n_ids = result.n_ids;
  vlm_result_clear (&result);
  vlm_session_free (session);
  vlm_model_unref (model);
  return answer;
}

void
cellm_answer_free (CellmAnswer *answer)
{
  g_array_unref (answer->logits);
  g_free (answer->ids);
  g_free (answer);
}

void
cellm_answer_compare (const CellmAnswer *a, const CellmAnswer *b, gfloat tolerance)
{
  gfloat largest = 0, difference = 0;
  guint i;

  g_assert_cmpuint (a->n_ids, >, 0);
  g_assert_cmpmem (a->ids, a->n_ids * sizeof (*a->ids), b->ids, b->n_ids * sizeof (*b->ids));
  g_assert_cmpuint (a->logits->len, ==, b->logits->len);
  g_assert_cmpuint (a->logits->len, >, 0);
  for (i = 0; i < a->logits->len; i++) {
    gfloat x = g_array_index (a->logits, gfloat, i), y = g_array_index (b->logits, gfloat, i);

    largest = fmaxf (largest, fabsf (x));
    difference = fmaxf (difference, fabsf (x - y));
  }
  g_assert_cmpfloat (largest, >, 0);
  g_assert_cmpfloat (difference, <=, tolerance * largest);
}
