/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "settings.h"

#include <string.h>

#include <jansson.h>

/* What is described, and with which options of the same names. In the order in which they are compared. */
#define FRAMES "frames"
#define DEFAULT_FRAMES "--every 2s"
static const gchar *const names[] = { "model", "mmproj", FRAMES, "from", "to", "prompt",
  "system-prompt", "max-tokens", "temperature", "top-k", "top-p", "min-p", "repetition-penalty",
  "seed", "min-image-tokens", "max-image-tokens", "tiling" };

/* ---- Of this run --------------------------------------------------------------------------- */

static void
add (json_t *object, const gchar *name, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  json_object_set_new (object, name, json_string (valid));
}

/* value: unset is left out. */
static void
add_number (json_t *object, const gchar *name, gdouble value, gdouble unset, const gchar *unit)
{
  g_autofree gchar *text = NULL;
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  if (value == unset)
    return;
  text = g_strconcat (g_ascii_formatd (digits, sizeof (digits), "%.15g", value), unit, NULL);
  add (object, name, text);
}

/* A file has one name, from wherever it is named. */
static void
add_path (json_t *object, const gchar *name, const gchar *path)
{
  g_autofree gchar *whole = NULL;

  if (path == NULL)
    return;
  if (g_file_test (path, G_FILE_TEST_EXISTS))
    whole = g_canonicalize_filename (path, NULL);
  add (object, name, whole != NULL ? whole : path);
}

static void
add_frames (json_t *object, const VlmSelection *selection)
{
  gboolean scenes = selection->every <= 0;
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree gchar *text = NULL;

  g_ascii_formatd (
      digits, sizeof (digits), "%.15g", scenes ? selection->scene_change : selection->every / 1e9);
  text = scenes ? g_strconcat ("--scene-change ", digits, NULL)
                : g_strconcat ("--every ", digits, "s", NULL);
  if (strcmp (text, DEFAULT_FRAMES) != 0)
    add (object, FRAMES, text);
  add_number (object, "from", (gdouble) selection->from / 1e9, 0, "s");
  if (selection->to >= 0)
    add_number (object, "to", (gdouble) selection->to / 1e9, -1, "s");
}

static json_t *
make_object (const CaptionOptions *options)
{
  json_t *object = json_object ();

  add_path (object, "model", options->model);
  add_path (object, "mmproj", options->mmproj);
  add_frames (object, &options->run.selection);
  if (strcmp (options->prompt, CAPTION_DEFAULT_PROMPT) != 0)
    add (object, "prompt", options->prompt);
  if (options->system_prompt != NULL)
    add (object, "system-prompt", options->system_prompt);
  add_number (object, "max-tokens", options->max_tokens, -1, NULL);
  add_number (object, "temperature", options->temperature, -1, NULL);
  add_number (object, "top-k", options->top_k, -1, NULL);
  add_number (object, "top-p", options->top_p, -1, NULL);
  add_number (object, "min-p", options->min_p, -1, NULL);
  add_number (object, "repetition-penalty", options->repetition_penalty, -1, NULL);
  add_number (object, "seed", (gdouble) options->seed, -1, NULL);
  add_number (object, "min-image-tokens", options->min_image_tokens, -1, NULL);
  add_number (object, "max-image-tokens", options->max_image_tokens, -1, NULL);
  if (options->tiling != VLM_TILING_AUTO)
    add (object, "tiling", options->tiling == VLM_TILING_ON ? "on" : "off");
  return object;
}

gchar *
vlm_settings_new (const CaptionOptions *options)
{
  json_t *object = make_object (options);
  char *text = json_dumps (object, JSON_COMPACT | JSON_SORT_KEYS);
  gchar *settings = g_strdup (text);

  free (text);
  json_decref (object);
  return settings;
}

/* ---- Of the captions that are there -------------------------------------------------------- */

/* (transfer full) the option as it would be written. */
static gchar *
describe (const gchar *name, const gchar *value)
{
  g_autofree gchar *quoted = value != NULL ? g_shell_quote (value) : NULL;

  if (strcmp (name, FRAMES) == 0)
    return g_strdup (value != NULL ? value : DEFAULT_FRAMES);
  return value != NULL ? g_strdup_printf ("--%s %s", name, strchr (value, ' ') ? quoted : value)
                       : g_strdup_printf ("no --%s", name);
}

/* (transfer full) what the first difference is; NULL: there is none. */
static gchar *
find_difference (const gchar *settings, const gchar *others)
{
  json_t *now = json_loads (settings, 0, NULL), *then = json_loads (others, 0, NULL);
  gchar *difference = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names) && difference == NULL; i++) {
    const gchar *value = json_string_value (json_object_get (now, names[i]));
    const gchar *other = json_string_value (json_object_get (then, names[i]));

    if (g_strcmp0 (value, other) != 0) {
      g_autofree gchar *text = describe (names[i], value);
      g_autofree gchar *other_text = describe (names[i], other);

      difference = g_strdup_printf ("captioned with %s, and not with %s", other_text, text);
    }
  }
  json_decref (now);
  json_decref (then);
  return difference;
}

gboolean
vlm_settings_check (
    const gchar *settings, const GPtrArray *inputs, GPtrArray *notes, GError **error)
{
  for (guint i = 0; i < inputs->len; i++) {
    const VlmInput *input = inputs->pdata[i];
    g_autofree gchar *difference = NULL;

    if (input->captions->len > 0 && input->settings != NULL)
      difference = find_difference (settings, input->settings);
    if (difference != NULL && input->state == VLM_INPUT_WAITING) {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
          "--resume: %s was %s: expected the same options, or --overwrite", input->name,
          difference);
      return FALSE;
    }
    if (difference != NULL)
      g_ptr_array_add (notes, g_strdup_printf ("%s was %s", input->name, difference));
  }
  return TRUE;
}
