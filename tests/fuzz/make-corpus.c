/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Writes sound inputs for each fuzz target, made by the tests' own writers:
 *   make-corpus DIRECTORY
 * fills DIRECTORY/TARGET/.
 */

#include <string.h>

#include "engine/formats/hf.h"
#include "tests/engine/test-text-toy.h"
#include "tests/formats/cellm-models.h"
#include "tests/formats/gguf-model.h"
#include "tests/formats/slm-fixture.h"

/* Magic, version and length stand before the header. */
#define CELLM_PREFIX 10

static const gchar *root;

static void
put (const gchar *target, const gchar *name, gconstpointer data, gsize size)
{
  g_autofree gchar *directory = g_build_filename (root, target, NULL);
  g_autofree gchar *path = g_build_filename (directory, name, NULL);

  g_assert (g_mkdir_with_parents (directory, 0755) == 0);
  g_assert (g_file_set_contents (path, data, size, NULL));
}

static void
put_file (const gchar *target, const gchar *name, const gchar *directory, const gchar *file)
{
  g_autofree gchar *path = g_build_filename (directory, file, NULL), *data = NULL;
  gsize size;

  g_assert (g_file_get_contents (path, &data, &size, NULL));
  put (target, name, data, size);
}

/* With the byte before it that says which file it is. */
static void
put_settings (const gchar *name, const gchar *directory, const gchar *file, guint8 number)
{
  g_autofree gchar *path = g_build_filename (directory, file, NULL), *data = NULL;
  g_autoptr (GByteArray) all = g_byte_array_new ();
  gsize size;

  if (!g_file_get_contents (path, &data, &size, NULL))
    return;
  g_byte_array_append (all, &number, 1);
  g_byte_array_append (all, (const guint8 *) data, size);
  put ("settings", name, all->data, all->len);
}

static void
write_slm (FixtureModel *model, const gchar *name, VlmSlmType type)
{
  g_autofree gchar *path = g_build_filename (model->directory, "m.slm", NULL);

  slm_fixture_convert (model, path, type);
  put_file ("slm", name, model->directory, "m.slm");
  fixture_remove (model->directory, "m.slm");
}

/* Integers of every format. */
static void
write_mixed_slm (FixtureModel *model)
{
  g_autofree gchar *path = g_build_filename (model->directory, "m.slm", NULL);

  slm_fixture_convert_mixed (model, path);
  put_file ("slm", "mixed", model->directory, "m.slm");
  fixture_remove (model->directory, "m.slm");
}

static void
write_model (gboolean has_vision)
{
  static const gchar *const names[] = { VLM_HF_CONFIG, VLM_HF_PROCESSOR, VLM_HF_PREPROCESSOR,
    VLM_HF_GENERATION, VLM_HF_TOKENIZER_CONFIG };
  g_autoptr (FixtureModel) model = gguf_model_new (has_vision);
  const gchar *kind = has_vision ? "vision" : "text";
  guint i;

  if (!model->generation)
    model->generation = json_pack (
        "{s:i, s:b, s:f, s:i}", "eos_token_id", 2, "do_sample", 1, "temperature", 0.5, "top_k", 40);
  if (!model->image)
    model->image = json_pack ("{s:{s:i, s:i, s:b, s:[f,f,f]}}", "image_processor", "tile_size", 512,
        "max_tiles", 10, "use_thumbnail", 1, "image_mean", 0.5, 0.5, 0.5);
  fixture_save (model);
  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree gchar *name = g_strdup_printf ("%s-%u", kind, i);

    put_settings (name, model->directory, names[i], i);
  }
  put_settings ("nested-as-flat", model->directory, VLM_HF_PROCESSOR, 2);
  put_file ("tokenizer", kind, model->directory, "tokenizer.json");
  if (!has_vision) {
    write_slm (model, "f16", VLM_SLM_F16);
    return;
  }
  put_file ("safetensors", kind, model->directory, "model.safetensors");
  write_slm (model, "int8", VLM_SLM_INT8);
  write_slm (model, "int4", VLM_SLM_INT4);
  write_mixed_slm (model);
}

/* The padding before the first tensor becomes blanks of the header, which mutations may fill. */
static void
put_cellm (CellmFixture *file, const gchar *name)
{
  g_autofree gchar *text = NULL, *blanks = NULL;
  g_autoptr (GByteArray) bytes = NULL;

  cellm_fixture_lay_out (file);
  text = cellm_fixture_print_header (file);
  blanks = g_strnfill (file->start - CELLM_PREFIX - strlen (text), ' ');
  file->text = g_strconcat (text, blanks, NULL);
  bytes = cellm_fixture_print (file);
  put ("cellm", name, bytes->data, bytes->len);
}

static void
write_cellm (CellmKind kind, CellmSpelling spelling)
{
  g_autoptr (FixtureModel) model = gguf_model_new (kind % 2 == 0);
  g_autoptr (VlmCheckpoint) checkpoint = fixture_open (model);
  g_autoptr (CellmFixture) file =
      cellm_models_convert (model->directory, checkpoint->tensors, spelling, kind, NULL);
  g_autofree gchar *name = g_strdup_printf ("kind-%d", kind);

  put_cellm (file, name);
}

