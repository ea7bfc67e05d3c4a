/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * answer TOKENS [MODEL]: one answer of at most so many tokens about one picture of 512 x 512, untiled, by one
 * thread; the model is the built-in one unless another is given. Prints what the stages had to do.
 */

#include "engine/vlm.h"

#include <stdio.h>
#include <stdlib.h>

#define SIDE 512

static void
count_patches (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  if (g_str_equal (name, "patches"))
    *(gsize *) user_data += shape[0];
}

static guint8 *
draw (void)
{
  guint8 *pixels = g_malloc (SIDE * SIDE * 3);
  gsize i;

  for (i = 0; i < SIDE * SIDE * 3; i++)
    pixels[i] = (guint8) ((i * 2654435761u) >> 11);
  return pixels;
}

static gboolean
answer (const gchar *path, gint max_tokens, GError **error)
{
  const VlmLoadOptions load = { .n_threads = 1 };
  VlmModel *model = vlm_model_load (path, &load, NULL, NULL, NULL, error);
  g_autofree guint8 *pixels = draw ();
  const VlmImage image = { pixels, SIDE * 3, SIDE, SIDE };
  gsize n_patches = 0;
  const VlmWatch watch = { .array = count_patches, .user_data = &n_patches };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  VlmSession *session;
  gboolean ok;

  if (model == NULL)
    return FALSE;
  session = vlm_session_new (model);
  request.prompt = "Describe this picture in one sentence.";
  request.images = &image;
  request.n_images = 1;
  request.max_tokens = max_tokens;
  request.tiling = VLM_TILING_OFF;
  request.n_threads = 1;
  ok = vlm_session_generate (session, &request, &watch, &result, error);
  if (ok)
    printf ("patches\t%zu\nprompt\t%u\nsteps\t%zu\n", n_patches, result.n_prompt_tokens,
        result.n_ids - 1);
  vlm_result_clear (&result);
  vlm_session_free (session);
  vlm_model_unref (model);
  return ok;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  if (argc != 2 && argc != 3) {
    fprintf (stderr, "usage: answer TOKENS [MODEL]\n");
    return 2;
  }
  if (!answer (argc == 3 ? argv[2] : vlm_builtin_model (), atoi (argv[1]), &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  return 0;
}
