/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loading models and finding them again. */

#include <string.h>
#include <utime.h>

#include <glib/gstdio.h>

#include "engine/vlm.h"
#include "golden.h"

#define VL_MODEL "models/lfm2-first"
#define SHARDED_MODEL "models/sharded"
#define TEXT_MODEL "models/text-only"

static VlmModel *
load_path (const gchar *path)
{
  GError *error = NULL;
  VlmModel *model = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return model;
}

static VlmModel *
load (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);

  return load_path (path);
}

/* A copy of a golden model that a test may change. (transfer full) */
static gchar *
copy_model (const gchar *name)
{
  g_autofree gchar *from = golden_path (name);
  gchar *to = g_dir_make_tmp ("vlm-model-XXXXXX", NULL);
  GDir *dir = g_dir_open (from, 0, NULL);
  const gchar *file;

  while ((file = g_dir_read_name (dir)) != NULL) {
    g_autofree gchar *source = g_build_filename (from, file, NULL);
    g_autofree gchar *target = g_build_filename (to, file, NULL);
    g_autofree gchar *data = NULL;
    gsize size;

    g_assert_true (g_file_get_contents (source, &data, &size, NULL));
    g_assert_true (g_file_set_contents (target, data, size, NULL));
  }
  g_dir_close (dir);
  return to;
}

static void
remove_model (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *file;

  while ((file = g_dir_read_name (dir)) != NULL) {
    g_autofree gchar *name = g_build_filename (path, file, NULL);

    g_remove (name);
  }
  g_dir_close (dir);
  g_rmdir (path);
}

static void
test_models_are_shared (void)
{
  VlmModel *a = load (VL_MODEL);
  VlmModel *b = load (VL_MODEL);
  VlmModel *c = load (TEXT_MODEL);

  g_assert_true (a == b);
  g_assert_true (a != c);
  vlm_model_unref (a);
  vlm_model_unref (b);
  vlm_model_unref (c);
}

/* How many threads loaded a model says nothing about it. */
static void
test_threads_do_not_matter (void)
{
  g_autofree gchar *path = golden_path (VL_MODEL);
  VlmModel *models[3];
  GError *error = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (models); i++) {
    const VlmLoadOptions options = { .n_threads = i };

    models[i] = vlm_model_load (path, &options, NULL, NULL, NULL, &error);
    g_assert_no_error (error);
    g_assert_true (models[i] == models[0]);
  }
  for (i = 0; i < G_N_ELEMENTS (models); i++)
    vlm_model_unref (models[i]);
}

/* Any of its files written anew makes it another model. */
static void
test_changed_models_are_not_shared (void)
{
  static const gchar *const files[] = { "model-00002-of-00003.safetensors", "config.json",
    "tokenizer_config.json", "generation_config.json", "model.safetensors.index.json" };
  g_autofree gchar *path = copy_model (SHARDED_MODEL);
  struct utimbuf times = { 1000, 1000 };
  VlmModel *before = load_path (path);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree gchar *file = g_build_filename (path, files[i], NULL);
    VlmModel *after;

    g_assert_cmpint (utime (file, &times), ==, 0);
    after = load_path (path);
    g_assert_true (before != after);
    vlm_model_unref (before);
    before = after;
  }
  vlm_model_unref (before);
  remove_model (path);
}

static gpointer
load_in_thread (gpointer path)
{
  return load_path (path);
}

/* Whoever asks while a model is being loaded waits for it, and gets the same one. */
static void
test_loads_at_once (void)
{
  g_autofree gchar *path = golden_path (VL_MODEL);
  GThread *threads[4];
  VlmModel *models[4];
  guint round, i;

  for (round = 0; round < 5; round++) {
    for (i = 0; i < G_N_ELEMENTS (threads); i++)
      threads[i] = g_thread_new ("load", load_in_thread, path);
    for (i = 0; i < G_N_ELEMENTS (threads); i++)
      models[i] = g_thread_join (threads[i]);
    for (i = 0; i < G_N_ELEMENTS (threads); i++) {
      g_assert_true (models[i] == models[0]);
      if (i > 0)
        vlm_model_unref (models[i]);
    }
    vlm_model_unref (models[0]);
  }
}

typedef struct
{
  const gchar *path;
  GCancellable *cancellable; /* of the one who waits */
  gint waiting;
} LoadPair;

static gpointer
wait_and_be_cancelled (gpointer data)
{
  LoadPair *pair = data;
  GError *error = NULL;

  g_atomic_int_set (&pair->waiting, TRUE);
  g_assert_null (vlm_model_load (pair->path, NULL, NULL, NULL, pair->cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_error_free (error);
  return NULL;
}

/* While the first load is held up in its progress function, a second one waits and gives up. */
static void
hold_up_the_load (gdouble fraction, gpointer user_data)
{
  LoadPair *pair = user_data;
  GThread *thread;

  if (pair->waiting)
    return;
  thread = g_thread_new ("waiter", wait_and_be_cancelled, pair);
  while (!g_atomic_int_get (&pair->waiting))
    g_thread_yield ();
  g_cancellable_cancel (pair->cancellable);
  g_thread_join (thread);
}

static void
test_a_waiting_load_can_be_cancelled (void)
{
  g_autofree gchar *path = golden_path (VL_MODEL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  LoadPair pair = { path, cancellable, FALSE };
  GError *error = NULL;
  VlmModel *model = vlm_model_load (path, NULL, hold_up_the_load, &pair, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (pair.waiting);
  vlm_model_unref (model);
}

static void
expect_load_error (const gchar *path, gint code, const gchar *mentions)
{
  GError *error = NULL;

  g_assert_null (vlm_model_load (path, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, VLM_ERROR, code);
  g_assert_nonnull (strstr (error->message, mentions));
  g_clear_error (&error);
}

static void
test_load_errors (void)
{
  g_autofree gchar *path = golden_path (VL_MODEL);
  g_autofree gchar *level = g_strdup (g_getenv ("VLM_CPU"));
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GError *error = NULL;

  expect_load_error ("/nonexistent/model", VLM_ERROR_NOT_FOUND, "/nonexistent/model");
  g_setenv ("VLM_CPU", "pentium", TRUE);
  expect_load_error (path, VLM_ERROR_SETTINGS, "pentium");
  /* An element is to fail before it starts, not while it loads. */
  g_assert_false (vlm_model_check_path (path, NULL, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_SETTINGS);
  g_clear_error (&error);
#ifdef __x86_64__
  g_setenv ("VLM_CPU", "neon", TRUE);
  expect_load_error (path, VLM_ERROR_SETTINGS, "neon");
#endif
  if (level != NULL)
    g_setenv ("VLM_CPU", level, TRUE);
  else
    g_unsetenv ("VLM_CPU");

  g_cancellable_cancel (cancellable);
  g_assert_null (vlm_model_load (path, NULL, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/model/sharing", test_models_are_shared);
  g_test_add_func ("/model/sharing/threads", test_threads_do_not_matter);
  g_test_add_func ("/model/sharing/changed", test_changed_models_are_not_shared);
  g_test_add_func ("/model/sharing/at-once", test_loads_at_once);
  g_test_add_func ("/model/sharing/waiting", test_a_waiting_load_can_be_cancelled);
  g_test_add_func ("/model/load-errors", test_load_errors);
  return g_test_run ();
}
