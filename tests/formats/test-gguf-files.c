/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GGUF models as a whole: which file is which, what lies beside them, and the same answers as from
 * the checkpoint that they were made of. */

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/formats/hf.h"
#include "engine/formats/inventory.h"
#include "engine/vlm.h"
#include "gguf-model.h"

/* A directory with GGUF files of the small model. */
typedef struct
{
  FixtureModel *model;
  GgufWriter *text, *vision;
  gchar *directory, *text_path, *vision_path;
} Pair;

/* Nothing is written yet. */
static void
pair_init (Pair *pair)
{
  pair->model = gguf_model_new (TRUE);
  pair->text = gguf_model_text (pair->model);
  pair->vision = gguf_model_vision (pair->model);
  pair->directory = fixture_directory_new ();
  pair->text_path = g_build_filename (pair->directory, GGUF_MODEL_TEXT, NULL);
  pair->vision_path = g_build_filename (pair->directory, GGUF_MODEL_VISION, NULL);
}

static void
pair_save (Pair *pair)
{
  gguf_writer_save (pair->text, pair->directory, GGUF_MODEL_TEXT);
  gguf_writer_save (pair->vision, pair->directory, GGUF_MODEL_VISION);
}

static void
pair_clear (Pair *pair)
{
  gguf_writer_free (pair->text);
  gguf_writer_free (pair->vision);
  g_free (pair->text_path);
  g_free (pair->vision_path);
  fixture_directory_remove (pair->directory);
  fixture_model_free (pair->model);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pair, pair_clear)

/* Opens and finds a place for every tensor; any error is a failure of the test. */
static VlmInventory *
take (const gchar *path, const gchar *mmproj)
{
  g_autoptr (GError) error = NULL;
  VlmInventory *inventory = vlm_inventory_new (path, mmproj, NULL, &error);

  g_assert_no_error (error);
  return inventory;
}

static void
refuse (const gchar *path, const gchar *mmproj, gint code, const gchar *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (vlm_inventory_new (path, mmproj, NULL, &error));
  fixture_assert_message (error, code, part);
}

/* ---- The whole ---------------------------------------------------------------------------- */

static void
compare_settings (const VlmCheckpoint *a, const VlmCheckpoint *b)
{
  VlmTextConfig text = a->config.text;

  /* What has no meaning where the sizes are known. */
  text.ff_size_other = b->config.text.ff_size_other;
  g_assert_cmpmem (&text, sizeof (text), &b->config.text, sizeof (text));
  g_assert_cmpmem (
      &a->config.vision, sizeof (VlmVisionConfig), &b->config.vision, sizeof (VlmVisionConfig));
  g_assert_cmpmem (&a->config.projector, sizeof (VlmProjectorConfig), &b->config.projector,
      sizeof (VlmProjectorConfig));
  g_assert_cmpint (a->config.image_token_id, ==, b->config.image_token_id);
  g_assert_cmpuint (
      vlm_tokenizer_get_size (a->tokenizer), ==, vlm_tokenizer_get_size (b->tokenizer));
}

/* As text file, as directory, and with the vision part named: one and the same model. */
static void
test_same_model (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) published = NULL;
  guint i;

  pair_init (&pair);
  pair_save (&pair);
  fixture_save (pair.model);
  published = take (pair.model->directory, NULL);
  for (i = 0; i < 3; i++) {
    g_autoptr (VlmInventory) found =
        take (i == 0 ? pair.directory : pair.text_path, i == 2 ? pair.vision_path : NULL);
    const VlmModelFiles *files = found->checkpoint->files;

    g_assert_cmpstr (vlm_model_files_get_format (files), ==, "gguf");
    g_assert_cmpuint (vlm_model_files_get_version (files), ==, 3);
    g_assert_cmpstr (
        vlm_model_files_get_path (files), ==, i == 0 ? pair.directory : pair.text_path);
    g_assert_cmpuint (found->n_items, ==, published->n_items);
    g_assert_cmpuint (found->n_parameters, ==, published->n_parameters);
    compare_settings (published->checkpoint, found->checkpoint);
  }
}

