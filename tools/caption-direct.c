/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captions from engine/vlm.h itself: dumps, text-only prompts, several pictures in one prompt. */

#include "caption.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "npy.h"
#include "picture.h"

/* What is being answered, and where its stages go. */
typedef struct
{
  const CaptionOptions *options;
  VlmModel *model;
  VlmSession *session;
  gdouble load_seconds;
  GError *dump_error; /* the first failure of writing */
} Direct;

static void
write_stage (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  static const gchar *const numbered[] = { "crop", "patches", "tower", NULL };
  Direct *direct = user_data;
  g_autofree gchar *file = NULL;
  g_autofree gchar *path = NULL;

  if (direct->dump_error != NULL)
    return;
  if (g_strv_contains (numbered, name))
    file = g_strdup_printf ("%s_%03u.npy", name, index);
  else
    file = g_strdup_printf ("%s.npy", name);
  path = g_build_filename (direct->options->dump, file, NULL);
  npy_write (path, type, shape, n_dims, data, &direct->dump_error);
}

static void
print_timings (const Direct *direct, const VlmResult *result)
{
  const VlmTimings *t = &result->timings;
  struct rusage usage;

  g_printerr ("load %.3f s, image %.3f s, vision %.3f s, prefill %.3f s, decode %.3f s, "
              "total %.3f s\n",
      direct->load_seconds, t->image, t->vision, t->prefill, t->decode, t->total);
  g_printerr ("%u prompt tokens (%u of pictures), %" G_GSIZE_FORMAT " answer tokens, "
              "finished by %s\n",
      result->n_prompt_tokens, result->n_image_tokens, result->n_ids,
      vlm_finish_reason_name (result->finish_reason));
  if (getrusage (RUSAGE_SELF, &usage) == 0)
    g_printerr ("peak memory %.1f MB\n", usage.ru_maxrss / 1024.0);
}

static void
fill_request (
    VlmRequest *request, const CaptionOptions *options, const VlmImage *images, guint n_images)
{
  request->prompt = options->prompt;
  request->system_prompt = options->system_prompt;
  request->images = images;
  request->n_images = n_images;
  request->max_tokens = options->max_tokens;
  request->temperature = options->temperature;
  request->top_k = options->top_k;
  request->top_p = options->top_p;
  request->min_p = options->min_p;
  request->repetition_penalty = options->repetition_penalty;
  request->seed = MAX (options->seed, 0);
  request->min_image_tokens = options->min_image_tokens;
  request->max_image_tokens = options->max_image_tokens;
  request->tiling = options->tiling;
  request->n_threads = options->threads;
}

/* Decodes pictures first .. first + n - 1 into images, whose pixels the caller frees. */
static gboolean
load_images (const CaptionOptions *options, guint first, guint n, VlmImage *images)
{
  guint i;

  for (i = 0; i < n; i++) {
    const gchar *path = options->pictures[first + i];
    g_autoptr (GError) error = NULL;
    GstSample *sample = picture_decode (path, &error);

    if (sample != NULL) {
      images[i].pixels = picture_to_rgb (sample, &images[i].width, &images[i].height, &error);
      images[i].stride = (gsize) images[i].width * 3;
      gst_sample_unref (sample);
    }
    if (images[i].pixels == NULL) {
      caption_fail (path, error->message);
      return FALSE;
    }
  }
  return TRUE;
}

/* One answer about pictures first .. first + n - 1; prints it. */
static gboolean
answer (Direct *direct, guint first, guint n)
{
  const CaptionOptions *options = direct->options;
  g_autofree VlmImage *images = g_new0 (VlmImage, MAX (n, 1));
  g_autofree gchar *names = n == 0 ? NULL
      : n == 1                     ? g_strdup (options->pictures[first])
                                   : g_strjoinv (", ", options->pictures);
  g_autoptr (GError) error = NULL;
  VlmRequest request = VLM_REQUEST_INIT;
  VlmWatch watch = { NULL, write_stage, direct, NULL };
  VlmResult result = { 0 };
  gboolean done = FALSE;
  guint i;

  if (!load_images (options, first, n, images))
    goto out;
  fill_request (&request, options, images, n);
  if (!vlm_session_generate (
          direct->session, &request, options->dump != NULL ? &watch : NULL, &result, &error)) {
    caption_fail (names, error->message);
    goto out;
  }
  done = caption_print (options, options->dump == NULL ? names : NULL, result.text);
  if (options->timings)
    print_timings (direct, &result);
  if (direct->dump_error != NULL) {
    caption_fail (NULL, direct->dump_error->message);
    done = FALSE;
  }

out:
  for (i = 0; i < n; i++)
    g_free ((gpointer) images[i].pixels);
  vlm_result_clear (&result);
  g_clear_error (&direct->dump_error);
  return done;
}

static gboolean
open_model (Direct *direct)
{
  const CaptionOptions *options = direct->options;
  const gchar *path = options->model != NULL ? options->model : vlm_builtin_model ();
  const VlmLoadOptions load = { .precision = options->precision, .n_threads = options->threads };
  gint64 start = g_get_monotonic_time ();
  g_autoptr (GError) error = NULL;

  direct->model = vlm_model_load (path, &load, NULL, NULL, NULL, &error);
  if (direct->model == NULL) {
    caption_fail (NULL, error->message);
    return FALSE;
  }
  direct->load_seconds = (gdouble) (g_get_monotonic_time () - start) / G_USEC_PER_SEC;
  direct->session = vlm_session_new (direct->model);
  return TRUE;
}

gboolean
caption_direct (const CaptionOptions *options)
{
  Direct direct = { options, NULL, NULL, 0, NULL };
  gboolean done = TRUE;
  guint i;

  if (options->dump != NULL && g_mkdir_with_parents (options->dump, 0777) != 0) {
    caption_fail (options->dump, "the directory cannot be made");
    return FALSE;
  }
  if (!open_model (&direct))
    return FALSE;

  if (options->dump != NULL || options->n_pictures == 0) {
    done = answer (&direct, 0, options->n_pictures);
  } else {
    for (i = 0; i < options->n_pictures && !ferror (stdout); i++)
      done = answer (&direct, i, 1) && done;
  }
  vlm_session_free (direct.session);
  vlm_model_unref (direct.model);
  return done;
}
