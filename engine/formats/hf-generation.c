/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* generation_config.json, and the ids in config.json and tokenizer_config.json. */

#include "hf.h"

#include "engine/vlm.h"

#include <math.h>
#include <string.h>

static gboolean
add_eos (const VlmJson *json, const json_t *value, guint vocab_size, VlmGeneration *generation,
    GError **error)
{
  g_autofree gchar *expected = NULL;

  if (json_is_integer (value) && json_integer_value (value) >= 0
      && json_integer_value (value) < vocab_size && generation->n_eos < VLM_MAX_EOS) {
    generation->eos_ids[generation->n_eos++] = (gint) json_integer_value (value);
    return TRUE;
  }
  expected = g_strdup_printf ("an id 0..%u, or a list of at most %d", vocab_size - 1, VLM_MAX_EOS);
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "eos_token_id", value, expected);
  return FALSE;
}

/* Leaves an id alone that something of higher rank has set. */
static gboolean
read_id (const VlmJson *json, const gchar *key, guint vocab_size, gint *id, GError **error)
{
  return *id >= 0 || vlm_json_get_int (json, key, 0, vocab_size - 1, id, error);
}

static gboolean
read_ids (const VlmJson *json, guint vocab_size, VlmGeneration *generation, GError **error)
{
  const json_t *eos = vlm_json_get (json, "eos_token_id");
  gsize i;

  if (!read_id (json, "bos_token_id", vocab_size, &generation->bos_id, error)
      || !read_id (json, "pad_token_id", vocab_size, &generation->pad_id, error))
    return FALSE;
  if (generation->n_eos || !eos)
    return TRUE;
  if (!json_is_array (eos))
    return add_eos (json, eos, vocab_size, generation, error);
  for (i = 0; i < json_array_size (eos); i++) {
    if (!add_eos (json, json_array_get (eos, i), vocab_size, generation, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_sampling (const VlmJson *json, VlmGeneration *generation, GError **error)
{
  return vlm_json_get_boolean (json, "do_sample", &generation->do_sample, error)
      && vlm_json_get_double (json, "temperature", 0, 1e3, &generation->temperature, error)
      && vlm_json_get_double (json, "top_p", 0, 1, &generation->top_p, error)
      && vlm_json_get_double (json, "min_p", 0, 1, &generation->min_p, error)
      && vlm_json_get_double (
          json, "repetition_penalty", 1e-3, 1e3, &generation->repetition_penalty, error)
      && vlm_json_get_int (json, "top_k", 0, G_MAXINT, &generation->top_k, error);
}

static gboolean
read_generation_file (
    const VlmModelFiles *files, guint vocab_size, VlmGeneration *generation, GError **error)
{
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  VlmJson json;

  if (!vlm_model_files_has (files, VLM_HF_GENERATION))
    return TRUE;
  root = vlm_json_load (files, VLM_HF_GENERATION, VLM_HF_MAX_SETTINGS, 0, &file, error);
  if (!root)
    return FALSE;
  json = (VlmJson){ file, NULL, root };
  return read_ids (&json, vocab_size, generation, error)
      && read_sampling (&json, generation, error);
}

/* The id of a token that the file gives by text: a string, or an object with "content". */
static gint
lookup_token (const VlmJson *json, const gchar *key, const VlmTokenizer *tokenizer)
{
  const json_t *value = vlm_json_get (json, key);

  if (json_is_object (value))
    value = json_object_get (value, "content");
  return json_is_string (value) ? vlm_tokenizer_lookup (tokenizer, json_string_value (value)) : -1;
}

static gboolean
read_token_texts (const VlmModelFiles *files, const VlmTokenizer *tokenizer,
    VlmGeneration *generation, GError **error)
{
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  VlmJson json;
  gint eos;

  if ((generation->n_eos && generation->bos_id >= 0 && generation->pad_id >= 0)
      || !vlm_model_files_has (files, VLM_HF_TOKENIZER_CONFIG))
    return TRUE;
  /* Its model_max_length is commonly 10^30 and more, too large for an integer. */
  root = vlm_json_load (
      files, VLM_HF_TOKENIZER_CONFIG, VLM_HF_MAX_SETTINGS, JSON_DECODE_INT_AS_REAL, &file, error);
  if (!root)
    return FALSE;
  json = (VlmJson){ file, NULL, root };
  if (generation->bos_id < 0)
    generation->bos_id = lookup_token (&json, "bos_token", tokenizer);
  if (generation->pad_id < 0)
    generation->pad_id = lookup_token (&json, "pad_token", tokenizer);
  eos = lookup_token (&json, "eos_token", tokenizer);
  if (!generation->n_eos && eos >= 0)
    generation->eos_ids[generation->n_eos++] = eos;
  return TRUE;
}

gboolean
vlm_hf_read_generation (const VlmModelFiles *files, const VlmJson *json,
    const VlmTokenizer *tokenizer, guint vocab_size, VlmGeneration *generation, GError **error)
{
  VlmJson text;
  gint im_end;

  memset (generation, 0, sizeof (*generation));
  generation->bos_id = generation->pad_id = generation->top_k = -1;
  generation->temperature = generation->top_p = generation->min_p = NAN;
  generation->repetition_penalty = NAN;
  if (!read_generation_file (files, vocab_size, generation, error)
      || !read_ids (json, vocab_size, generation, error)
      || !vlm_json_get_object (json, "text_config", &text, error)
      || !read_ids (&text, vocab_size, generation, error)
      || !read_token_texts (files, tokenizer, generation, error))
    return FALSE;
  im_end = vlm_tokenizer_lookup (tokenizer, "<|im_end|>");
  if (!generation->n_eos && im_end >= 0)
    generation->eos_ids[generation->n_eos++] = im_end;
  if (generation->n_eos)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: no file names an end token (eos_token_id), and the vocabulary has no <|im_end|>",
      json->file);
  return FALSE;
}