/* What the model makes of a picture and a question, as ids. */
static GArray *
answer (const gchar *path, gboolean with_picture)
{
  static const guint8 pixels[3 * 8 * 8] = { 200, 10, 30, 90, 255, 0, 7 };
  const VlmLoadOptions options = { .precision = VLM_PRECISION_EXACT };
  const VlmImage image = { pixels, 3 * 8, 8, 8 };
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  g_autoptr (GError) error = NULL;
  VlmModel *model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);
  VlmSession *session;

  g_assert_no_error (error);
  session = vlm_session_new (model);
  request.prompt = "What is this? 12";
  request.images = &image;
  request.n_images = with_picture ? 1 : 0;
  request.max_tokens = 24;
  request.temperature = 0;
  g_assert_true (vlm_session_generate (session, &request, NULL, &result, &error));
  g_assert_no_error (error);
  g_array_append_vals (ids, result.ids, result.n_ids);
  vlm_result_clear (&result);
  vlm_session_free (session);
  vlm_model_unref (model);
  return ids;
}

static void
compare_answers (const gchar *a, const gchar *b, gboolean with_picture)
{
  g_autoptr (GArray) one = answer (a, with_picture);
  g_autoptr (GArray) other = answer (b, with_picture);

  g_assert_cmpuint (one->len, >, 0);
  g_assert_cmpmem (
      one->data, one->len * sizeof (gint32), other->data, other->len * sizeof (gint32));
}

static void
test_same_answers (void)
{
  g_auto (Pair) pair;

  pair_init (&pair);
  pair_save (&pair);
  fixture_save (pair.model);
  fixture_write_json (pair.directory, "preprocessor_config.json", pair.model->image);
  compare_answers (pair.model->directory, pair.text_path, FALSE);
  compare_answers (pair.model->directory, pair.text_path, TRUE);
}

static void
test_version_2 (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) found = NULL;

  pair_init (&pair);
  pair.text->version = pair.vision->version = 2;
  pair_save (&pair);
  found = take (pair.text_path, NULL);
  g_assert_cmpuint (vlm_model_files_get_version (found->checkpoint->files), ==, 2);
}

/* ---- Which file is which ------------------------------------------------------------------ */

/* Without a vision part it is a model for text, which says how to give one. */
static void
test_text_alone (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) found = NULL;
  g_autoptr (GError) error = NULL;
  VlmRequest request = VLM_REQUEST_INIT;
  VlmImage image = { (const guint8 *) "abc", 3, 1, 1 };
  VlmResult result = { 0 };
  VlmSession *session;
  VlmModel *model;

  pair_init (&pair);
  gguf_writer_save (pair.text, pair.directory, GGUF_MODEL_TEXT);
  found = take (pair.text_path, NULL);
  g_assert_false (found->checkpoint->config.has_vision);
  g_assert_false (vlm_model_files_has (found->checkpoint->files, VLM_HF_PROCESSOR));

  model = vlm_model_load (pair.directory, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  session = vlm_session_new (model);
  request.prompt = "What?";
  request.images = &image;
  request.n_images = 1;
  g_assert_false (vlm_session_generate (session, &request, NULL, &result, &error));
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "is what mmproj names");
  vlm_session_free (session);
  vlm_model_unref (model);
}

static void
test_wrong_parts (void)
{
  g_auto (Pair) pair;
  g_autofree gchar *missing = NULL;

  pair_init (&pair);
  pair_save (&pair);
  missing = g_build_filename (pair.directory, "none.gguf", NULL);
  refuse (pair.vision_path, NULL, VLM_ERROR_FORMAT,
      GGUF_MODEL_VISION ": is the vision part of a model, expected the text part");
  refuse (pair.text_path, pair.text_path, VLM_ERROR_FORMAT,
      GGUF_MODEL_TEXT ": key general.architecture is \"lfm2\", expected \"clip\"");
  refuse (pair.text_path, missing, VLM_ERROR_NOT_FOUND, "none.gguf");
  refuse (missing, NULL, VLM_ERROR_NOT_FOUND, "none.gguf");
  fixture_write (pair.directory, "notes.txt", "hello", 5);
  g_free (missing);
  missing = g_build_filename (pair.directory, "notes.txt", NULL);
  refuse (
      pair.text_path, missing, VLM_ERROR_FORMAT, "notes.txt: header byte 0, start: no \"GGUF\"");
}

