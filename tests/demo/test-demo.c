/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The demo model through the engine, in the form that the argument names: scenes that training
 * never saw, drawn again from their seeds, and videotestsrc's patterns. scenes.tsv and patterns.tsv
 * hold the true captions and what the reference implementation says in f32; ours must be the
 * reference's as often as the form promises, and true often enough.
 */

#include <glib/gstdio.h>
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <string.h>

#include "engine/vlm.h"
#include "tools/demo-model/scene.h"

#define PROMPT "Describe this picture in one sentence."

/* Of 500 scenes. */
#define LEAST_EXACT_PERCENT 97

/* What is asked. */
typedef struct
{
  const gchar *name;
  enum
  {
    FROM_SOURCE, /* the Hugging Face directory */
    CONVERTED,   /* to type */
    BUILT_IN     /* was converted to type */
  } origin;
  VlmWeightType type;
  VlmPrecision precision;
  guint least_agreement; /* per mille of scenes with the reference's caption */
} Form;

static const Form forms[] = {
  { "exact", FROM_SOURCE, 0, VLM_PRECISION_EXACT, 1000 },
  { "f16", CONVERTED, VLM_WEIGHT_F16, VLM_PRECISION_AUTO, 995 },
  { "int4", CONVERTED, VLM_WEIGHT_INT4, VLM_PRECISION_FAST, 970 },
  { "built-in", BUILT_IN, VLM_WEIGHT_INT8, VLM_PRECISION_AUTO, 990 },
};

static const Form *form;
static VlmModel *model;
static VlmSession *session;

/* The lines of a table below its heading, each split at its tabs. (transfer full) */
static GPtrArray *
read_table (const gchar *name, guint n_columns)
{
  g_autofree gchar *path = g_build_filename (g_getenv ("VLM_DEMO_DIR"), name, NULL);
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  GPtrArray *rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  GError *error = NULL;
  guint i;

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  lines = g_strsplit (text, "\n", -1);
  for (i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
    gchar **row = g_strsplit (lines[i], "\t", -1);

    g_assert_cmpuint (g_strv_length (row), ==, n_columns);
    g_ptr_array_add (rows, row);
  }
  return rows;
}

static gchar *
caption (const guint8 *rgb, gsize stride, guint width, guint height)
{
  VlmImage image = { rgb, stride, width, height };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  GError *error = NULL;
  gchar *text;

  request.prompt = PROMPT;
  request.images = &image;
  request.n_images = 1;
  vlm_session_generate (session, &request, NULL, &result, &error);
  g_assert_no_error (error);
  g_assert_cmpint (result.finish_reason, ==, VLM_FINISH_STOP);
  text = g_steal_pointer (&result.text);
  vlm_result_clear (&result);
  return text;
}

static void
test_scenes (void)
{
  g_autoptr (GPtrArray) rows = read_table ("scenes.tsv", 7);
  guint exact[VLM_SCENE_MAX_SHAPES + 1] = { 0 };
  guint all[VLM_SCENE_MAX_SHAPES + 1] = { 0 };
  guint n_exact = 0, n_same = 0;
  guint i;

  g_assert_cmpuint (rows->len, ==, 500);
  for (i = 0; i < rows->len; i++) {
    gchar **row = rows->pdata[i];
    VlmScene scene;
    g_autofree guint8 *rgb = NULL;
    g_autofree gchar *text = NULL;
    g_autofree gchar *checksum = NULL;

    vlm_scene_init (&scene, g_ascii_strtoull (row[0], NULL, 10));
    rgb = g_malloc ((gsize) scene.width * scene.height * 3);
    vlm_scene_draw (&scene, rgb, (gsize) scene.width * 3);
    checksum = g_strdup_printf ("%016" G_GINT64_MODIFIER "x",
        vlm_scene_checksum (rgb, scene.width, scene.height, (gsize) scene.width * 3));
    g_assert_cmpstr (checksum, ==, row[4]);
    g_assert_cmpstr (scene.caption, ==, row[5]);

    text = caption (rgb, (gsize) scene.width * 3, scene.width, scene.height);
    if (strcmp (text, row[6]) == 0)
      n_same++;
    else
      g_test_message ("seed %s: \"%s\", the reference says \"%s\"", row[0], text, row[6]);
    all[scene.n_shapes]++;
    if (strcmp (text, scene.caption) == 0) {
      exact[scene.n_shapes]++;
      n_exact++;
    }
  }
  for (i = 1; i <= VLM_SCENE_MAX_SHAPES; i++)
    g_test_message ("%u shapes: %u of %u captions exact", i, exact[i], all[i]);
  g_test_message ("%u of %u captions exact, %u as the reference's", n_exact, rows->len, n_same);
  g_assert_cmpuint (100 * n_exact, >=, LEAST_EXACT_PERCENT * rows->len);
  g_assert_cmpuint (1000 * n_same, >=, form->least_agreement * rows->len);
}

