/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>
#include <jansson.h>

struct _VlmJsonl
{
  gchar *path;
  int fd;
};

static gboolean
fail (const VlmJsonl *jsonl, GError **error)
{
  gint code = errno;
  gboolean standard = strcmp (jsonl->path, "-") == 0;

  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s",
      standard ? "standard output" : jsonl->path, g_strerror (code));
  return FALSE;
}

gchar *
vlm_utc_to_text (gint64 utc)
{
  g_autoptr (GDateTime) seconds = g_date_time_new_from_unix_utc (utc / G_USEC_PER_SEC);
  g_autofree gchar *text =
      seconds != NULL ? g_date_time_format (seconds, "%Y-%m-%dT%H:%M:%S") : g_strdup ("");

  return g_strdup_printf ("%s.%06dZ", text, (gint) (utc % G_USEC_PER_SEC));
}

/* ---- Reading ------------------------------------------------------------------------------- */

static gint64
read_utc (const json_t *value)
{
  g_autoptr (GTimeZone) zone = g_time_zone_new_utc ();
  g_autoptr (GDateTime) time = json_is_string (value)
      ? g_date_time_new_from_iso8601 (json_string_value (value), zone)
      : NULL;

  if (time == NULL)
    return -1;
  return g_date_time_to_unix (time) * G_USEC_PER_SEC + g_date_time_get_microsecond (time);
}

/* (transfer full) the options as settings.h has them, or NULL. */
static gchar *
read_settings (const json_t *options)
{
  char *text =
      json_is_object (options) ? json_dumps (options, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  gchar *settings = g_strdup (text);

  free (text);
  return settings;
}

/* (transfer full) NULL: the object is no caption. */
static VlmCaption *
read_caption (const json_t *object)
{
  const json_t *pts = json_object_get (object, "pts");
  const gchar *file = json_string_value (json_object_get (object, "file"));
  const gchar *uri = json_string_value (json_object_get (object, "uri"));
  const gchar *text = json_string_value (json_object_get (object, "text"));
  const gchar *thumbnail = json_string_value (json_object_get (object, "thumbnail"));
  gdouble seconds = json_number_value (pts);
  VlmCaption *caption;

  if (file == NULL || uri == NULL || text == NULL || !json_is_number (pts)
      || !(seconds >= 0 && seconds < 9e9))
    return NULL;
  caption = g_new0 (VlmCaption, 1);
  caption->input = g_strdup (file);
  caption->uri = g_strdup (uri);
  caption->text = g_strdup (text);
  caption->pts = llround (seconds * 1e9);
  caption->utc = read_utc (json_object_get (object, "utc"));
  caption->tokens =
      (guint) CLAMP (json_integer_value (json_object_get (object, "tokens")), 0, G_MAXINT);
  caption->latency = json_number_value (json_object_get (object, "latency"));
  caption->finish_reason = g_strdup (json_string_value (json_object_get (object, "finish-reason")));
  caption->model = g_strdup (json_string_value (json_object_get (object, "model")));
  caption->settings = read_settings (json_object_get (object, "options"));
  caption->still = json_is_true (json_object_get (object, "still"));
  caption->end = caption->still ? 0 : -1;
  if (thumbnail != NULL)
    caption->thumbnail = g_base64_decode (thumbnail, &caption->thumbnail_size);
  return caption;
}

gboolean
vlm_jsonl_load (VlmJsonl *jsonl, GPtrArray *captions, GError **error)
{
  g_autofree gchar *contents = NULL;
  gchar *line, *end;
  guint number = 0;
  gsize length;

  if (!g_file_get_contents (jsonl->path, &contents, &length, error))
    return FALSE;
  for (line = contents; (end = memchr (line, '\n', length - (gsize) (line - contents))) != NULL;
       line = end + 1) {
    json_t *object = json_loadb (line, (size_t) (end - line), 0, NULL);
    VlmCaption *caption = object != NULL ? read_caption (object) : NULL;

    json_decref (object);
    number++;
    if (caption == NULL) {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
          "%s: line %u is no caption that vlm-caption wrote", jsonl->path, number);
      return FALSE;
    }
    g_ptr_array_add (captions, caption);
  }
  return TRUE;
}