/* A vision part for other texts. */
static void
test_wrong_projection (void)
{
  g_auto (Pair) pair;

  pair_init (&pair);
  gguf_writer_free (pair.vision);
  fixture_find (pair.model, "model.multi_modal_projector.linear_2.weight")->shape[0] = 24;
  pair.vision = gguf_model_vision (pair.model);
  pair_save (&pair);
  refuse (pair.text_path, NULL, VLM_ERROR_FORMAT,
      "tensor model.multi_modal_projector.linear_2.weight has shape [24, 12], expected [16, 12]");
}

static void
test_several (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) found = NULL;

  pair_init (&pair);
  pair_save (&pair);
  gguf_writer_save (pair.vision, pair.directory, "a-second.gguf");
  refuse (pair.text_path, NULL, VLM_ERROR_SETTINGS,
      "there are 2 vision parts beside it, expected one, or mmproj to name one of them: "
      "a-second.gguf, " GGUF_MODEL_VISION);
  refuse (pair.directory, NULL, VLM_ERROR_SETTINGS, "there are 2 vision parts");
  found = take (pair.text_path, pair.vision_path);
  gguf_writer_save (pair.text, pair.directory, "b-second.gguf");
  refuse (pair.directory, NULL, VLM_ERROR_SETTINGS,
      "holds 2 GGUF models, expected one, or the path of one of them: "
      "b-second.gguf, " GGUF_MODEL_TEXT);
}

/* What else a directory may hold. */
static void
test_strangers (void)
{
  g_auto (Pair) pair;
  g_autofree gchar *fifo = NULL;
  g_autoptr (GgufWriter) adapter = gguf_writer_new ();
  g_autoptr (GgufWriter) old = gguf_writer_new ();
  g_autoptr (VlmInventory) found = NULL;

  pair_init (&pair);
  pair_save (&pair);
  fifo = g_build_filename (pair.directory, "fifo.gguf", NULL);
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  gguf_put_string (adapter, "general.architecture", "lfm2");
  gguf_put_string (adapter, "general.type", "adapter");
  gguf_writer_save (adapter, pair.directory, "adapter.gguf");
  old->version = 1;
  gguf_writer_save (old, pair.directory, "old.gguf");
  fixture_write (pair.directory, "empty.gguf", "", 0);
  fixture_write (pair.directory, "README.md", "# A model", 9);
  found = take (pair.directory, NULL);
  g_assert_true (found->checkpoint->config.has_vision);
  g_free (fifo);
  fifo = g_build_filename (pair.directory, "adapter.gguf", NULL);
  refuse (fifo, NULL, VLM_ERROR_UNSUPPORTED, "general.type is \"adapter\", expected \"model\"");
}

/* GGUF files of which none is the text part: the error tells what they are. */
static void
test_strangers_alone (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) adapter = gguf_writer_new ();
  g_autoptr (GgufWriter) old = gguf_writer_new ();

  old->version = 1;
  gguf_writer_save (old, directory, "old.gguf");
  refuse (directory, NULL, VLM_ERROR_NOT_FOUND, "holds no text part of a GGUF model");
  refuse (directory, NULL, VLM_ERROR_NOT_FOUND, "old.gguf: is of GGUF version 1, expected 2 or 3");
  gguf_put_string (adapter, "general.architecture", "lfm2");
  gguf_put_string (adapter, "general.type", "adapter");
  gguf_writer_save (adapter, directory, "adapter.gguf");
  refuse (directory, NULL, VLM_ERROR_NOT_FOUND,
      "adapter.gguf: general.architecture \"lfm2\", general.type \"adapter\"; ");
  fixture_directory_remove (directory);
}

