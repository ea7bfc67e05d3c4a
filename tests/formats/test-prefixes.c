/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A file of a model that ends early, wherever it ends: refused with its name, soon, and without
 * taking more memory than such a file is worth.
 */

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "cellm-models.h"
#include "engine/formats/inventory.h"
#include "engine/formats/model-files.h"
#include "gguf-model.h"
#include "heap-watch.h"
#include "slm-fixture.h"

/* Of which a refusal may take no more. */
#define MAX_MICROSECONDS 10000
#define MAX_BYTES (1u << 20)

/*
 * Every length up to this one, which is beyond all headers, and every one of the last; between them,
 * where only data end early, as many as there is time for.
 */
#define N_FIRST 8192
#define N_LAST 256
#define STEP 29

/* A machine does other things too: that often a slow refusal is tried again. */
#define N_TRIALS 5

#define SHARD "model-%05u-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

/* A model in a directory of its own. The small model that it is made of is saved in model's. */
typedef struct
{
  FixtureModel *model;
  gchar *directory, *path, *mmproj;
} Place;

static void
place_clear (Place *place)
{
  fixture_model_free (place->model);
  fixture_directory_remove (place->directory);
  g_free (place->path);
  g_free (place->mmproj);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, place_clear)

static gchar *
inside (const Place *place, const gchar *name)
{
  return g_build_filename (place->directory, name, NULL);
}

/* ---- Models of all kinds ------------------------------------------------------------------- */

/* Settings in all the files that there are. */
static void
make_settings (Place *place)
{
  json_t *tokens = json_pack ("{s:s, s:s}", "bos_token", "<|startoftext|>", "pad_token", "<|pad|>");
  json_t *generation =
      json_pack ("{s:i, s:f}", "eos_token_id", place->model->im_end_id, "temperature", 0.5);
  json_t *processor = json_pack ("{s:O}", "image_processor", place->model->image);

  place->path = g_strdup (place->directory);
  fixture_write_json (place->directory, "config.json", place->model->config);
  fixture_write_json (place->directory, "tokenizer.json", place->model->tokenizer);
  fixture_write_json (place->directory, "processor_config.json", processor);
  fixture_write_json (place->directory, "tokenizer_config.json", tokens);
  fixture_write_json (place->directory, "generation_config.json", generation);
  json_decref (processor);
  json_decref (tokens);
  json_decref (generation);
}

static void
copy (const Place *place, const gchar *from, const gchar *to)
{
  g_autofree gchar *path = g_build_filename (place->model->directory, from, NULL);
  g_autofree gchar *bytes = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  fixture_write (place->directory, to, bytes, size);
}

static void
make_directory (Place *place)
{
  make_settings (place);
  copy (place, "model.safetensors", "model.safetensors");
}

static void
make_shards (Place *place)
{
  guint n = place->model->tensors->len, half = n / 2, i;
  json_t *map = json_object (), *root = json_pack ("{s:o}", "weight_map", map);

  make_settings (place);
  for (i = 0; i < 2; i++) {
    g_autofree gchar *name = g_strdup_printf (SHARD, i + 1);

    fixture_save_tensors (place->model, name, i * half, i ? n - half : half);
    copy (place, name, name);
  }
  for (i = 0; i < n; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (place->model->tensors, i);
    g_autofree gchar *name = g_strdup_printf (SHARD, i < half ? 1 : 2);

    json_object_set_new (map, tensor->name, json_string (name));
  }
  fixture_write_json (place->directory, INDEX, root);
  json_decref (root);
}

static void
make_slm (Place *place)
{
  place->path = inside (place, "victim.slm");
  slm_fixture_convert (place->model, place->path, VLM_SLM_INT4);
}

static void
make_mixed_slm (Place *place)
{
  place->path = inside (place, "victim.slm");
  slm_fixture_convert_mixed (place->model, place->path);
}

static void
make_gguf (Place *place)
{
  g_autoptr (GgufWriter) text = gguf_model_text (place->model);
  g_autoptr (GgufWriter) vision = gguf_model_vision (place->model);

  place->path = inside (place, GGUF_MODEL_TEXT);
  place->mmproj = inside (place, GGUF_MODEL_VISION);
  gguf_writer_save (text, place->directory, GGUF_MODEL_TEXT);
  gguf_writer_save (vision, place->directory, GGUF_MODEL_VISION);
}

/* As make_gguf (), but the program has to find out which file is which. */
static void
make_gguf_directory (Place *place)
{
  make_gguf (place);
  g_clear_pointer (&place->mmproj, g_free);
  g_free (place->path);
  place->path = g_strdup (place->directory);
}

static void
make_cellm (Place *place)
{
  g_autoptr (VlmTensorSource) source = cellm_models_open (place->model->directory);
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (place->model->directory, source, CELLM_PUBLISHED, CELLM_N_KINDS, NULL);

  json_object_update (
      json_object_get (fixture->header, "source_projector_config"), place->model->image);
  place->path = inside (place, "victim.cellm");
  cellm_fixture_save (fixture, place->path);
  fixture_write_json (place->directory, "tokenizer.json", place->model->tokenizer);
}

