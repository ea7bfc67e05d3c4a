/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What counts as a loop, where it is noticed, and what is kept of it. */

#include "engine/text/repetition.h"

/* Feeds letters one by one; the answer when a loop was noticed, cut, or NULL. *n_seen: how many. */
static gchar *
feed (const gchar *letters, gsize *n_seen)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  gsize i, n_kept;

  for (i = 0; letters[i] != '\0'; i++) {
    gint32 id = letters[i];

    g_array_append_val (ids, id);
    if (vlm_repetition_find ((const gint32 *) ids->data, ids->len, &n_kept)) {
      *n_seen = i + 1;
      return g_strndup (letters, n_kept);
    }
  }
  *n_seen = i;
  return NULL;
}

static void
check (const gchar *letters, gsize expected_seen, const gchar *expected_kept)
{
  gsize n_seen;
  g_autofree gchar *kept = feed (letters, &n_seen);

  g_assert_cmpstr (kept, ==, expected_kept);
  g_assert_cmpuint (n_seen, ==, expected_seen);
}

static void
test_loops (void)
{
  /* Three rounds of three or more, as soon as the third is complete. */
  check ("abcabcabcabcabc", 9, "abc");
  check ("xyabcabcabc", 11, "xyabc");
  check ("xyabcdabcdabcd", 14, "xyabcd");
  /* Short ones must come to eight tokens. */
  check ("xababababab", 9, "xab");
  check ("xaaaaaaaaaa", 9, "xa");
  /* The loop begins where repeating begins, whichever rotation of it that is. */
  check ("the cat, the cat, the cat, ", 27, "the cat, ");
}

static void
test_no_loops (void)
{
  check ("", 0, NULL);
  check ("abcabc", 6, NULL);
  check ("abcabcab", 8, NULL);
  check ("a loaf of bread and a loaf of cheese", 36, NULL);
  check ("3000000 hahaha", 14, NULL);
  /* Three equal words that do not follow each other. */
  check ("abcXabcYabcZabcW", 16, NULL);
}

/* The longest n-gram that is looked for, and one longer. */
static void
test_limits (void)
{
  guint period;

  for (period = VLM_REPETITION_LONGEST; period <= VLM_REPETITION_LONGEST + 1; period++) {
    g_autofree gint32 *ids = g_new (gint32, period * 3);
    gsize n_kept = 0;
    guint i;

    for (i = 0; i < period * 3; i++)
      ids[i] = i % period;
    g_assert_false (vlm_repetition_find (ids, period * 3 - 1, &n_kept));
    g_assert_cmpint (
        vlm_repetition_find (ids, period * 3, &n_kept), ==, period <= VLM_REPETITION_LONGEST);
    if (period <= VLM_REPETITION_LONGEST)
      g_assert_cmpuint (n_kept, ==, period);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/repetition/loops", test_loops);
  g_test_add_func ("/repetition/no-loops", test_no_loops);
  g_test_add_func ("/repetition/limits", test_limits);
  return g_test_run ();
}