/* Keys have no order. */
static void
test_architecture_last (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "model.gguf", NULL);
  g_autofree gchar *architecture = NULL, *type = NULL;
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GError) error = NULL;

  gguf_put_string (writer, "tokenizer.ggml.model", "gpt2");
  gguf_put_string (writer, "tokenizer.ggml.pre", "lfm2");
  gguf_put_string (writer, "general.architecture", "clip");
  gguf_writer_save (writer, directory, "model.gguf");
  g_assert_true (vlm_gguf_peek (path, &architecture, &type, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (architecture, ==, "clip");
  fixture_directory_remove (directory);
}

/* The tokenizer is in the text part; vision parts may be many, or damaged. */
static void
test_tokenizer_alone (void)
{
  g_auto (Pair) pair;
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer;

  pair_init (&pair);
  pair_save (&pair);
  gguf_writer_save (pair.vision, pair.directory, "another.gguf");
  tokenizer = vlm_tokenizer_load (pair.directory, &error);
  g_assert_no_error (error);
  vlm_tokenizer_unref (tokenizer);
  fixture_write (pair.directory, "another.gguf", "GGUF\3\0\0\0", 8);
  tokenizer = vlm_tokenizer_load (pair.text_path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tokenizer_get_size (tokenizer), >, 0);
  vlm_tokenizer_unref (tokenizer);
}

static void
test_directories (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) split = NULL, published = NULL;

  pair_init (&pair);
  refuse (pair.directory, NULL, VLM_ERROR_NOT_FOUND, "config.json");
  gguf_writer_save (pair.vision, pair.directory, GGUF_MODEL_VISION);
  refuse (pair.directory, NULL, VLM_ERROR_NOT_FOUND,
      "holds the vision part of a GGUF model (" GGUF_MODEL_VISION "), but no text part");
  /* A damaged file is no reason to take half a model. */
  fixture_write (pair.directory, "cut.gguf", "GGUF\3\0\0\0", 8);
  refuse (pair.directory, NULL, VLM_ERROR_FORMAT, "cut.gguf: header byte 8");
  fixture_remove (pair.directory, "cut.gguf");

  gguf_put_u16 (pair.text, "split.no", 0);
  gguf_put_u16 (pair.text, "split.count", 2);
  gguf_put_raw (pair.text, "split.tensors.count", "u32:5 u32:21");
  gguf_writer_save (pair.text, pair.directory, "m-00001-of-00002.gguf");
  refuse (pair.directory, NULL, VLM_ERROR_NOT_FOUND, "m-00002-of-00002.gguf");
  gguf_writer_free (pair.text);
  pair.text = gguf_writer_new ();
  gguf_put_u16 (pair.text, "split.no", 1);
  gguf_put_u16 (pair.text, "split.count", 2);
  gguf_writer_save (pair.text, pair.directory, "m-00002-of-00002.gguf");
  split = take (pair.directory, NULL);
  g_assert_cmpstr (vlm_model_files_get_format (split->checkpoint->files), ==, "gguf");

  /* Weights of a checkpoint go before all this. */
  gguf_writer_save (pair.vision, pair.model->directory, GGUF_MODEL_VISION);
  fixture_save (pair.model);
  published = take (pair.model->directory, NULL);
  g_assert_cmpstr (vlm_model_files_get_format (published->checkpoint->files), ==, "safetensors");
  refuse (
      pair.model->directory, pair.vision_path, VLM_ERROR_SETTINGS, "has its vision part in itself");
}

/* ---- What lies beside --------------------------------------------------------------------- */

static void
expect_tile_size (const Pair *pair, guint tile_size, gint filter)
{
  g_autoptr (VlmInventory) found = take (pair->text_path, NULL);

  g_assert_cmpuint (found->checkpoint->processor.tile_size, ==, tile_size);
  g_assert_cmpint (found->checkpoint->processor.filter, ==, filter);
}

static void
test_processor_beside (void)
{
  g_auto (Pair) pair;
  g_autoptr (GPtrArray) paths = NULL;
  g_autoptr (VlmInventory) found = NULL;
  g_autofree gchar *described = NULL;
  const gchar flat[] = "{\"tile_size\": 64, \"encoder_patch_size\": 2, \"resample\": 3}";
  const gchar nested[] =
      "{\"image_processor\": {\"tile_size\": 32, \"encoder_patch_size\": 2, \"resample\": 2}}";

  pair_init (&pair);
  pair_save (&pair);
  expect_tile_size (&pair, 512, VLM_FILTER_BILINEAR);
  fixture_write (pair.directory, "preprocessor_config.json", flat, strlen (flat));
  expect_tile_size (&pair, 64, VLM_FILTER_BICUBIC);
  fixture_write (pair.directory, "processor_config.json", nested, strlen (nested));
  expect_tile_size (&pair, 32, VLM_FILTER_BILINEAR);

  found = take (pair.text_path, NULL);
  paths = vlm_model_files_list_paths (found->checkpoint->files);
  g_assert_cmpuint (paths->len, ==, 4);
  g_assert_cmpstr (paths->pdata[0], ==, pair.text_path);
  g_assert_cmpstr (paths->pdata[1], ==, pair.vision_path);
  g_assert_true (g_str_has_suffix (paths->pdata[2], "/processor_config.json"));
  g_assert_true (g_str_has_suffix (paths->pdata[3], "/preprocessor_config.json"));
  described = vlm_model_files_describe (found->checkpoint->files, "config.json");
  g_assert_true (g_str_has_suffix (described, GGUF_MODEL_TEXT ": config.json"));
  fixture_write (pair.directory, "processor_config.json", "{", 1);
  refuse (pair.text_path, NULL, VLM_ERROR_FORMAT, "/processor_config.json");
}

