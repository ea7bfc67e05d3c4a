/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session-answers.h"

#include <string.h>

#include "golden.h"
#include "test-image-draw.h"

/* A model of tests/golden, whose text has weights with scales of groups. */
static VlmModel *
load_int4 (const gchar *name)
{
  g_autofree gchar *base = g_path_get_basename (name);
  json_t *root =
      json_pack ("{s:s, s:s, s:s}", "model", base, "type", "int4", "vision_type", "int8");
  g_autofree gchar *path = golden_convert (root);
  GError *error = NULL;
  VlmModel *model = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  golden_remove_converted (path);
  json_decref (root);
  return model;
}

VlmModel *
session_load (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);
  const gchar *precision = g_getenv ("VLM_TEST_PRECISION");
  const gboolean is_fast = g_strcmp0 (precision, "fast") == 0;
  const VlmLoadOptions options = { .precision = is_fast ? VLM_PRECISION_FAST : VLM_PRECISION_AUTO };
  GError *error = NULL;
  VlmModel *model;

  if (g_strcmp0 (precision, "int4") == 0)
    return load_int4 (name);
  model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  return model;
}

static void
keep_logits (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  SessionAnswer *answer = user_data;

  if (strcmp (name, "logits") == 0) {
    answer->n_logits = shape[0];
    answer->logits = g_memdup2 (data, shape[0] * sizeof (gfloat));
  }
}

void
session_ask (VlmSession *session, const VlmRequest *request, SessionAnswer *answer)
{
  VlmWatch watch = { NULL, keep_logits, answer, NULL };
  GError *error = NULL;

  memset (answer, 0, sizeof (*answer));
  g_assert_true (vlm_session_generate (session, request, &watch, &answer->result, &error));
  g_assert_no_error (error);
}

void
session_answer_clear (SessionAnswer *answer)
{
  vlm_result_clear (&answer->result);
  g_free (answer->logits);
}

void
session_assert_equal (const SessionAnswer *a, const SessionAnswer *b)
{
  g_assert_cmpmem (
      a->logits, a->n_logits * sizeof (gfloat), b->logits, b->n_logits * sizeof (gfloat));
  g_assert_cmpmem (a->result.ids, a->result.n_ids * sizeof (gint32), b->result.ids,
      b->result.n_ids * sizeof (gint32));
  g_assert_cmpstr (a->result.text, ==, b->result.text);
}

void
session_image_init (VlmImage *image, guint width, guint height, guint64 seed)
{
  image->width = width;
  image->height = height;
  image->stride = width * 3;
  image->pixels = test_image_draw ("mix", width, height, seed);
}

void
session_request_init (VlmRequest *request, const VlmImage *image)
{
  const VlmRequest empty = VLM_REQUEST_INIT;

  *request = empty;
  request->prompt = "Describe the picture in one sentence.";
  request->images = image;
  request->n_images = image != NULL;
  request->max_tokens = 20;
  request->temperature = 0;
}
