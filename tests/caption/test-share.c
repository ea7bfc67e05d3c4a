/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much of all inputs is done. */

#include "tools/caption/share.h"

#define SECOND G_GINT64_CONSTANT (1000000000)

static void
check (const VlmShare *shares, guint n, gdouble expected)
{
  g_assert_cmpfloat_with_epsilon (vlm_shares_get_done (shares, n), expected, 1e-9);
}

static void
test_durations (void)
{
  /* 6 of 10 and 45 of 90 seconds. */
  const VlmShare shares[] = { { TRUE, FALSE, 10 * SECOND, 7, 0.6 },
    { TRUE, FALSE, 90 * SECOND, 1, 0.5 } };

  check (shares, 2, 0.51);
}

/* A video that has not been opened: ten times as large, ten times as long. */
static void
test_sizes (void)
{
  const VlmShare shares[] = { { TRUE, FALSE, 10 * SECOND, 1000, 1 },
    { TRUE, FALSE, 30 * SECOND, 3000, 0.5 }, { TRUE, FALSE, -1, 10000, 0 } };

  check (shares, 3, 25.0 / 140);
}

/* One without a size, such as an address on the net, is like the others. */
static void
test_means (void)
{
  const VlmShare shares[] = { { TRUE, FALSE, 10 * SECOND, 1000, 1 },
    { TRUE, FALSE, 30 * SECOND, 0, 0 }, { TRUE, FALSE, -1, 0, 0 } };

  check (shares, 3, 10.0 / 60);
}

/* Before anything is known all are alike; then a picture counts as much as it is said to. */
static void
test_unknown (void)
{
  VlmShare shares[] = { { TRUE, FALSE, -1, 5, 1 }, { TRUE, FALSE, -1, 500, 0 },
    { TRUE, TRUE, 2 * SECOND, 5, 1 } };

  check (shares, 2, 0.5);
  shares[0].duration = 8 * SECOND;
  shares[1].size = 0;
  check (shares, 3, 10.0 / 18);
}

/* What a former run did is no part of this one. */
static void
test_unwanted (void)
{
  const VlmShare shares[] = { { FALSE, FALSE, 50 * SECOND, 0, 1 },
    { TRUE, FALSE, 10 * SECOND, 0, 0.1 } };

  check (shares, 2, 0.1);
  check (shares, 1, 0);
  check (NULL, 0, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/caption/share/durations", test_durations);
  g_test_add_func ("/caption/share/sizes", test_sizes);
  g_test_add_func ("/caption/share/means", test_means);
  g_test_add_func ("/caption/share/unknown", test_unknown);
  g_test_add_func ("/caption/share/unwanted", test_unwanted);
  return g_test_run ();
}