/* Every kind, in no network. */
static void
write_samples (void)
{
  g_autoptr (CellmFixture) file = cellm_fixture_new_samples ();

  put_cellm (file, "samples");
}

/* A text file and perhaps a vision part, with the length of the first before them. */
static void
write_gguf (gboolean has_vision)
{
  g_autoptr (FixtureModel) model = gguf_model_new (has_vision);
  g_autoptr (GgufWriter) text = gguf_model_text (model);
  g_autoptr (GByteArray) all = g_byte_array_new (), first = gguf_writer_get_bytes (text);
  guint32 length = GUINT32_TO_LE (first->len);

  g_byte_array_append (all, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (all, first->data, first->len);
  if (has_vision) {
    g_autoptr (GgufWriter) vision = gguf_model_vision (model);
    g_autoptr (GByteArray) second = gguf_writer_get_bytes (vision);

    g_byte_array_append (all, second->data, second->len);
  }
  put ("gguf", has_vision ? "pair" : "text", all->data, all->len);
}

/* A tensor of every type with random blocks, in no network. */
static void
write_blocks (void)
{
  static const struct
  {
    guint type, n_values, n_bytes;
  } types[] = { { 0, 1, 4 }, { 1, 1, 2 }, { 30, 1, 2 }, { 8, 32, 34 }, { 2, 32, 18 }, { 3, 32, 20 },
    { 6, 32, 22 }, { 7, 32, 24 }, { 12, 256, 144 }, { 13, 256, 176 }, { 14, 256, 210 } };
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (GByteArray) all = g_byte_array_new (), file = NULL;
  guint i, j;
  guint32 length;

  gguf_put_string (writer, "general.architecture", "lfm2");
  gguf_put_string (writer, "general.type", "model");
  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    gsize n = 2 * 256 / types[i].n_values * types[i].n_bytes;
    g_autofree guint8 *bytes = g_malloc (n);
    g_autofree gchar *name = g_strdup_printf ("blk.%u.ffn_up.weight", i);
    guint64 dims[] = { 256, 2 };

    /* Small enough for halves and floats to be finite wherever they lie. */
    for (j = 0; j < n; j++)
      bytes[j] = (j * 37 + i) % 113;
    gguf_add_tensor (writer, name, types[i].type, 2, dims, bytes, n);
  }
  file = gguf_writer_get_bytes (writer);
  length = GUINT32_TO_LE (file->len);
  g_byte_array_append (all, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (all, file->data, file->len);
  put ("gguf", "blocks", all->data, all->len);
}

static void
write_toy (const gchar *name, const gchar *regex)
{
  json_t *toy = toy_new (regex);
  char *text;

  toy_add_merge (toy, "a", "b");
  toy_add_token (toy, "<|im_start|>", TRUE);
  text = json_dumps (toy, JSON_COMPACT);
  put ("tokenizer", name, text, strlen (text));
  free (text);
  json_decref (toy);
}

static void
write_texts (void)
{
  static const gchar *const texts[] = { "Hello, world! 123456\n", "  \r\n\t  a  b ",
    "I'M don't we'll caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87", "<|im_start|>user<image>plain",
    "\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autofree gchar *name = g_strdup_printf ("%u", i);
    g_autofree gchar *flagged = g_strdup_printf ("%c%s", (gchar) i & 3 ? i & 3 : 4, texts[i]);

    put ("encode", name, flagged, strlen (flagged));
    /* The zero byte at the end parts what the system and the user say. */
    put ("chat", name, texts[i], strlen (texts[i]) + 1);
  }
}

static void
write_sizes (void)
{
  static const guint32 sizes[][2] = { { 256, 256 }, { 1920, 1080 }, { 1, 1 }, { 1, 9000 },
    { 640, 480 }, { 48, 5 } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autofree gchar *name = g_strdup_printf ("%ux%u", sizes[i][0], sizes[i][1]);
    /* Width, height; patch, factor, tile, tiles, tokens; tolerance, flags; output. */
    guint16 rest[] = { 16, 2, 512, 2, 10, 64, 256, 32 | 6 << 8, 31, 17 };
    guint8 bytes[8 + sizeof (rest)];

    memcpy (bytes, sizes[i], 8);
    memcpy (bytes + 8, rest, sizeof (rest));
    put ("image", name, bytes, sizeof (bytes));
  }
}

int
main (int argc, char **argv)
{
  guint kind;

  g_assert (argc == 2);
  root = argv[1];
  write_model (TRUE);
  write_model (FALSE);
  write_toy ("65k", TOY_REGEX);
  write_toy ("128k", TOY_REGEX_128K);
  /* Rows of the small model are too short for the kind with words of eight values. */
  for (kind = 0; kind < CELLM_U32; kind++)
    write_cellm (kind, kind % CELLM_N_SPELLINGS);
  write_samples ();
  write_gguf (TRUE);
  write_gguf (FALSE);
  write_blocks ();
  write_texts ();
  write_sizes ();
  return 0;
}