/* ---- Writing ------------------------------------------------------------------------------- */

/* Cuts off what follows the last end of a line. */
static gboolean
cut_torn_line (VlmJsonl *jsonl, GError **error)
{
  off_t end = lseek (jsonl->fd, 0, SEEK_END), size = end;
  gchar block[4096];

  while (end > 0) {
    off_t start = MAX (end - (off_t) sizeof (block), 0);
    gsize n = (gsize) (end - start);

    if (pread (jsonl->fd, block, n, start) != (ssize_t) n)
      return fail (jsonl, error);
    while (n > 0 && block[n - 1] != '\n')
      n--;
    end = start + (off_t) n;
    if (n > 0)
      break;
  }
  if (end < 0 || (end < size && ftruncate (jsonl->fd, end) != 0))
    return fail (jsonl, error);
  return TRUE;
}

VlmJsonl *
vlm_jsonl_open (const gchar *path, GError **error)
{
  VlmJsonl *jsonl = g_new0 (VlmJsonl, 1);

  jsonl->path = g_strdup (path);
  if (strcmp (path, "-") == 0) {
    jsonl->fd = 1;
    return jsonl;
  }
  jsonl->fd = g_open (path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (jsonl->fd >= 0 ? cut_torn_line (jsonl, error) : fail (jsonl, error))
    return jsonl;
  vlm_jsonl_close (jsonl, NULL);
  return NULL;
}

/* (transfer full) */
static json_t *
write_caption (const VlmCaption *caption, gboolean with_thumbnail)
{
  g_autofree gchar *utc = caption->utc >= 0 ? vlm_utc_to_text (caption->utc) : NULL;
  g_autofree gchar *thumbnail = with_thumbnail && caption->thumbnail != NULL
      ? g_base64_encode (caption->thumbnail, caption->thumbnail_size)
      : NULL;
  json_t *object = json_pack ("{s:s, s:s, s:f, s:s?, s:s, s:i, s:f, s:s?, s:s?, s:b}", "file",
      caption->input, "uri", caption->uri, "pts", caption->pts / 1e9, "utc", utc, "text",
      caption->text, "tokens", (int) caption->tokens, "latency", caption->latency, "finish-reason",
      caption->finish_reason, "model", caption->model, "still", caption->still);

  if (caption->settings != NULL)
    json_object_set_new (object, "options", json_loads (caption->settings, 0, NULL));
  if (thumbnail != NULL)
    json_object_set_new (object, "thumbnail", json_string (thumbnail));
  return object;
}

gboolean
vlm_jsonl_add (VlmJsonl *jsonl, const VlmCaption *caption, gboolean thumbnail, GError **error)
{
  json_t *object = write_caption (caption, thumbnail);
  /* 15 digits are exact to the nanosecond for eleven days. */
  char *text = object != NULL ? json_dumps (object, JSON_REAL_PRECISION (15)) : NULL;
  g_autofree gchar *line = NULL;
  const gchar *rest;
  gsize left;

  json_decref (object);
  if (text == NULL) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: a caption of %s is no valid text",
        jsonl->path, caption->input);
    return FALSE;
  }
  line = g_strconcat (text, "\n", NULL);
  free (text);
  for (rest = line, left = strlen (line); left > 0;) {
    gssize n = write (jsonl->fd, rest, left);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail (jsonl, error);
    rest += n;
    left -= (gsize) n;
  }
  return TRUE;
}

gboolean
vlm_jsonl_close (VlmJsonl *jsonl, GError **error)
{
  gboolean done = TRUE;

  if (jsonl->fd > 2 && close (jsonl->fd) != 0)
    done = fail (jsonl, error);
  g_free (jsonl->path);
  g_free (jsonl);
  return done;
}
