/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sampler against hand-computed cases. */

#include <math.h>

#include "engine/model/sampler.h"

static const VlmSampling greedy = { 0, 0, 1, 0, 1 };

static void
init (VlmSampler *sampler, const VlmSampling *sampling, guint vocab_size, guint64 seed)
{
  GError *error = NULL;

  g_assert_true (vlm_sampler_init (sampler, sampling, vocab_size, seed, &error));
  g_assert_no_error (error);
}

static void
test_greedy_takes_the_lowest_of_equals (void)
{
  const gfloat logits[] = { -1, 3, 2, 3 };
  VlmSampler sampler;

  init (&sampler, &greedy, 4, 0);
  g_assert_cmpint (vlm_sampler_pick (&sampler, logits), ==, 1);
  vlm_sampler_clear (&sampler);
}

/* A penalty lowers seen tokens whatever the sign of their logit. */
static void
test_penalty (void)
{
  VlmSampling sampling = { 1, 0, 1, 0, 2 };
  const gfloat logits[] = { 2, -2, 1.5f };
  const gint32 seen[] = { 0, 1, 99, -5 };
  VlmSampler sampler;
  gdouble sum;

  init (&sampler, &sampling, 3, 0);
  vlm_sampler_accept (&sampler, seen, G_N_ELEMENTS (seen));
  g_assert_cmpuint (vlm_sampler_candidates (&sampler, logits), ==, 3);
  sum = exp (1) + exp (-4) + exp (1.5);
  g_assert_cmpint (sampler.order[0], ==, 2);
  g_assert_cmpint (sampler.order[1], ==, 0);
  g_assert_cmpint (sampler.order[2], ==, 1);
  g_assert_cmpfloat_with_epsilon (sampler.scores[0], exp (1.5) / sum, 1e-6);
  g_assert_cmpfloat_with_epsilon (sampler.scores[1], exp (1) / sum, 1e-6);
  g_assert_cmpfloat_with_epsilon (sampler.scores[2], exp (-4) / sum, 1e-6);
  vlm_sampler_clear (&sampler);

  sampling.temperature = 0;
  init (&sampler, &sampling, 3, 0);
  vlm_sampler_accept (&sampler, seen, G_N_ELEMENTS (seen));
  g_assert_cmpint (vlm_sampler_pick (&sampler, logits), ==, 2);
  vlm_sampler_clear (&sampler);
}

/* Below one, what was seen is preferred: 2 and -2 become 4 and -1, ahead of 3 and -1.5. */
static void
test_a_penalty_below_one_raises (void)
{
  const VlmSampling sampling = { 0, 0, 1, 0, 0.5 };
  const gfloat positive[] = { 3, 2 }, negative[] = { -1.5f, -2 };
  const gint32 seen[] = { 1 };
  VlmSampler sampler;

  init (&sampler, &sampling, 2, 0);
  vlm_sampler_accept (&sampler, seen, G_N_ELEMENTS (seen));
  g_assert_cmpint (vlm_sampler_pick (&sampler, positive), ==, 1);
  g_assert_cmpint (vlm_sampler_pick (&sampler, negative), ==, 1);
  vlm_sampler_clear (&sampler);
}

/* Probabilities 0.5, 0.25, 0.125, 0.125. */
static const gfloat halves[] = { 3 * G_LN2, 2 * G_LN2, G_LN2, G_LN2 };

static guint
count_candidates (gint top_k, gdouble top_p, gdouble min_p)
{
  VlmSampling sampling = { 1, top_k, top_p, min_p, 1 };
  VlmSampler sampler;
  gdouble sum = 0;
  guint i, n;

  init (&sampler, &sampling, 4, 0);
  n = vlm_sampler_candidates (&sampler, halves);
  for (i = 0; i < n; i++)
    sum += sampler.scores[i];
  g_assert_cmpfloat_with_epsilon (sum, 1, 1e-6);
  vlm_sampler_clear (&sampler);
  return n;
}

static void
test_cuts (void)
{
  g_assert_cmpuint (count_candidates (0, 1, 0), ==, 4);
  g_assert_cmpuint (count_candidates (2, 1, 0), ==, 2);
  g_assert_cmpuint (count_candidates (9, 1, 0), ==, 4);
  g_assert_cmpuint (count_candidates (3, 1, 0), ==, 4); /* the fourth equals the third */
  g_assert_cmpuint (count_candidates (0, 0.4, 0), ==, 1);
  g_assert_cmpuint (count_candidates (0, 0.7, 0), ==, 2);
  g_assert_cmpuint (count_candidates (0, 0, 0), ==, 1);
  g_assert_cmpuint (count_candidates (0, 1, 0.4), ==, 2);
  g_assert_cmpuint (count_candidates (0, 1, 1), ==, 1);
  /* top-k renormalises before top-p looks: 2/3, 1/3. */
  g_assert_cmpuint (count_candidates (2, 0.6, 0), ==, 1);
}

