/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From captions to cues: what is joined, left out, and cut off. */

#include "cue-list.h"

#define MS G_GINT64_CONSTANT (1000000)

/* Lists are those of cue_list_new (); all times are in ms. */
static void
check (const gchar *list, gint64 min_length, gint64 max_length, const gchar *expected)
{
  g_autoptr (GPtrArray) captions = cue_list_new (list, MS);
  g_autoptr (GPtrArray) cues = NULL;
  g_autoptr (GString) found = g_string_new (NULL);

  cues = vlm_cues_new (captions, min_length * MS, max_length * MS);
  for (guint i = 0; i < cues->len; i++) {
    const VlmCaption *cue = g_ptr_array_index (cues, i);

    g_string_append_printf (found, "%s%" G_GINT64_FORMAT "-%" G_GINT64_FORMAT " %s",
        i > 0 ? "|" : "", cue->pts / MS, cue->end / MS, cue->text);
  }
  g_assert_cmpstr (found->str, ==, expected);
}

static void
test_equal (void)
{
  check ("0- a|1000- a|2000- b|3000-4000 b", 0, 0, "0-2000 a|2000-4000 b");
  check ("0- a|1000- b|2000-3000 a", 0, 0, "0-1000 a|1000-2000 b|2000-3000 a");
  /* Not over a gap. */
  check ("0-500 a|1000-2000 a", 0, 0, "0-500 a|1000-2000 a");
  /* An end beyond the next caption is only a guess. */
  check ("0-1500 a|1000-2000 b", 0, 0, "0-1000 a|1000-2000 b");
  check ("0- a|1000- A|2000-3000 a ", 0, 0, "0-1000 a|1000-2000 A|2000-3000 a ");
}

static void
test_ends (void)
{
  check ("0- a|1000- b", 0, 0, "0-1000 a|1000-3000 b");
  check ("0- a", 3000, 0, "0-3000 a");
  check ("500- a", 0, 1000, "500-1500 a");
  /* Two of one time, and one that ends where it starts. */
  check ("0- a|0- b|1000-1000 c", 0, 0, "0-1000 b");
}

static void
test_brief (void)
{
  /* Grows into a gap, but not beyond it. */
  check ("0-200 a|1500-3000 b", 1000, 0, "0-1000 a|1500-3000 b");
  check ("0-200 a|1000-3000 b", 1000, 0, "0-1000 a|1000-3000 b");
  /* One between longer ones is left out, and what it had interrupted is one cue. */
  check ("0- a|2000- b|2300-4000 c", 1000, 0, "0-2300 a|2300-4000 c");
  check ("0- a|2000- b|2300-4000 a", 1000, 0, "0-4000 a");
  check ("0- a|2000-2999 b", 1000, 0, "0-2999 a");
  check ("0- a|2000-3000 b", 1000, 0, "0-2000 a|2000-3000 b");
  /* Those that follow each other share a cue. */
  check ("0- a|2000- b|2400- c|2800- d|3200- e|3600-6000 f", 1000, 0,
      "0-2000 a|2000-3600 b|3600-6000 f");
  check ("0- a|2000- b|2600- c|3200- d|3400-6000 f", 1000, 0, "0-2000 a|2000-3400 b|3400-6000 f");
  /* At the start nothing can take its place. */
  check ("0- a|300-2000 b", 1000, 0, "300-2000 b");
  check ("0-200 a|500-2000 b", 1000, 0, "500-2000 b");
  /* The cue before has ended already. */
  check ("0-1000 a|1500- b|1800-3000 c", 1000, 0, "0-1000 a|1800-3000 c");
  check ("0-400 a", 1000, 0, "0-400 a");
}

static void
test_long (void)
{
  check ("0- a|9000-10000 b", 0, 7000, "0-7000 a|9000-10000 b");
  check ("0- a|4000- a|8000-9000 b", 500, 7000, "0-7000 a|8000-9000 b");
  check ("0- a|7000-9000 b", 0, 7000, "0-7000 a|7000-9000 b");
}

static void
test_inputs (void)
{
  g_autoptr (GPtrArray) captions =
      g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  g_autoptr (GPtrArray) cues = NULL;
  const VlmCaption *cue;
  VlmCaption *caption;

  cue_list_add (captions, "z", 0, -1, "same");
  caption = cue_list_add (captions, "a", 0, -1, "same");
  caption->thumbnail = g_memdup2 ("JPEG", 4);
  caption->thumbnail_size = 4;
  cue_list_add (captions, "z", 1000 * MS, 2000 * MS, "same");
  cue_list_add (captions, "a", 1500 * MS, 2000 * MS, "other");
  cue_list_add (captions, "picture", 0, 0, "same")->still = TRUE;
  cues = vlm_cues_new (captions, 200 * MS, 0);
  g_assert_cmpuint (cues->len, ==, 4);
  cue = g_ptr_array_index (cues, 0);
  g_assert_cmpstr (cue->input, ==, "z");
  g_assert_cmpint (cue->end, ==, 2000 * MS);
  cue = g_ptr_array_index (cues, 1);
  g_assert_cmpstr (cue->input, ==, "a");
  g_assert_cmpint (cue->end, ==, 1500 * MS);
  g_assert_cmpstr (cue->uri, ==, "file:///a");
  g_assert_cmpuint (cue->tokens, ==, 1);
  g_assert_cmpmem (cue->thumbnail, cue->thumbnail_size, "JPEG", 4);
  cue = g_ptr_array_index (cues, 3);
  g_assert_true (cue->still);
  g_assert_cmpint (cue->end, ==, 0);
}

static void
test_nothing (void)
{
  g_autoptr (GPtrArray) captions = g_ptr_array_new ();
  g_autoptr (GPtrArray) cues = vlm_cues_new (captions, 1, 1);

  g_assert_cmpuint (cues->len, ==, 0);
  vlm_caption_free (NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/caption/cue/equal", test_equal);
  g_test_add_func ("/caption/cue/ends", test_ends);
  g_test_add_func ("/caption/cue/brief", test_brief);
  g_test_add_func ("/caption/cue/long", test_long);
  g_test_add_func ("/caption/cue/inputs", test_inputs);
  g_test_add_func ("/caption/cue/nothing", test_nothing);
  return g_test_run ();
}
