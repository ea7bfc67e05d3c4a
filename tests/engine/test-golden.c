/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Every stage of the engine against the reference implementation, on small random checkpoints:
 * test-golden CASES. Each case runs with 1, 2 and 3 threads, on the CPU level that VLM_CPU names.
 * Where the cases name types of weights, the checkpoint is converted to them first, and the
 * reference has computed with the values that the converted weights stand for.
 */

#include <string.h>

#include "engine/vlm.h"
#include "golden.h"
#include "test-image-draw.h"

#define TOLERANCE 1e-4

static VlmModel *model;
static GArray *blob;

/* What the engine showed while it answered. */
typedef struct
{
  json_t *golden;
  guint n_crops;
  gsize tokens_before; /* image tokens of the crops before this one */
  gdouble worst_tower, worst_projector, worst_logits;
  gboolean saw_ids, saw_logits, saw_output;
} Seen;

static json_t *
crop_case (Seen *seen, guint index)
{
  json_t *crop = json_array_get (golden_array (seen->golden, "crops"), index);

  g_assert_nonnull (crop);
  return crop;
}

static void
check_hash (json_t *object, const gchar *key, gconstpointer data, gsize size)
{
  g_autofree gchar *hash = test_image_hash (data, size);

  g_assert_cmpstr (hash, ==, golden_string (object, key));
}

static void
check_ids (json_t *object, const gchar *key, const gint32 *ids, gsize n)
{
  json_t *expected = golden_array (object, key);
  gsize i;

  for (i = 0; i < MIN (n, json_array_size (expected)); i++)
    g_assert_cmpint (ids[i], ==, json_integer_value (json_array_get (expected, i)));
  g_assert_cmpuint (n, ==, json_array_size (expected));
}

static void
check_image_embeds (Seen *seen, const gsize *shape, const gfloat *data)
{
  json_t *crops = golden_array (seen->golden, "crops");
  gsize first = 0;
  gsize i;

  for (i = 0; i < json_array_size (crops); i++) {
    json_t *rows = json_object_get (json_array_get (crops, i), "projector");
    gsize n = golden_int (rows, "of");

    g_assert_cmpuint (first + n, <=, shape[0]);
    seen->worst_projector = MAX (seen->worst_projector,
        golden_compare_rows (
            rows, blob, data + first * shape[1], n, shape[1], TOLERANCE, "projector"));
    first += n;
  }
  g_assert_cmpuint (first, ==, shape[0]);
}

static void
on_array (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  Seen *seen = user_data;

  if (strcmp (name, "crop") == 0) {
    json_t *crop = crop_case (seen, index);

    g_assert_cmpuint (index, ==, seen->n_crops++);
    g_assert_cmpuint (shape[0], ==, golden_int (crop, "h"));
    g_assert_cmpuint (shape[1], ==, golden_int (crop, "w"));
    check_hash (crop, "crop_fnv", data, shape[0] * shape[1] * 3);
  } else if (strcmp (name, "patches") == 0) {
    json_t *crop = crop_case (seen, index);

    g_assert_cmpuint (
        shape[0], ==, golden_int (crop, "patches_h") * golden_int (crop, "patches_w"));
    check_hash (crop, "pixels_fnv", data, shape[0] * shape[1] * sizeof (gfloat));
    golden_compare_rows (
        json_object_get (crop, "pixels"), blob, data, shape[0], shape[1], 0, "pixels");
  } else if (strcmp (name, "tower") == 0) {
    seen->worst_tower = MAX (seen->worst_tower,
        golden_compare_rows (json_object_get (crop_case (seen, index), "tower"), blob, data,
            shape[0], shape[1], TOLERANCE, "tower"));
  } else if (strcmp (name, "image_embeds") == 0) {
    check_image_embeds (seen, shape, data);
  } else if (strcmp (name, "input_ids") == 0) {
    check_ids (seen->golden, "ids", data, shape[0]);
    seen->saw_ids = TRUE;
  } else if (strcmp (name, "logits") == 0) {
    seen->worst_logits = golden_compare_rows (
        json_object_get (seen->golden, "logits"), blob, data, 1, shape[0], TOLERANCE, "logits");
    seen->saw_logits = TRUE;
  } else if (strcmp (name, "output_ids") == 0) {
    check_ids (seen->golden, "greedy", data, shape[0]);
    seen->saw_output = TRUE;
  }
}

