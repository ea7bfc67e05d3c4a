/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "info.h"

#include <jansson.h>
#include <stdio.h>

#include "engine/vlm.h"
#include "output.h"

#define MIB (1024.0 * 1024.0)
#define LABEL "%-12s"

static gint64
get_int (const json_t *object, const gchar *key)
{
  return json_integer_value (json_object_get (object, key));
}

static const gchar *
get_string (const json_t *object, const gchar *key)
{
  return json_string_value (json_object_get (object, key));
}

static gboolean
get_flag (const json_t *object, const gchar *key)
{
  return json_is_true (json_object_get (object, key));
}

static void
print_published (const json_t *published)
{
  const json_t *deviations = json_object_get (published, "deviations");
  gsize i;

  if (!json_is_object (published)) {
    printf (LABEL "not a published size\n", "size");
    return;
  }
  printf (LABEL "%s", "size", get_string (published, "name"));
  if (get_string (published, "same_as") != NULL)
    printf (" (%s has the same)", get_string (published, "same_as"));
  if (!get_flag (published, "verified"))
    printf (", known by counts and shapes only");
  putchar ('\n');
  for (i = 0; i < json_array_size (deviations); i++)
    printf (LABEL "%s\n", "  differs", json_string_value (json_array_get (deviations, i)));
}

static void
print_text (const json_t *text)
{
  const json_t *kinds = json_object_get (text, "layer_types");
  gsize i, n = json_array_size (kinds), n_attention = 0;

  printf (LABEL "%d layers, width %d, feed-forward %d\n", "decoder", (int) n,
      (int) get_int (text, "hidden_size"), (int) get_int (text, "ff_size"));
  printf (LABEL "%d heads of %d, %d of keys; attention in layers", "",
      (int) get_int (text, "n_heads"), (int) get_int (text, "head_dim"),
      (int) get_int (text, "n_kv_heads"));
  for (i = 0; i < n; i++) {
    if (g_strcmp0 (json_string_value (json_array_get (kinds, i)), "conv") != 0)
      printf ("%s %d", n_attention++ > 0 ? "," : "", (int) i);
  }
  printf ("%s\n", n_attention > 0 ? "" : " none");
  printf (LABEL "vocabulary of %d, %s head, context of %d\n", "",
      (int) get_int (text, "vocab_size"), get_flag (text, "tied_head") ? "tied" : "separate",
      (int) get_int (text, "max_context"));
}

static void
print_vision (const json_t *root)
{
  const json_t *vision = json_object_get (root, "vision");
  const json_t *projector = json_object_get (root, "projector");
  const json_t *image = json_object_get (root, "image");

  if (!json_is_object (vision)) {
    printf (LABEL "none\n", "vision");
    return;
  }
  printf (LABEL "%d layers, width %d, feed-forward %d, %d heads of %d, patches of %d\n", "vision",
      (int) get_int (vision, "n_layers"), (int) get_int (vision, "hidden_size"),
      (int) get_int (vision, "ff_size"), (int) get_int (vision, "n_heads"),
      (int) get_int (vision, "head_dim"), (int) get_int (vision, "patch_size"));
  printf (LABEL "width %d, %s norm\n", "projector", (int) get_int (projector, "hidden_size"),
      get_flag (projector, "layer_norm") ? "with" : "without");
  printf (LABEL "%d to %d tokens, %s filter, ", "pictures",
      (int) get_int (image, "min_image_tokens"), (int) get_int (image, "max_image_tokens"),
      get_string (image, "filter"));
  if (get_flag (image, "splitting"))
    printf ("large ones in %d to %d tiles of %d%s\n", (int) get_int (image, "min_tiles"),
        (int) get_int (image, "max_tiles"), (int) get_int (image, "tile_size"),
        get_flag (image, "thumbnail") ? " and a thumbnail" : "");
  else
    printf ("never in tiles\n");
}

static void
print_generation (const json_t *generation)
{
  static const gchar *const keys[] = { "temperature", "top_k", "top_p", "min_p",
    "repetition_penalty" };
  const json_t *eos = json_object_get (generation, "eos_ids");
  gsize i;

  printf (LABEL "ends at", "generation");
  for (i = 0; i < json_array_size (eos); i++)
    printf ("%s %d", i > 0 ? "," : "", (int) json_integer_value (json_array_get (eos, i)));
  printf ("; %s", get_flag (generation, "do_sample") ? "sampled" : "greedy");
  for (i = 0; i < G_N_ELEMENTS (keys); i++) {
    const json_t *value = json_object_get (generation, keys[i]);

    if (json_is_number (value))
      printf (", %s %g", keys[i], json_number_value (value));
  }
  putchar ('\n');
}

/* "int4/32", "int8", "f16" (transfer full) */
static gchar *
make_type (const json_t *group)
{
  const gchar *type = get_string (group, "type");

  if (json_is_integer (json_object_get (group, "group")))
    return g_strdup_printf ("%s/%d", type, (int) get_int (group, "group"));
  return g_strdup (type);
}

/* How integers are scaled: "one a row", "codes, minimum"; empty for floats. (transfer full) */
static gchar *
make_scales (const json_t *group)
{
  const gchar *scale = get_string (group, "scale");

  if (scale == NULL)
    return g_strdup ("");
  if (!json_is_integer (json_object_get (group, "group")))
    return g_strdup ("one a row");
  return g_strconcat (scale, get_flag (group, "minimum") ? ", minimum" : "", NULL);
}

static void
print_weights (const json_t *weights)
{
  gsize i;

  printf ("\n%-10s %-9s %-9s %-14s %8s %14s %12s\n", "part", "tensors", "type", "scales", "number",
      "parameters", "MiB");
  for (i = 0; i < json_array_size (weights); i++) {
    const json_t *group = json_array_get (weights, i);
    g_autofree gchar *type = make_type (group);
    g_autofree gchar *scales = make_scales (group);

    printf ("%-10s %-9s %-9s %-14s %8d %14" G_GINT64_FORMAT " %12.2f\n", get_string (group, "part"),
        get_flag (group, "matrices") ? "matrices" : "others", type, scales,
        (int) get_int (group, "n_tensors"), get_int (group, "n_parameters"),
        get_int (group, "bytes") / MIB);
  }
}

static void
print_table (const json_t *root)
{
  printf (LABEL "%s\n", "model", get_string (root, "path"));
  printf (LABEL "%s", "format", get_string (root, "format"));
  if (json_is_integer (json_object_get (root, "version")))
    printf (" version %d", (int) get_int (root, "version"));
  printf (", %.2f MiB\n", get_int (root, "bytes") / MIB);
  printf (LABEL "%s\n", "family", get_string (root, "family"));
  print_published (json_object_get (root, "published"));
  printf (LABEL "%" G_GINT64_FORMAT " in %d tensors\n", "parameters",
      get_int (root, "n_parameters"), (int) get_int (root, "n_tensors"));
  print_text (json_object_get (root, "text"));
  print_vision (root);
  printf (
      LABEL "%d ids\n", "tokenizer", (int) get_int (json_object_get (root, "tokenizer"), "n_ids"));
  print_generation (json_object_get (root, "generation"));
  print_weights (json_object_get (root, "weights"));
}

gboolean
info_print (const gchar *path, const gchar *mmproj, gboolean json, GError **error)
{
  g_autofree gchar *text = vlm_model_describe (path, mmproj, error);
  json_t *root;

  if (text == NULL)
    return FALSE;
  if (json) {
    puts (text);
  } else {
    root = json_loads (text, 0, NULL);
    print_table (root);
    json_decref (root);
  }
  return output_check (error);
}
