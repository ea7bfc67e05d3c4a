/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* For how long nothing may move, with times that are made up. */

#include "tools/caption/patience.h"

#define STEP (100 * G_TIME_SPAN_MILLISECOND)

/* Looks every 100 ms, without anything that moves, until patience ends; returns how often. */
static guint
count_looks (VlmPatience *patience, gint64 *now)
{
  guint n = 0;

  while (vlm_patience_look (patience, FALSE, *now += STEP))
    n++;
  return n;
}

static void
test_standstill (void)
{
  VlmPatience patience;
  gint64 now = 7 * G_TIME_SPAN_HOUR;
  guint i;

  vlm_patience_begin (&patience, 3, now);
  g_assert_cmpuint (count_looks (&patience, &now), ==, 30);

  vlm_patience_begin (&patience, 3, now);
  for (i = 0; i < 100; i++)
    g_assert_true (vlm_patience_look (&patience, i % 30 == 29, now += STEP));
  /* The last thing moved ten looks ago. */
  g_assert_cmpuint (count_looks (&patience, &now), ==, 20);
}

/* A minute in which the process was stopped is as long as a second. */
static void
test_nobody_looked (void)
{
  VlmPatience patience;
  gint64 now = 0;

  vlm_patience_begin (&patience, 3, now);
  g_assert_true (vlm_patience_look (&patience, FALSE, now += G_TIME_SPAN_MINUTE));
  g_assert_true (vlm_patience_look (&patience, FALSE, now += G_TIME_SPAN_MINUTE));
  g_assert_cmpuint (count_looks (&patience, &now), ==, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/caption/patience/standstill", test_standstill);
  g_test_add_func ("/caption/patience/nobody-looked", test_nobody_looked);
  return g_test_run ();
}
