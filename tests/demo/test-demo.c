/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The built-in model through the engine: scenes that training never saw, drawn again from their
 * seeds, and videotestsrc's patterns. scenes.tsv and patterns.tsv hold the true captions and the
 * reference implementation's; ours must be the reference's, and true often enough.
 */

#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <string.h>

#include "engine/vlm.h"
#include "tools/demo-model/scene.h"

#define PROMPT "Describe this picture in one sentence."

/* Of 500 scenes. */
#define LEAST_EXACT_PERCENT 97

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
  guint n_exact = 0;
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
    g_assert_cmpstr (text, ==, row[6]);
    all[scene.n_shapes]++;
    if (strcmp (text, scene.caption) == 0) {
      exact[scene.n_shapes]++;
      n_exact++;
    }
  }
  for (i = 1; i <= VLM_SCENE_MAX_SHAPES; i++)
    g_test_message ("%u shapes: %u of %u captions exact", i, exact[i], all[i]);
  g_test_message ("%u of %u captions exact", n_exact, rows->len);
  g_assert_cmpuint (100 * n_exact, >=, LEAST_EXACT_PERCENT * rows->len);
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

int
main (int argc, char **argv)
{
  GError *error = NULL;
  int status;

  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  model = vlm_model_load (vlm_builtin_model (), NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  session = vlm_session_new (model);
  g_test_add_func ("/demo/scenes", test_scenes);
  g_test_add_func ("/demo/patterns", test_patterns);
  status = g_test_run ();
  vlm_session_free (session);
  vlm_model_unref (model);
  return status;
}
