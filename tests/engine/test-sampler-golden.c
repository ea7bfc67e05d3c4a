/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The sampler's candidates and probabilities against the reference's logits processors. */

#include <math.h>

#include "engine/model/sampler.h"
#include "golden.h"

/* Of a probability; the reference works in float32 too. */
#define TOLERANCE 2e-6

/* What the sampler may leave out without a trace in single precision. */
#define UNSEEN 1e-15

static GArray *blob;
static json_t *root;

static const gfloat *
floats_of (json_t *description, gsize *n)
{
  *n = golden_int (description, "cols");
  return &g_array_index (blob, gfloat, golden_int (description, "offset"));
}

static gdouble
setting (json_t *entry, const gchar *key, gdouble off)
{
  json_t *value = json_object_get (entry, key);

  return value != NULL ? json_number_value (value) : off;
}

static void
accept_seen (VlmSampler *sampler, json_t *vector)
{
  json_t *seen = golden_array (vector, "seen");
  size_t i;

  for (i = 0; i < json_array_size (seen); i++) {
    gint32 id = json_integer_value (json_array_get (seen, i));

    vlm_sampler_accept (sampler, &id, 1);
  }
}

static void
check_entry (json_t *entry)
{
  json_t *vector =
      json_object_get (json_object_get (root, "vectors"), golden_string (entry, "vector"));
  json_t *kept = json_object_get (entry, "kept");
  VlmSampling sampling = { 0 };
  VlmSampler sampler;
  const gfloat *logits, *expected;
  gsize vocab, n_kept, i;
  g_autofree gdouble *found = NULL;
  guint n;

  logits = floats_of (json_object_get (vector, "logits"), &vocab);
  expected = floats_of (json_object_get (entry, "probabilities"), &n_kept);
  sampling.temperature = setting (entry, "temperature", 1);
  sampling.top_k = (gint) setting (entry, "top_k", 0);
  sampling.top_p = setting (entry, "top_p", 1);
  sampling.min_p = setting (entry, "min_p", 0);
  sampling.repetition_penalty = setting (entry, "repetition_penalty", 1);

  g_assert_true (vlm_sampler_init (&sampler, &sampling, vocab, 0, NULL));
  accept_seen (&sampler, vector);
  n = vlm_sampler_candidates (&sampler, logits);
  found = g_new0 (gdouble, vocab);
  for (i = 0; i < n; i++)
    found[sampler.order[i]] = sampler.scores[i];

  g_assert_cmpuint (n, <=, n_kept);
  for (i = 0; i < n_kept; i++) {
    gsize id = kept != NULL ? (gsize) json_integer_value (json_array_get (kept, i)) : i;

    if (found[id] == 0)
      g_assert_cmpfloat (expected[i], <, UNSEEN);
    else
      n--;
    g_assert_cmpfloat_with_epsilon (found[id], expected[i], TOLERANCE);
  }
  /* Every candidate of ours is one of the reference's. */
  g_assert_cmpuint (n, ==, 0);
  vlm_sampler_clear (&sampler);
}

static void
test_candidates (void)
{
  json_t *entries = golden_array (root, "entries");
  size_t i;

  g_assert_cmpuint (json_array_size (entries), >, 20);
  for (i = 0; i < json_array_size (entries); i++)
    check_entry (json_array_get (entries, i));
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  root = golden_json ("sampling.json");
  blob = golden_floats (golden_string (root, "blob"));
  g_test_add_func ("/sampler/golden", test_candidates);
  status = g_test_run ();
  g_array_unref (blob);
  json_decref (root);
  return status;
}