static void
test_files (void)
{
  g_auto (Pair) pair;
  g_autoptr (VlmInventory) found = NULL;
  const VlmModelFiles *files;
  g_autoptr (GError) error = NULL;

  pair_init (&pair);
  pair_save (&pair);
  found = take (pair.text_path, NULL);
  files = found->checkpoint->files;
  g_assert_false (vlm_model_files_has (files, "chat_template.jinja"));
  g_assert_false (vlm_model_files_has (files, "model.gguf"));
  g_assert_true (vlm_model_files_check (files, "config.json", &error));
  g_assert_false (vlm_model_files_check (files, "model.gguf", &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "makes no model.gguf");
  g_clear_error (&error);
  g_assert_null (vlm_model_files_read (files, "tokenizer.json", 100, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "bytes, expected at most 100");
}

/* ---- Cut files ---------------------------------------------------------------------------- */

/* Prefixes of one file, ever shorter: some that end within the data, every one of the header. */
static void
cut (const Pair *pair, const GgufWriter *writer, const gchar *path)
{
  g_autoptr (GByteArray) bytes = gguf_writer_get_bytes (writer);
  gsize header = bytes->len - writer->data->len, n = bytes->len;

  while (n > 0) {
    g_autoptr (GError) error = NULL;
    gboolean unknown;
    gint64 start;

    n -= n > header ? MIN (97, n - header) : 1;
    g_assert_cmpint (truncate (path, n), ==, 0);
    start = fixture_get_time ();
    g_assert_false (vlm_model_check_path (pair->text_path, pair->vision_path, &error));
    g_assert_cmpint (fixture_get_time () - start, <, 10000);
    /* Without its first bytes it is no such file. */
    unknown = n < 4 && writer == pair->text;
    g_assert_error (error, VLM_ERROR, (unknown ? VLM_ERROR_UNSUPPORTED : VLM_ERROR_FORMAT));
    g_assert_nonnull (strstr (error->message, path));
  }
}

static void
cut_both (void)
{
  g_auto (Pair) pair;

  pair_init (&pair);
  pair_save (&pair);
  g_assert_true (vlm_model_check_path (pair.text_path, pair.vision_path, NULL));
  fixture_limit_memory (1 << 20);
  cut (&pair, pair.vision, pair.vision_path);
  pair_save (&pair);
  cut (&pair, pair.text, pair.text_path);
}

/* In a process that may have little more memory than it has at the start. */
static void
test_cut (void)
{
  if (g_test_subprocess ()) {
    cut_both ();
    return;
  }
  g_test_trap_subprocess (NULL, 100 * G_USEC_PER_SEC, 0);
  g_test_trap_assert_passed ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf-files/same-model", test_same_model);
  g_test_add_func ("/gguf-files/same-answers", test_same_answers);
  g_test_add_func ("/gguf-files/version-2", test_version_2);
  g_test_add_func ("/gguf-files/text-alone", test_text_alone);
  g_test_add_func ("/gguf-files/wrong-parts", test_wrong_parts);
  g_test_add_func ("/gguf-files/wrong-projection", test_wrong_projection);
  g_test_add_func ("/gguf-files/several", test_several);
  g_test_add_func ("/gguf-files/strangers", test_strangers);
  g_test_add_func ("/gguf-files/strangers-alone", test_strangers_alone);
  g_test_add_func ("/gguf-files/architecture-last", test_architecture_last);
  g_test_add_func ("/gguf-files/tokenizer-alone", test_tokenizer_alone);
  g_test_add_func ("/gguf-files/directories", test_directories);
  g_test_add_func ("/gguf-files/processor-beside", test_processor_beside);
  g_test_add_func ("/gguf-files/files", test_files);
  g_test_add_func ("/gguf-files/cut", test_cut);
  return g_test_run ();
}
