/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any captions into any output, for tests in Python:
 *
 *   write-cues srt|vtt|html OUT <CAPTIONS.json
 *   write-cues mkv|burn URI OUT <CAPTIONS.json
 *   write-cues clip URI START END OUT
 *
 * A caption is an object with the names of VlmCaption's members; what is left out is 0, unknown or "a".
 * "thumbnail" is in base64. With the environment variable WRITE_CUES_CANCEL everything is cancelled after
 * that many milliseconds.
 */

#include <gst/gst.h>
#include <jansson.h>
#include <string.h>

#include "tools/caption/remux.h"
#include "tools/caption/write.h"

static gchar *
get_string (const json_t *object, const gchar *name, const gchar *otherwise)
{
  const gchar *value = json_string_value (json_object_get (object, name));

  return g_strdup (value != NULL ? value : otherwise);
}

static gint64
get_number (const json_t *object, const gchar *name, gint64 otherwise)
{
  const json_t *value = json_object_get (object, name);

  return value != NULL ? json_integer_value (value) : otherwise;
}

static VlmCaption *
read_caption (const json_t *object)
{
  VlmCaption *caption = g_new0 (VlmCaption, 1);
  const gchar *thumbnail = json_string_value (json_object_get (object, "thumbnail"));

  caption->input = get_string (object, "input", "a");
  caption->uri = get_string (object, "uri", "file:///a");
  caption->pts = get_number (object, "pts", 0);
  caption->end = get_number (object, "end", -1);
  caption->utc = get_number (object, "utc", -1);
  caption->text = get_string (object, "text", "a");
  caption->tokens = get_number (object, "tokens", 0);
  caption->latency = json_number_value (json_object_get (object, "latency"));
  caption->finish_reason = get_string (object, "finish_reason", "stop");
  caption->model = get_string (object, "model", "model");
  caption->still = json_is_true (json_object_get (object, "still"));
  if (thumbnail != NULL)
    caption->thumbnail = g_base64_decode (thumbnail, &caption->thumbnail_size);
  return caption;
}

/* The captions of standard input. */
static GPtrArray *
read_captions (void)
{
  json_error_t error;
  json_t *list = json_loadf (stdin, 0, &error), *object;
  GPtrArray *captions;
  size_t i;

  if (!json_is_array (list)) {
    g_printerr ("write-cues: standard input: %s\n", list != NULL ? "no array" : error.text);
    exit (2);
  }
  captions = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  json_array_foreach (list, i, object) {
    g_ptr_array_add (captions, read_caption (object));
  }
  json_decref (list);
  return captions;
}

static gboolean
run (const gchar *kind, gchar **arguments, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) captions = NULL;

  if (strcmp (kind, "clip") == 0 && g_strv_length (arguments) == 4)
    return vlm_cut_clip (arguments[0], g_ascii_strtoll (arguments[1], NULL, 10),
        g_ascii_strtoll (arguments[2], NULL, 10), arguments[3], cancellable, error);
  captions = read_captions ();
  if (strcmp (kind, "srt") == 0)
    return vlm_write_srt (captions, arguments[0], error);
  if (strcmp (kind, "vtt") == 0)
    return vlm_write_vtt (captions, arguments[0], error);
  if (strcmp (kind, "html") == 0)
    return vlm_write_html (captions, arguments[0], error);
  if (strcmp (kind, "mkv") == 0 && arguments[1] != NULL)
    return vlm_mux_mkv (arguments[0], captions, arguments[1], cancellable, NULL, NULL, error);
  if (strcmp (kind, "burn") == 0 && arguments[1] != NULL)
    return vlm_burn (arguments[0], captions, arguments[1], cancellable, NULL, NULL, error);
  g_printerr ("write-cues: no output is called %s\n", kind);
  exit (2);
}

static gpointer
cancel_later (gpointer cancellable)
{
  g_usleep (g_ascii_strtoull (g_getenv ("WRITE_CUES_CANCEL"), NULL, 10) * 1000);
  g_cancellable_cancel (cancellable);
  return NULL;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  if (argc < 3) {
    g_printerr ("usage: write-cues KIND ARGUMENT...\n");
    return 2;
  }
  gst_init (NULL, NULL);
  if (g_getenv ("WRITE_CUES_CANCEL") != NULL)
    g_thread_unref (g_thread_new ("cancel", cancel_later, g_object_ref (cancellable)));
  if (run (argv[1], argv + 2, cancellable, &error))
    return 0;
  g_printerr ("write-cues: %s\n", error->message);
  return 1;
}
