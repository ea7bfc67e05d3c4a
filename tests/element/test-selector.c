/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which frames are selected, for good and for bad timestamps. */

#include "gst-plugin/selector.h"

#define NONE GST_CLOCK_TIME_NONE
#define MS GST_MSECOND

/* Feeds n frames of constant rate and writes the numbers of the selected ones as "0 10 20". */
static gchar *
select_regular (guint n, guint fps_n, guint fps_d, GstClockTime interval)
{
  GstVlmSelector selector;
  GString *selected = g_string_new (NULL);
  guint i;

  gst_vlm_selector_reset (&selector);
  for (i = 0; i < n; i++) {
    GstClockTime pts = gst_util_uint64_scale (i, GST_SECOND * fps_d, fps_n);

    if (gst_vlm_selector_select (&selector, pts, NONE, 0, interval))
      g_string_append_printf (selected, "%s%u", selected->len > 0 ? " " : "", i);
  }
  return g_string_free (selected, FALSE);
}

static void
test_regular (void)
{
  g_autofree gchar *second = select_regular (91, 30, 1, GST_SECOND);
  g_autofree gchar *ntsc = select_regular (91, 30000, 1001, GST_SECOND);
  g_autofree gchar *all = select_regular (5, 30, 1, 0);
  g_autofree gchar *slow = select_regular (4, 1, 3, GST_SECOND);

  g_assert_cmpstr (second, ==, "0 30 60 90");
  g_assert_cmpstr (ntsc, ==, "0 30 60 90");
  g_assert_cmpstr (all, ==, "0 1 2 3 4");
  g_assert_cmpstr (slow, ==, "0 1 2 3");
}

/* The mean rate is the interval's also where it is no multiple of the frame duration. */
static void
test_grid (void)
{
  g_autofree gchar *selected = select_regular (11, 10, 1, 250 * MS);

  g_assert_cmpstr (selected, ==, "0 3 5 8 10");
}

typedef struct
{
  GstClockTime pts, duration, clock;
  gboolean expected;
} Step;

static void
check_steps (const Step *steps, guint n_steps, GstClockTime interval)
{
  GstVlmSelector selector;
  guint i;

  gst_vlm_selector_reset (&selector);
  for (i = 0; i < n_steps; i++) {
    gboolean selected = gst_vlm_selector_select (
        &selector, steps[i].pts, steps[i].duration, steps[i].clock, interval);

    if (selected != steps[i].expected)
      g_error ("step %u: selected %d", i, selected);
  }
}

#define CHECK(steps, interval) check_steps (steps, G_N_ELEMENTS (steps), interval)

/* No timestamps: durations count on. */
static void
test_missing_counter (void)
{
  static const Step steps[] = { { NONE, 400 * MS, 0, TRUE }, { NONE, 400 * MS, 0, FALSE },
    { NONE, 400 * MS, 0, FALSE }, { NONE, 400 * MS, 0, TRUE }, { NONE, 400 * MS, 0, FALSE },
    { NONE, 400 * MS, 0, TRUE } };

  CHECK (steps, GST_SECOND);
}

/* Neither timestamps nor durations: the clock counts on. */
static void
test_missing_clock (void)
{
  static const Step steps[] = { { NONE, NONE, 5000 * MS, TRUE }, { NONE, NONE, 5900 * MS, FALSE },
    { NONE, NONE, 6000 * MS, TRUE }, { NONE, NONE, 6500 * MS, FALSE },
    { NONE, NONE, 7100 * MS, TRUE } };

  CHECK (steps, GST_SECOND);
}

/* A source that stamps every frame 0 is still described once an interval. */
static void
test_repeated (void)
{
  static const Step steps[] = { { 0, 500 * MS, 0, TRUE }, { 0, 500 * MS, 0, FALSE },
    { 0, 500 * MS, 0, TRUE }, { 0, 500 * MS, 0, FALSE }, { 0, 500 * MS, 0, TRUE } };

  CHECK (steps, GST_SECOND);
}

