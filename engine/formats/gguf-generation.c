/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* generation_config.json and tokenizer_config.json of a GGUF model: ids with a meaning, sampling. */

#include "gguf-settings-private.h"

#include "hf.h"

#define N_IDS 4

typedef struct
{
  const gchar *key;
  const gchar *id_name;   /* in generation_config.json */
  const gchar *text_name; /* in tokenizer_config.json */
} NamedId;

/*
 * The end of a turn that has a key of its own is looked at and left out: in these files it is
 * <|endoftext|>, at which the reference does not stop.
 */
static const NamedId named_ids[N_IDS] = {
  { "tokenizer.ggml.bos_token_id", "bos_token_id", "bos_token" },
  { "tokenizer.ggml.eos_token_id", "eos_token_id", "eos_token" },
  { "tokenizer.ggml.padding_token_id", "pad_token_id", "pad_token" },
  { "tokenizer.ggml.eot_token_id", NULL, NULL },
};

/* ids: -1 where there is none. */
static gboolean
read_ids (const VlmGguf *text, gint64 *ids, GError **error)
{
  const VlmGgufValue *tokens = NULL;
  guint i;

  if (!vlm_gguf_require_tokens (text, &tokens, error))
    return FALSE;
  for (i = 0; i < N_IDS; i++) {
    guint64 id = 0;

    if (!vlm_gguf_get_uint (text, named_ids[i].key, 0, tokens->n - 1, &id, error))
      return FALSE;
    ids[i] = vlm_gguf_find (text, named_ids[i].key) ? (gint64) id : -1;
  }
  return TRUE;
}

static gboolean
add_number (json_t *object, const gchar *name, const VlmGguf *text, const gchar *key, gdouble min,
    gdouble max, GError **error)
{
  gdouble number = 0;

  if (!vlm_gguf_find (text, key))
    return TRUE;
  if (!vlm_gguf_get_double (text, key, min, max, &number, error))
    return FALSE;
  json_object_set_new (object, name, json_real (vlm_gguf_shorten (number)));
  return TRUE;
}

static gboolean
is_negative (const VlmGgufValue *value)
{
  switch (value->type) {
    case VLM_GGUF_I8:
    case VLM_GGUF_I16:
    case VLM_GGUF_I32:
    case VLM_GGUF_I64:
      return vlm_gguf_value_get_integer (value, 0) < 0;
    default:
      return FALSE;
  }
}

/* The programs that these files are made for take any number below 1 as "off", which is 0 here. */
static gboolean
add_top_k (json_t *object, const VlmGguf *text, GError **error)
{
  static const gchar key[] = "general.sampling.top_k";
  const VlmGgufValue *value = vlm_gguf_find (text, key);
  guint k = 0;

  if (!value)
    return TRUE;
  if (!is_negative (value) && !vlm_gguf_get_small (text, key, 0, G_MAXINT, &k, error))
    return FALSE;
  json_object_set_new (object, "top_k", json_integer (k));
  return TRUE;
}

/* What the author of the model recommends; without a temperature, the likeliest token. */
static gboolean
add_sampling (json_t *object, const VlmGguf *text, GError **error)
{
  if (!add_number (object, "temperature", text, "general.sampling.temp", 0, 1e3, error)
      || !add_number (object, "top_p", text, "general.sampling.top_p", 0, 1, error)
      || !add_number (object, "min_p", text, "general.sampling.min_p", 0, 1, error)
      || !add_number (
          object, "repetition_penalty", text, "general.sampling.penalty_repeat", 1e-3, 1e3, error)
      || !add_top_k (object, text, error))
    return FALSE;
  json_object_set_new (object, "do_sample",
      json_boolean (json_real_value (json_object_get (object, "temperature")) > 0));
  return TRUE;
}

json_t *
vlm_gguf_make_generation (const VlmGguf *text, GError **error)
{
  g_autoptr (VlmJsonDocument) object = json_object ();
  gint64 ids[N_IDS];
  guint i;

  if (!read_ids (text, ids, error))
    return NULL;
  for (i = 0; i < N_IDS; i++) {
    if (ids[i] >= 0 && named_ids[i].id_name)
      json_object_set_new (object, named_ids[i].id_name, json_integer (ids[i]));
  }
  return add_sampling (object, text, error) ? g_steal_pointer (&object) : NULL;
}

json_t *
vlm_gguf_make_tokenizer_config (const VlmGguf *text, GError **error)
{
  g_autoptr (VlmJsonDocument) object = json_object ();
  gint64 ids[N_IDS];
  guint i;

  if (!read_ids (text, ids, error))
    return NULL;
  for (i = 0; i < N_IDS; i++) {
    g_autofree gchar *token = NULL;

    if (ids[i] < 0 || !named_ids[i].text_name)
      continue;
    token = vlm_gguf_get_token (text, (guint) ids[i], error);
    if (!token)
      return NULL;
    json_object_set_new (object, named_ids[i].text_name, json_string (token));
  }
  return g_steal_pointer (&object);
}
