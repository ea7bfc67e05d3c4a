/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "captionmeta.h"

void
gst_vlm_caption_meta_register (void)
{
  static gsize once = 0;

  if (g_once_init_enter (&once)) {
    /* 1.22 wants an empty array here, not NULL. */
    static const gchar *no_tags[] = { NULL };

    gst_meta_register_custom (GST_VLM_CAPTION_META_NAME, no_tags, NULL, NULL, NULL);
    g_once_init_leave (&once, 1);
  }
}

GstBuffer *
gst_vlm_caption_meta_attach (GstBuffer *buffer, const GstVlmAnswer *answer, const GstVlmTimes *now)
{
  GstCustomMeta *meta;

  buffer = gst_buffer_make_writable (buffer);
  meta = gst_buffer_add_custom_meta (buffer, GST_VLM_CAPTION_META_NAME);

  /* clang-format off */
  gst_structure_set (gst_custom_meta_get_structure (meta),
      "text", G_TYPE_STRING, answer->text,
      "id", G_TYPE_UINT64, answer->id,
      "pts", G_TYPE_UINT64, answer->times.pts,
      "utc-time", G_TYPE_UINT64, answer->times.utc_time,
      "stream-time", G_TYPE_UINT64, answer->times.stream_time,
      "running-time", G_TYPE_UINT64, answer->times.running_time,
      "age", G_TYPE_UINT64, gst_vlm_answer_age (answer, now),
      "latency", G_TYPE_UINT64, answer->latency,
      "prompt-tokens", G_TYPE_UINT, answer->n_prompt_tokens,
      "image-tokens", G_TYPE_UINT, answer->n_image_tokens,
      "tokens", G_TYPE_UINT, answer->n_tokens,
      "finish-reason", G_TYPE_STRING, vlm_finish_reason_name (answer->finish_reason), NULL);
  /* clang-format on */

  return buffer;
}