/* Captions the frame that comes next out of the sink. */
static gchar *
caption_sample (GstSample *sample, guint width, guint height)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  GstMapInfo map;
  gchar *text;

  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  text = caption (map.data, GST_ROUND_UP_4 (width * 3), width, height);
  gst_buffer_unmap (buffer, &map);
  return text;
}

/* rows[0 .. n - 1] are frames of one pattern at one size, in rising order. */
static void
check_pattern (gchar ***rows, guint n)
{
  guint width = g_ascii_strtoull (rows[0][1], NULL, 10);
  guint height = g_ascii_strtoull (rows[0][2], NULL, 10);
  g_autofree gchar *description = g_strdup_printf (
      "videotestsrc pattern=%s ! "
      "video/x-raw,format=RGB,width=%u,height=%u ! appsink name=sink max-buffers=4 sync=false",
      rows[0][0], width, height);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (description, &error);
  g_autoptr (GstElement) sink = NULL;
  guint i = 0;
  guint number;

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (number = 0; i < n; number++) {
    g_autoptr (GstSample) sample = gst_app_sink_pull_sample (GST_APP_SINK (sink));
    g_autofree gchar *text = NULL;

    g_assert_nonnull (sample);
    if (number != g_ascii_strtoull (rows[i][3], NULL, 10))
      continue;
    text = caption_sample (sample, width, height);
    if (strcmp (text, rows[i][4]) != 0 || strcmp (text, rows[i][5]) != 0)
      g_error ("%s %ux%u frame %u: \"%s\", expected \"%s\", the reference says \"%s\"", rows[i][0],
          width, height, number, text, rows[i][4], rows[i][5]);
    i++;
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

static void
test_patterns (void)
{
  g_autoptr (GPtrArray) rows = read_table ("patterns.tsv", 6);
  gchar ***row = (gchar ***) rows->pdata;
  guint first, n;

  for (first = 0; first < rows->len; first += n) {
    for (n = 1; first + n < rows->len; n++) {
      if (strcmp (row[first][0], row[first + n][0]) != 0
          || strcmp (row[first][1], row[first + n][1]) != 0)
        break;
    }
    g_assert_cmpuint (n, ==, 10);
    check_pattern (row + first, n);
  }
}

/* Converts the source to path. */
static void
convert (VlmWeightType type, const gchar *path)
{
  VlmConvertOptions options = { type, VLM_WEIGHT_AUTO, FALSE, 0, NULL };
  GError *error = NULL;

  vlm_model_convert (g_getenv ("VLM_DEMO_MODEL"), path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
load_model (const gchar *folder)
{
  VlmLoadOptions options = { .precision = form->precision };
  g_autofree gchar *path = g_build_filename (folder, "model.slm", NULL);
  const gchar *source = path;
  GError *error = NULL;

  if (form->origin == FROM_SOURCE)
    source = g_getenv ("VLM_DEMO_MODEL");
  else if (form->origin == BUILT_IN)
    source = vlm_builtin_model ();
  else
    convert (form->type, path);
  model = vlm_model_load (source, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  session = vlm_session_new (model);
  g_unlink (path);
}

/* What is built in is what converting the source gives. */
static void
test_origin (gconstpointer user_data)
{
  g_autofree gchar *path = g_build_filename (user_data, "again.slm", NULL);
  g_autoptr (GFile) builtin = g_file_new_for_uri (vlm_builtin_model ());
  g_autofree gchar *expected = NULL;
  g_autofree gchar *found = NULL;
  gsize n_expected, n_found;
  GError *error = NULL;

  convert (form->type, path);
  g_file_get_contents (path, &expected, &n_expected, &error);
  g_assert_no_error (error);
  g_file_load_contents (builtin, NULL, &found, &n_found, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_found, ==, n_expected);
  g_assert_true (memcmp (found, expected, n_found) == 0);
  g_unlink (path);
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  g_autofree gchar *folder = NULL;
  guint i;
  int status;

  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  g_assert_cmpint (argc, ==, 2);
  for (i = 0; strcmp (forms[i].name, argv[1]) != 0; i++)
    g_assert_cmpuint (i + 1, <, G_N_ELEMENTS (forms));
  form = &forms[i];
  folder = g_dir_make_tmp ("vlm-demo-XXXXXX", &error);
  g_assert_no_error (error);
  load_model (folder);
  g_test_add_func ("/demo/scenes", test_scenes);
  if (form->origin != CONVERTED)
    g_test_add_func ("/demo/patterns", test_patterns);
  if (form->origin == BUILT_IN)
    g_test_add_data_func ("/demo/origin", folder, test_origin);
  status = g_test_run ();
  vlm_session_free (session);
  vlm_model_unref (model);
  g_rmdir (folder);
  return status;
}
