/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cue-list.h"

#include <string.h>

VlmCaption *
cue_list_add (GPtrArray *captions, const gchar *input, gint64 pts, gint64 end, const gchar *text)
{
  VlmCaption *caption = g_new0 (VlmCaption, 1);

  caption->input = g_strdup (input);
  caption->uri = g_strdup_printf ("file:///%s", input);
  caption->pts = pts;
  caption->end = end;
  caption->utc = -1;
  caption->text = g_strdup (text);
  caption->tokens = captions->len;
  caption->finish_reason = g_strdup ("stop");
  caption->model = g_strdup ("model");
  g_ptr_array_add (captions, caption);
  return caption;
}

GPtrArray *
cue_list_new (const gchar *list, gint64 unit)
{
  GPtrArray *captions = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  g_auto (GStrv) items = g_strsplit (list, "|", -1);

  for (guint i = 0; items[i] != NULL; i++) {
    gchar *rest;
    gint64 start = g_ascii_strtoll (items[i], &rest, 10);
    gint64 end = rest[1] == ' ' ? -1 : g_ascii_strtoll (rest + 1, NULL, 10) * unit;

    cue_list_add (captions, "a", start * unit, end, strchr (items[i], ' ') + 1);
  }
  return captions;
}
