/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a request leaves open is as the model says, and greedy where it says nothing. */

#include "engine/model/settings.h"

#include <math.h>

static const VlmGeneration silent = { -1, -1, { 0 }, 0, FALSE, NAN, NAN, NAN, NAN, -1 };
static const VlmGeneration full = { -1, -1, { 0 }, 0, TRUE, 0.1, 0.9, 0.15, 1.05, 50 };

static VlmSampling
resolve (const VlmGeneration *generation, const VlmRequest *request)
{
  VlmModel model = { 0 };
  VlmSettings settings;
  GError *error = NULL;

  model.generation = *generation;
  model.config.text.max_context = 1000;
  vlm_processor_init_defaults (&model.processor);
  g_assert_true (vlm_settings_resolve (&settings, &model, request, &error));
  g_assert_no_error (error);
  return settings.sampling;
}

static void
assert_sampling (const VlmSampling *found, const VlmSampling *expected)
{
  g_assert_cmpfloat (found->temperature, ==, expected->temperature);
  g_assert_cmpint (found->top_k, ==, expected->top_k);
  g_assert_cmpfloat (found->top_p, ==, expected->top_p);
  g_assert_cmpfloat (found->min_p, ==, expected->min_p);
  g_assert_cmpfloat (found->repetition_penalty, ==, expected->repetition_penalty);
}

static void
test_silent_model (void)
{
  static const VlmSampling greedy = { 0, 0, 1, 0, 1 }, warm = { 0.7, 0, 1, 0, 1 };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmSampling found = resolve (&silent, &request);

  assert_sampling (&found, &greedy);
  request.temperature = 0.7;
  found = resolve (&silent, &request);
  assert_sampling (&found, &warm);
}

static void
test_model_says (void)
{
  static const VlmSampling as_said = { 0.1, 50, 0.9, 0.15, 1.05 };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmSampling found = resolve (&full, &request);

  assert_sampling (&found, &as_said);
}

/* A request overrides one by one. */
static void
test_request_says (void)
{
  static const VlmSampling plain = { 0, 0, 1, 0, 1 }, mixed = { 0.1, 50, 0.9, 0, 1.05 };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmSampling found;

  request.min_p = 0;
  found = resolve (&full, &request);
  assert_sampling (&found, &mixed);
  request.temperature = 0;
  request.top_k = 0;
  request.top_p = 1;
  request.repetition_penalty = 1;
  found = resolve (&full, &request);
  assert_sampling (&found, &plain);
}

/* A temperature counts only where sampling is asked for, the rest always; asked for alone it is 1. */
static void
test_do_sample (void)
{
  static const VlmSampling greedy = { 0, 50, 0.9, 0.15, 1.05 }, one = { 1, 0, 1, 0, 1 };
  VlmGeneration generation = full;
  VlmRequest request = VLM_REQUEST_INIT;
  VlmSampling found;

  generation.do_sample = FALSE;
  found = resolve (&generation, &request);
  assert_sampling (&found, &greedy);
  generation = silent;
  generation.do_sample = TRUE;
  found = resolve (&generation, &request);
  assert_sampling (&found, &one);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/settings/silent-model", test_silent_model);
  g_test_add_func ("/settings/model-says", test_model_says);
  g_test_add_func ("/settings/request-says", test_request_says);
  g_test_add_func ("/settings/do-sample", test_do_sample);
  return g_test_run ();
}
