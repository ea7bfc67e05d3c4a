/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One model in every format: a Hugging Face directory, a GGUF pair, a .slm and a .cellm file. In
 * exact precision they say the same, bit by bit. All values of the model are exact in a half.
 */

#include <glib/gstdio.h>
#include <string.h>

#include "cellm-models.h"
#include "engine/formats/model-files.h"
#include "gguf-model.h"

typedef struct
{
  FixtureModel *model;
  gchar *directory; /* of the GGUF pair */
  gchar *gguf, *slm, *cellm;
} Forms;

static void
forms_clear (Forms *forms)
{
  fixture_directory_remove (forms->directory);
  g_free (forms->gguf);
  g_free (forms->slm);
  g_free (forms->cellm);
  fixture_model_free (forms->model);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Forms, forms_clear)

/* Neither format says how pictures are cut; without this file they would have other settings. */
static void
save_gguf (Forms *forms, gboolean has_vision)
{
  g_autoptr (GgufWriter) text = gguf_model_text (forms->model);

  gguf_writer_save (text, forms->directory, GGUF_MODEL_TEXT);
  forms->gguf = g_build_filename (forms->directory, GGUF_MODEL_TEXT, NULL);
  if (has_vision) {
    g_autoptr (GgufWriter) vision = gguf_model_vision (forms->model);

    gguf_writer_save (vision, forms->directory, GGUF_MODEL_VISION);
    fixture_write_json (forms->directory, "preprocessor_config.json", forms->model->image);
  }
}

static void
save_slm (Forms *forms)
{
  const VlmConvertOptions options = { VLM_WEIGHT_F16, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  g_autoptr (GError) error = NULL;

  forms->slm = g_build_filename (forms->directory, "model.slm", NULL);
  vlm_model_convert (forms->model->directory, forms->slm, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
save_cellm (Forms *forms)
{
  g_autoptr (VlmTensorSource) source = cellm_models_open (forms->model->directory);
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (forms->model->directory, source, CELLM_KEPT, CELLM_N_KINDS, NULL);

  forms->cellm = g_build_filename (forms->model->directory, "model.cellm", NULL);
  if (forms->model->image != NULL)
    json_object_update (
        json_object_get (fixture->header, "source_projector_config"), forms->model->image);
  cellm_fixture_save (fixture, forms->cellm);
}

static void
assert_format (const gchar *path, const gchar *format)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmModelFiles) files = vlm_model_files_open (path, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (vlm_model_files_get_format (files), ==, format);
}

static void
test_same_ids (gconstpointer data)
{
  gboolean has_vision = GPOINTER_TO_INT (data);
  g_auto (Forms)
      forms = { .model = gguf_model_new (has_vision), .directory = fixture_directory_new () };
  g_autoptr (CellmAnswer) directory = NULL, gguf = NULL, slm = NULL, cellm = NULL;

  fixture_save (forms.model);
  save_gguf (&forms, has_vision);
  save_slm (&forms);
  save_cellm (&forms);
  assert_format (forms.model->directory, "safetensors");
  assert_format (forms.gguf, "gguf");
  assert_format (forms.slm, "slm");
  assert_format (forms.cellm, "cellm");

  directory = cellm_models_ask (forms.model->directory, VLM_PRECISION_EXACT);
  gguf = cellm_models_ask (forms.gguf, VLM_PRECISION_EXACT);
  slm = cellm_models_ask (forms.slm, VLM_PRECISION_EXACT);
  cellm = cellm_models_ask (forms.cellm, VLM_PRECISION_EXACT);
  /* Several ids, or there would be little to agree about. */
  g_assert_cmpuint (directory->n_ids, >, 3);
  cellm_answer_compare (directory, gguf, 0);
  cellm_answer_compare (directory, slm, 0);
  cellm_answer_compare (directory, cellm, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/same-model/vision", GINT_TO_POINTER (TRUE), test_same_ids);
  g_test_add_data_func ("/same-model/text", GINT_TO_POINTER (FALSE), test_same_ids);
  return g_test_run ();
}