/* Answers once and checks everything that the engine shows on the way. */
static void
run_case (json_t *golden, const VlmImage *images, guint n_threads)
{
  VlmSession *session = vlm_session_new (model);
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  Seen seen = { 0 };
  VlmWatch watch = { NULL, on_array, &seen, NULL };
  GError *error = NULL;

  seen.golden = golden;
  request.prompt = golden_string (golden, "prompt");
  request.system_prompt = json_string_value (json_object_get (golden, "system"));
  request.images = images;
  request.n_images = json_array_size (golden_array (golden, "pictures"));
  request.max_tokens = 48;
  request.temperature = 0;
  request.n_threads = n_threads;
  g_assert_true (vlm_session_generate (session, &request, &watch, &result, &error));
  g_assert_no_error (error);

  g_assert_cmpuint (seen.n_crops, ==, json_array_size (golden_array (golden, "crops")));
  g_assert_true (seen.saw_ids && seen.saw_logits && seen.saw_output);
  g_assert_cmpint (result.finish_reason, ==,
      json_is_true (json_object_get (golden, "stopped")) ? VLM_FINISH_STOP : VLM_FINISH_LENGTH);
  g_test_message ("%u threads: largest difference: tower %.1e, projector %.1e, logits %.1e",
      n_threads, seen.worst_tower, seen.worst_projector, seen.worst_logits);

  vlm_result_clear (&result);
  vlm_session_free (session);
}

static void
test_case (gconstpointer user_data)
{
  json_t *golden = (json_t *) user_data;
  json_t *pictures = golden_array (golden, "pictures");
  gsize n_images = json_array_size (pictures);
  g_autofree VlmImage *images = g_new0 (VlmImage, n_images + 1);
  guint n_threads;
  gsize i;

  for (i = 0; i < n_images; i++) {
    json_t *picture = json_array_get (pictures, i);

    images[i].width = golden_int (picture, "w");
    images[i].height = golden_int (picture, "h");
    images[i].stride = images[i].width * 3;
    images[i].pixels = test_image_draw (golden_string (picture, "pattern"), images[i].width,
        images[i].height, golden_int (picture, "seed"));
    check_hash (picture, "fnv", images[i].pixels, images[i].stride * images[i].height);
  }
  for (n_threads = 1; n_threads <= 3; n_threads++)
    run_case (golden, images, n_threads);
  for (i = 0; i < n_images; i++)
    g_free ((gpointer) images[i].pixels);
}

/* The model that the cases are about. */
static void
load_model (json_t *root)
{
  VlmLoadOptions options = { .precision = VLM_PRECISION_EXACT };
  gboolean converted = json_object_get (root, "type") != NULL;
  g_autofree gchar *name = g_strconcat ("models/", golden_string (root, "model"), NULL);
  g_autofree gchar *path = converted ? golden_convert (root) : golden_path (name);
  GError *error = NULL;

  model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  if (converted)
    golden_remove_converted (path);
}

int
main (int argc, char **argv)
{
  g_autofree gchar *cases_name = NULL;
  g_autofree gchar *blob_name = NULL;
  json_t *root, *item;
  size_t i;
  int status;

  golden_skip_without_level ();
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (argc, ==, 2);
  cases_name = g_strdup_printf ("cases/%s.json", argv[1]);
  root = golden_json (cases_name);
  blob_name = g_strdup_printf ("cases/%s", golden_string (root, "blob"));
  blob = golden_floats (blob_name);
  load_model (root);
  json_array_foreach (golden_array (root, "cases"), i, item) {
    g_autofree gchar *path =
        g_strdup_printf ("/golden/%s/%s", argv[1], golden_string (item, "name"));

    g_test_add_data_func (path, item, test_case);
  }
  status = g_test_run ();
  vlm_model_unref (model);
  g_array_unref (blob);
  json_decref (root);
  return status;
}