static void
test_draws_follow_the_probabilities_and_the_seed (void)
{
  VlmSampling sampling = { 1, 0, 1, 0, 1 };
  VlmSampler a, b;
  guint counts[4] = { 0 };
  guint i;

  init (&a, &sampling, 4, 7);
  init (&b, &sampling, 4, 7);
  for (i = 0; i < 8000; i++) {
    gint32 id = vlm_sampler_pick (&a, halves);

    g_assert_cmpint (id, ==, vlm_sampler_pick (&b, halves));
    counts[id]++;
  }
  /* Five standard deviations of a binomial count around each expectation. */
  g_assert_cmpfloat (fabs (counts[0] - 4000.0), <, 5 * sqrt (2000));
  g_assert_cmpfloat (fabs (counts[1] - 2000.0), <, 5 * sqrt (1500));
  g_assert_cmpfloat (fabs (counts[2] - 1000.0), <, 5 * sqrt (875));
  g_assert_cmpfloat (fabs (counts[3] - 1000.0), <, 5 * sqrt (875));
  vlm_sampler_clear (&a);
  vlm_sampler_clear (&b);

  init (&a, &sampling, 4, 7);
  init (&b, &sampling, 4, 8);
  for (i = 0; i < 100; i++) {
    if (vlm_sampler_pick (&a, halves) != vlm_sampler_pick (&b, halves))
      break;
  }
  g_assert_cmpuint (i, <, 100);
  vlm_sampler_clear (&a);
  vlm_sampler_clear (&b);
}

/* However small, a temperature sharpens towards the greedy choice. */
static void
test_tiny_temperatures (void)
{
  static const gdouble temperatures[] = { 1e-3, 1e-6, 1e-38, 1e-300, 5e-324 };
  const gfloat logits[] = { 8, 3, 9, 2, -1 };
  guint i, draw;

  for (i = 0; i < G_N_ELEMENTS (temperatures); i++) {
    VlmSampling sampling = { temperatures[i], 0, 1, 0, 1 };
    VlmSampler sampler;

    init (&sampler, &sampling, 5, 3);
    for (draw = 0; draw < 20; draw++)
      g_assert_cmpint (vlm_sampler_pick (&sampler, logits), ==, 2);
    vlm_sampler_clear (&sampler);
  }
}

static void
test_nan_among_numbers (void)
{
  const gfloat last[] = { 1, 9, 2, 3, NAN };
  const gfloat first[] = { NAN, 9, 2, 3, 1 };
  const gfloat infinite[] = { 1, INFINITY, 2, 3, 1 };
  VlmSampling sampling = { 0.1, 0, 1, 0, 1 };
  VlmSampler sampler;

  init (&sampler, &sampling, 5, 0);
  g_assert_cmpint (vlm_sampler_pick (&sampler, last), ==, 1);
  g_assert_cmpint (vlm_sampler_pick (&sampler, first), ==, 1);
  g_assert_cmpint (vlm_sampler_pick (&sampler, infinite), ==, 1);
  vlm_sampler_clear (&sampler);
}

static void
test_nan_logits_do_not_crash (void)
{
  const gfloat logits[] = { NAN, NAN };
  VlmSampling sampling = { 1, 0, 1, 0, 1 };
  VlmSampler sampler;

  init (&sampler, &sampling, 2, 0);
  g_assert_cmpint (vlm_sampler_pick (&sampler, logits), ==, 0);
  vlm_sampler_clear (&sampler);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sampler/greedy", test_greedy_takes_the_lowest_of_equals);
  g_test_add_func ("/sampler/penalty", test_penalty);
  g_test_add_func ("/sampler/penalty-below-one", test_a_penalty_below_one_raises);
  g_test_add_func ("/sampler/cuts", test_cuts);
  g_test_add_func ("/sampler/draws", test_draws_follow_the_probabilities_and_the_seed);
  g_test_add_func ("/sampler/tiny-temperatures", test_tiny_temperatures);
  g_test_add_func ("/sampler/nan-among-numbers", test_nan_among_numbers);
  g_test_add_func ("/sampler/nan", test_nan_logits_do_not_crash);
  return g_test_run ();
}