static void
test_jumps (void)
{
  static const Step forward[] = { { 0, 40 * MS, 0, TRUE }, { 40 * MS, 40 * MS, 0, FALSE },
    { 3600 * GST_SECOND, 40 * MS, 0, TRUE }, { 3600 * GST_SECOND + 900 * MS, 40 * MS, 0, FALSE },
    { 3601 * GST_SECOND, 40 * MS, 0, TRUE } };
  static const Step backward[] = { { 100 * GST_SECOND, 40 * MS, 0, TRUE },
    { 100 * GST_SECOND + 40 * MS, 40 * MS, 0, FALSE }, { 5 * GST_SECOND, 40 * MS, 0, TRUE },
    { 5 * GST_SECOND + 900 * MS, 40 * MS, 0, FALSE }, { 6 * GST_SECOND, 40 * MS, 0, TRUE } };
  /* Frames that are out of order by less than an interval are no jump. */
  static const Step jitter[] = { { 0, 40 * MS, 0, TRUE }, { 1000 * MS, 40 * MS, 0, TRUE },
    { 960 * MS, 40 * MS, 0, FALSE }, { 1040 * MS, 40 * MS, 0, FALSE },
    { 2000 * MS, 40 * MS, 0, TRUE } };
  /* Playing backwards keeps the interval, too. */
  static const Step reverse[] = { { 3000 * MS, 500 * MS, 0, TRUE },
    { 2500 * MS, 500 * MS, 0, FALSE }, { 2000 * MS, 500 * MS, 0, TRUE },
    { 1500 * MS, 500 * MS, 0, FALSE }, { 1000 * MS, 500 * MS, 0, TRUE } };

  CHECK (forward, GST_SECOND);
  CHECK (backward, GST_SECOND);
  CHECK (jitter, GST_SECOND);
  CHECK (reverse, GST_SECOND);
}

/* A shorter interval applies at once, a longer one after the selection that was due already. */
static void
test_interval_changes (void)
{
  GstVlmSelector selector;

  gst_vlm_selector_reset (&selector);
  g_assert_true (gst_vlm_selector_select (&selector, 0, NONE, 0, 10 * GST_SECOND));
  g_assert_false (gst_vlm_selector_select (&selector, 500 * MS, NONE, 0, 10 * GST_SECOND));
  g_assert_true (gst_vlm_selector_select (&selector, 1000 * MS, NONE, 0, GST_SECOND));
  g_assert_cmpuint (gst_vlm_selector_get_due (&selector), ==, 2 * GST_SECOND);
  g_assert_true (gst_vlm_selector_select (&selector, 2000 * MS, NONE, 0, 5 * GST_SECOND));
  g_assert_false (gst_vlm_selector_select (&selector, 6900 * MS, NONE, 0, 5 * GST_SECOND));
  g_assert_true (gst_vlm_selector_select (&selector, 7000 * MS, NONE, 0, 5 * GST_SECOND));
}

/* Without an interval nothing is selected, and the first frame after that counts as the first. */
static void
test_never (void)
{
  GstVlmSelector selector;

  gst_vlm_selector_reset (&selector);
  g_assert_false (gst_vlm_selector_select (&selector, 0, NONE, 0, NONE));
  g_assert_false (gst_vlm_selector_select (&selector, 3600 * GST_SECOND, NONE, 0, NONE));
  g_assert_true (gst_vlm_selector_select (&selector, 3601 * GST_SECOND, NONE, 0, GST_SECOND));
  g_assert_false (gst_vlm_selector_select (&selector, 9000 * GST_SECOND, NONE, 0, NONE));
  g_assert_false (gst_vlm_selector_select (&selector, 100 * GST_SECOND, NONE, 0, NONE));
  g_assert_true (gst_vlm_selector_select (&selector, 101 * GST_SECOND, NONE, 0, GST_SECOND));
}

/* Times near the end of the range do not wrap. */
static void
test_extremes (void)
{
  static const Step steps[] = { { 0, 1, 0, TRUE }, { 1000 * GST_SECOND, 1, 0, FALSE },
    { G_MAXUINT64 - 2, 1, 0, FALSE }, { G_MAXUINT64 - 2, G_MAXUINT64 - 3, 0, TRUE } };

  CHECK (steps, G_MAXUINT64 - 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/selector/regular", test_regular);
  g_test_add_func ("/selector/grid", test_grid);
  g_test_add_func ("/selector/missing/counter", test_missing_counter);
  g_test_add_func ("/selector/missing/clock", test_missing_clock);
  g_test_add_func ("/selector/repeated", test_repeated);
  g_test_add_func ("/selector/jumps", test_jumps);
  g_test_add_func ("/selector/interval-changes", test_interval_changes);
  g_test_add_func ("/selector/never", test_never);
  g_test_add_func ("/selector/extremes", test_extremes);

  return g_test_run ();
}
