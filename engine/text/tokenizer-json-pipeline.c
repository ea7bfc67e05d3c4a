/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json. */

#include "tokenizer-json.h"

#include <string.h>

#include "pattern.h"

/* Sequences within sequences; no file needs more than one level. */
#define MAX_DEPTH 4

/* How many times longer a normalizer may make a text. */
#define MAX_GROWTH 8

/* The split of a ByteLevel pre-tokenizer that is told to use one. */
#define BYTE_LEVEL_REGEX                                                                           \
  "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef gboolean (*ReadComponent) (VlmReader *reader, const gchar *field, const json_t *component);

/*
 * Reads one component, or the members of a Sequence one after the other. key names the list of
 * members.
 */
static gboolean
read_components (VlmReader *reader, const gchar *field, const gchar *key, const json_t *component,
    guint depth, ReadComponent read)
{
  const json_t *members;
  gsize i;

  if (!vlm_reader_is_type (component, "Sequence"))
    return read (reader, field, component);
  members = json_object_get (component, key);
  if (!json_is_array (members))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "%s.%s is not a list", field, key);
  if (depth == MAX_DEPTH)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED, "%s has Sequences in Sequences", field);
  for (i = 0; i < json_array_size (members); i++) {
    if (!read_components (reader, field, key, json_array_get (members, i), depth + 1, read))
      return FALSE;
  }
  return TRUE;
}

/* A text can become this many times longer, rounded up. */
static gdouble
growth_of (const VlmTokenizer *tokenizer)
{
  gdouble growth = 1;
  guint i;

  for (i = 0; i < tokenizer->replacements->len; i++) {
    const VlmReplacement *r = &g_array_index (tokenizer->replacements, VlmReplacement, i);

    growth *= MAX (1.0, (gdouble) strlen (r->to) / strlen (r->from));
  }
  return growth;
}

static gboolean
read_replacement (VlmReader *reader, const gchar *field, const json_t *component)
{
  GArray *replacements = reader->tokenizer->replacements;
  const json_t *from = json_object_get (json_object_get (component, "pattern"), "String");
  const json_t *to = json_object_get (component, "content");
  VlmReplacement replacement;

  if (!vlm_reader_is_type (component, "Replace"))
    return vlm_reader_refuse_component (reader, field, component);
  if (json_object_get (json_object_get (component, "pattern"), "Regex") != NULL)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"Replace\" with a Regex is not implemented", field);
  if (!json_is_string (from) || !json_is_string (to))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
        "%s of type \"Replace\" needs the strings pattern.String and content", field);
  if (json_string_length (from) == 0)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"Replace\" with an empty pattern is not implemented", field);
  replacement.from = g_strdup (json_string_value (from));
  replacement.to = g_strdup (json_string_value (to));
  g_array_append_val (replacements, replacement);
  if (growth_of (reader->tokenizer) > MAX_GROWTH)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "the normalizer makes text more than %d times longer", MAX_GROWTH);
  return TRUE;
}

gboolean
vlm_read_normalizer (VlmReader *reader, const json_t *normalizer)
{
  if (normalizer == NULL || json_is_null (normalizer))
    return TRUE;
  return read_components (reader, "normalizer", "normalizers", normalizer, 0, read_replacement);
}

static gboolean
add_pattern (VlmReader *reader, const gchar *field, const gchar *text, gboolean literal)
{
  g_autofree gchar *where = g_strdup_printf ("%s: %s", reader->name, field);
  VlmPattern *pattern = literal ? vlm_pattern_new_literal (text, where, reader->error)
                                : vlm_pattern_new (text, where, reader->error);

  if (pattern == NULL)
    return FALSE;
  g_ptr_array_add (reader->tokenizer->patterns, pattern);
  return TRUE;
}

