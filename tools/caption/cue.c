/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cue.h"

#include <string.h>

#define SECOND G_GINT64_CONSTANT (1000000000)

/* How long the last cue stands when nobody knows where its input ends. */
#define UNKNOWN_LENGTH (2 * SECOND)

void
vlm_caption_free (VlmCaption *caption)
{
  if (caption == NULL)
    return;
  g_free (caption->input);
  g_free (caption->uri);
  g_free (caption->text);
  g_free (caption->finish_reason);
  g_free (caption->settings);
  g_free (caption->model);
  g_free (caption->thumbnail);
  g_free (caption);
}

static VlmCaption *
copy_caption (const VlmCaption *caption)
{
  VlmCaption *copy = g_new (VlmCaption, 1);

  *copy = *caption;
  copy->input = g_strdup (caption->input);
  copy->uri = g_strdup (caption->uri);
  copy->text = g_strdup (caption->text);
  copy->finish_reason = g_strdup (caption->finish_reason);
  copy->settings = g_strdup (caption->settings);
  copy->model = g_strdup (caption->model);
  copy->thumbnail = g_memdup2 (caption->thumbnail, caption->thumbnail_size);
  return copy;
}

/* A cue in the making: the caption that it is of, which is not owned, and its time. */
typedef struct
{
  const VlmCaption *caption;
  gint64 start, end;
} Span;

static Span *
last_span (GArray *spans)
{
  return spans->len > 0 ? &g_array_index (spans, Span, spans->len - 1) : NULL;
}

static gboolean
says_the_same (const Span *a, const Span *b)
{
  return strcmp (a->caption->text, b->caption->text) == 0;
}

/* Adds a span, or lets the last one grow if it says the same up to there. */
static void
add_span (GArray *spans, const Span *span)
{
  Span *last = last_span (spans);

  if (last != NULL && last->end == span->start && says_the_same (last, span))
    last->end = span->end;
  else
    g_array_append_val (spans, *span);
}

/* Where a caption ends, its input's next one, or NULL, being known. */
static gint64
caption_end (const VlmCaption *caption, const VlmCaption *next, gint64 min_length)
{
  if (next != NULL && (caption->end < 0 || caption->end > next->pts))
    return next->pts;
  if (caption->end < 0)
    return caption->pts + MAX (UNKNOWN_LENGTH, min_length);
  return caption->end;
}

/* The spans of one input's captions. */
static GArray *
join_equal (const GPtrArray *captions, gint64 min_length)
{
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (Span));

  for (guint i = 0; i < captions->len; i++) {
    const VlmCaption *caption = g_ptr_array_index (captions, i);
    const VlmCaption *next = i + 1 < captions->len ? g_ptr_array_index (captions, i + 1) : NULL;
    Span span = { caption, caption->pts, caption_end (caption, next, min_length) };

    /* Of two captions of the same time the later one stands. */
    if (span.end > span.start)
      add_span (spans, &span);
  }
  return spans;
}

/*
 * What is to become of a run of brief spans that ends at span `next` (NULL: at the end of the input)
 * and is still too short: it grows into the gap, or the cue before it takes its time.
 */
static void
settle_brief (GArray *spans, Span *brief, const Span *next, gint64 min_length)
{
  Span *before = last_span (spans);
  gint64 wanted = brief->start + min_length;

  if (next != NULL && next->start >= wanted) {
    brief->end = wanted;
    add_span (spans, brief);
  } else if (before != NULL && before->end == brief->start) {
    before->end = brief->end;
  }
}

/* The same spans, but none is shorter than min_length. */
static GArray *
drop_brief (const GArray *spans, gint64 min_length)
{
  GArray *kept = g_array_new (FALSE, FALSE, sizeof (Span));
  Span brief = { NULL, 0, 0 };

  for (guint i = 0; i < spans->len; i++) {
    const Span *span = &g_array_index (spans, Span, i);
    gboolean is_brief = span->end - span->start < min_length;

    if (brief.caption != NULL && !(is_brief && brief.end == span->start)) {
      settle_brief (kept, &brief, span, min_length);
      brief.caption = NULL;
    }
    if (!is_brief) {
      add_span (kept, span);
      continue;
    }
    if (brief.caption == NULL)
      brief = *span;
    brief.end = span->end;
    if (brief.end - brief.start >= min_length) {
      add_span (kept, &brief);
      brief.caption = NULL;
    }
  }
  if (brief.caption != NULL)
    settle_brief (kept, &brief, NULL, min_length);
  /* Better a short cue than none. */
  if (kept->len == 0 && spans->len > 0)
    g_array_append_val (kept, g_array_index (spans, Span, 0));
  return kept;
}

static void
add_cues (GPtrArray *cues, const GPtrArray *captions, gint64 min_length, gint64 max_length)
{
  const VlmCaption *first = g_ptr_array_index (captions, 0);
  g_autoptr (GArray) joined = NULL;
  g_autoptr (GArray) spans = NULL;

  if (first->still) {
    for (guint i = 0; i < captions->len; i++)
      g_ptr_array_add (cues, copy_caption (g_ptr_array_index (captions, i)));
    return;
  }
  joined = join_equal (captions, min_length);
  spans = drop_brief (joined, min_length);
  for (guint i = 0; i < spans->len; i++) {
    const Span *span = &g_array_index (spans, Span, i);
    VlmCaption *cue = copy_caption (span->caption);

    cue->end = max_length > 0 ? MIN (span->end, span->start + max_length) : span->end;
    g_ptr_array_add (cues, cue);
  }
}

/* One array of captions, not owned, for each input. */
static GPtrArray *
group_by_input (const GPtrArray *captions)
{
  GPtrArray *groups = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  g_autoptr (GHashTable) by_input = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < captions->len; i++) {
    VlmCaption *caption = g_ptr_array_index (captions, i);
    GPtrArray *group = g_hash_table_lookup (by_input, caption->input);

    if (group == NULL) {
      group = g_ptr_array_new ();
      g_ptr_array_add (groups, group);
      g_hash_table_insert (by_input, caption->input, group);
    }
    g_ptr_array_add (group, caption);
  }
  return groups;
}

GPtrArray *
vlm_cues_new (const GPtrArray *captions, gint64 min_length, gint64 max_length)
{
  GPtrArray *cues = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  g_autoptr (GPtrArray) groups = group_by_input (captions);

  for (guint i = 0; i < groups->len; i++)
    add_cues (cues, g_ptr_array_index (groups, i), min_length, max_length);
  return cues;
}