/* ---- Cutting ------------------------------------------------------------------------------- */

/* The model as far as weights can be read. */
static gboolean
open_model (const Place *place, GError **error)
{
  g_autoptr (VlmInventory) inventory = vlm_inventory_new (place->path, place->mmproj, NULL, error);

  return inventory != NULL;
}

/* Only the containers, which is faster. */
static gboolean
open_containers (const Place *place, GError **error)
{
  g_autoptr (VlmModelFiles) files = vlm_model_files_open (place->path, place->mmproj, error);
  g_autoptr (VlmTensorSource) tensors = files ? vlm_model_files_open_tensors (files, error) : NULL;

  return tensors != NULL;
}

typedef struct
{
  const gchar *name;
  const gchar *file; /* the one that is cut */
  void (*make) (Place *place);
  gboolean (*open) (const Place *place, GError **error);
  gsize shortest; /* what is still shorter is another file that is there by chance */
} Kind;

static const Kind kinds[] = {
  { "safetensors", "model.safetensors", make_directory, open_containers, 0 },
  { "config", "config.json", make_directory, open_model, 0 },
  { "tokenizer", "tokenizer.json", make_directory, open_model, 0 },
  { "tokenizer-config", "tokenizer_config.json", make_directory, open_model, 0 },
  { "processor", "processor_config.json", make_directory, open_model, 0 },
  { "generation", "generation_config.json", make_directory, open_model, 0 },
  { "index", INDEX, make_shards, open_containers, 0 },
  { "shard", "model-00002-of-00002.safetensors", make_shards, open_containers, 0 },
  { "slm", "victim.slm", make_slm, open_containers, 0 },
  { "slm-integers", "victim.slm", make_mixed_slm, open_containers, 0 },
  { "gguf-text", GGUF_MODEL_TEXT, make_gguf, open_containers, 0 },
  { "gguf-vision", GGUF_MODEL_VISION, make_gguf, open_containers, 0 },
  { "gguf-directory-text", GGUF_MODEL_TEXT, make_gguf_directory, open_containers, 0 },
  { "gguf-directory-vision", GGUF_MODEL_VISION, make_gguf_directory, open_containers, 4 },
  { "cellm", "victim.cellm", make_cellm, open_containers, 0 },
  { "cellm-tokenizer", "tokenizer.json", make_cellm, open_model, 0 },
};

/* Microseconds of the processor that the refusal took; most: bytes of memory. */
static gint64
refuse (const Place *place, const Kind *kind, gsize size, gsize *most)
{
  g_autoptr (GError) error = NULL;
  gboolean opened;
  gint64 begin;

  heap_watch_begin ();
  begin = fixture_get_time ();
  opened = kind->open (place, &error);
  begin = fixture_get_time () - begin;
  *most = heap_watch_end ();
  if (opened)
    g_error ("%s of %" G_GSIZE_FORMAT " bytes went through", kind->file, size);
  if (strstr (error->message, kind->file) == NULL)
    g_error (
        "%" G_GSIZE_FORMAT " bytes: \"%s\" does not name %s", size, error->message, kind->file);
  return begin;
}

static void
test_prefixes (gconstpointer data)
{
  const Kind *kind = data;
  g_auto (Place) place = { gguf_model_new (TRUE), fixture_directory_new (), NULL, NULL };
  g_autofree gchar *victim = inside (&place, kind->file);
  g_autoptr (GError) error = NULL;
  gsize size, n, most, most_ever = 0;
  gint64 longest = 0;
  GStatBuf status;

  fixture_save (place.model);
  kind->make (&place);
  open_model (&place, &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_stat (victim, &status), ==, 0);
  size = status.st_size;
  for (n = size; n > kind->shortest;) {
    gint64 spent = G_MAXINT64;
    guint trial;

    n -= n > N_FIRST && n + N_LAST < size ? STEP : 1;
    g_assert_cmpint (truncate (victim, n), ==, 0);
    for (trial = 0; trial < N_TRIALS && spent > MAX_MICROSECONDS; trial++)
      spent = MIN (spent, refuse (&place, kind, n, &most));
    g_assert_cmpint (spent, <=, MAX_MICROSECONDS);
    g_assert_cmpuint (most, >, 0);
    g_assert_cmpuint (most, <=, MAX_BYTES + n);
    longest = MAX (longest, spent);
    most_ever = MAX (most_ever, most);
  }
  g_test_message ("%s of %" G_GSIZE_FORMAT " bytes: at most %" G_GINT64_FORMAT
                  " us and %" G_GSIZE_FORMAT " bytes",
      kind->file, size, longest, most_ever);
}

int
main (int argc, char **argv)
{
  gsize i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree gchar *path = g_strconcat ("/prefixes/", kinds[i].name, NULL);

    g_test_add_data_func (path, &kinds[i], test_prefixes);
  }
  return g_test_run ();
}