static gboolean
read_split (VlmReader *reader, const gchar *field, const json_t *split)
{
  const json_t *pattern = json_object_get (split, "pattern");
  const json_t *regex = json_object_get (pattern, "Regex");
  const json_t *string = json_object_get (pattern, "String");
  const gchar *behavior = json_string_value (json_object_get (split, "behavior"));
  gboolean invert = FALSE;
  g_autofree gchar *excerpt = NULL;

  if (!vlm_reader_get_boolean (reader, split, field, "invert", &invert))
    return FALSE;
  if (behavior == NULL || json_is_string (regex) == json_is_string (string))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
        "%s of type \"Split\" needs pattern.Regex or pattern.String, and behavior", field);
  if (strcmp (behavior, "Isolated") != 0) {
    excerpt = vlm_reader_excerpt (behavior);
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"Split\" with behavior \"%s\" is not implemented", field, excerpt);
  }
  if (invert)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"Split\" with invert is not implemented", field);
  if (json_is_string (regex))
    return add_pattern (reader, field, json_string_value (regex), FALSE);
  if (json_string_length (string) == 0)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"Split\" with an empty pattern is not implemented", field);
  return add_pattern (reader, field, json_string_value (string), TRUE);
}

static gboolean
read_byte_level (VlmReader *reader, const gchar *field, const json_t *component)
{
  gboolean prefix_space = TRUE, use_regex = TRUE;

  if (!vlm_reader_get_boolean (reader, component, field, "add_prefix_space", &prefix_space)
      || !vlm_reader_get_boolean (reader, component, field, "use_regex", &use_regex))
    return FALSE;
  if (prefix_space)
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
        "%s of type \"ByteLevel\" with add_prefix_space is not implemented", field);
  return !use_regex || add_pattern (reader, field, BYTE_LEVEL_REGEX, FALSE);
}

static gboolean
read_pre_tokenizer_part (VlmReader *reader, const gchar *field, const json_t *component)
{
  if (vlm_reader_is_type (component, "Split"))
    return read_split (reader, field, component);
  return vlm_reader_refuse_component (reader, field, component);
}

/* ByteLevel comes last, or alone: what comes after it would see text in the byte alphabet. */
gboolean
vlm_read_pre_tokenizer (VlmReader *reader, const json_t *pre_tokenizer)
{
  static const gchar field[] = "pre_tokenizer", key[] = "pretokenizers";
  const json_t *members = json_object_get (pre_tokenizer, key), *member;
  gsize i, n;

  if (vlm_reader_is_type (pre_tokenizer, "ByteLevel"))
    return read_byte_level (reader, field, pre_tokenizer);
  if (!vlm_reader_is_type (pre_tokenizer, "Sequence"))
    return vlm_reader_refuse_component (reader, field, pre_tokenizer);
  if (!json_is_array (members))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "%s.%s is not a list", field, key);
  n = json_array_size (members);
  for (i = 0; i < n; i++) {
    member = json_array_get (members, i);
    if (i + 1 == n && vlm_reader_is_type (member, "ByteLevel"))
      return read_byte_level (reader, field, member);
    if (!read_components (reader, field, key, member, 1, read_pre_tokenizer_part))
      return FALSE;
  }
  return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
      "a %s without a ByteLevel at its end is not implemented", field);
}

/* Post-processors add tokens around a text. Nothing here asks for these: layouts are ours. */
static gboolean
read_post_processor_part (VlmReader *reader, const gchar *field, const json_t *component)
{
  if (vlm_reader_is_type (component, "ByteLevel")
      || vlm_reader_is_type (component, "TemplateProcessing"))
    return TRUE;
  return vlm_reader_refuse_component (reader, field, component);
}

gboolean
vlm_read_post_processor (VlmReader *reader, const json_t *post_processor)
{
  if (post_processor == NULL || json_is_null (post_processor))
    return TRUE;
  return read_components (
      reader, "post_processor", "processors", post_processor, 0, read_post_processor_part);
}

gboolean
vlm_read_decoder (VlmReader *reader, const json_t *decoder)
{
  const json_t *members = json_object_get (decoder, "decoders");

  if (vlm_reader_is_type (decoder, "Sequence") && json_array_size (members) == 1)
    decoder = json_array_get (members, 0);
  if (vlm_reader_is_type (decoder, "ByteLevel"))
    return TRUE;
  return vlm_reader_refuse_component (reader, "decoder", decoder);
}
