/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * model.safetensors, written piece by piece: no more than one piece is in memory. Every tensor's
 * numbers depend on its name and what synth_write () was told only.
 *
 * Trained models answer to a small change of an activation with a small change; so must these, or
 * nothing could be learnt from them about rounding. Norms are near one, and matrices give numbers
 * of the size of their inputs: attention looks at many tokens, gates are half open. What a layer
 * adds to the residual stream is a part of it, so that the stream grows two- or threefold through
 * all layers. Logits have a deviation of two or three, which leaves a distribution of some nats.
 */

#include "synth-private.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include <glib/gstdio.h>

/* Values made and written at a time. */
#define PIECE 65536

/* How far outliers stand out. */
#define OUTLIER_GAIN 30.0f

/* Deviation of the embeddings, with which the decoder's stream begins, and what layers add to it. */
#define EMBEDDING_SIZE 0.1f
#define DECODER_GAIN 0.05f

/* The tower's stream begins with patches and positions, of about half. */
#define TOWER_GAIN 0.3f

typedef struct
{
  gchar *name;
  guint shape[3];
  guint n_dims;
  gfloat mean, deviation;
  gboolean has_outliers; /* a norm at the head of a layer's part */
} Tensor;

typedef struct
{
  const SynthPreset *preset;
  guint n_outliers;
  GArray *tensors; /* Tensor, in file order */
  GString *prefix; /* of the names being added */
} Listing;

static void
clear_tensor (gpointer data)
{
  g_free (((Tensor *) data)->name);
}

static void
set_prefix (Listing *listing, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  g_string_vprintf (listing->prefix, format, args);
  va_end (args);
}

static void
add (Listing *listing, const gchar *name, guint rows, guint columns, gfloat mean, gfloat deviation)
{
  Tensor tensor = { g_strconcat (listing->prefix->str, name, NULL), { rows, columns, 0 },
    columns > 0 ? 2 : 1, mean, deviation, FALSE };

  g_array_append_val (listing->tensors, tensor);
}

/* Numbers that come out are gain times as large as those that go in. */
static void
add_matrix (Listing *listing, const gchar *name, guint rows, guint columns, gfloat gain)
{
  add (listing, name, rows, columns, 0.0f, gain / sqrtf (columns));
}

/* Gain of a matrix behind a norm of n values with outliers: the same size comes out as without. */
static gfloat
gain_after_norm (const Listing *listing, guint n)
{
  gfloat share = (gfloat) MIN (listing->n_outliers, n) / (gfloat) n;

  return 1.0f / sqrtf (1.0f + share * (OUTLIER_GAIN * OUTLIER_GAIN - 1.0f));
}

static void
add_norm (Listing *listing, const gchar *name, guint n)
{
  add (listing, name, n, 0, 1.0f, 0.1f);
}

/* The norm that a layer's part begins with. */
static void
add_first_norm (Listing *listing, const gchar *name, guint n)
{
  add_norm (listing, name, n);
  g_array_index (listing->tensors, Tensor, listing->tensors->len - 1).has_outliers = TRUE;
}

static void
add_bias (Listing *listing, const gchar *name, guint n)
{
  add (listing, name, n, 0, 0.0f, 0.05f);
}

/* name.weight and name.bias */
static void
add_linear (Listing *listing, const gchar *name, guint rows, guint columns, gfloat gain)
{
  g_autofree gchar *weight = g_strconcat (name, ".weight", NULL);
  g_autofree gchar *bias = g_strconcat (name, ".bias", NULL);

  add_matrix (listing, weight, rows, columns, gain);
  add_bias (listing, bias, rows);
}

static void
add_layer_norm (Listing *listing, const gchar *name, guint n)
{
  g_autofree gchar *weight = g_strconcat (name, ".weight", NULL);
  g_autofree gchar *bias = g_strconcat (name, ".bias", NULL);

  add_norm (listing, weight, n);
  add_bias (listing, bias, n);
}

static void
add_attention (Listing *listing)
{
  const SynthPreset *preset = listing->preset;
  guint hidden = preset->hidden, head = hidden / preset->n_heads;
  gfloat gain = gain_after_norm (listing, hidden);

  add_matrix (listing, "self_attn.q_proj.weight", hidden, hidden, gain);
  add_matrix (listing, "self_attn.k_proj.weight", preset->n_kv_heads * head, hidden, gain);
  add_matrix (listing, "self_attn.v_proj.weight", preset->n_kv_heads * head, hidden, gain);
  add_matrix (listing, "self_attn.out_proj.weight", hidden, hidden, DECODER_GAIN);
  add_norm (listing, "self_attn.q_layernorm.weight", head);
  add_norm (listing, "self_attn.k_layernorm.weight", head);
}

static void
add_short_conv (Listing *listing)
{
  guint hidden = listing->preset->hidden;
  Tensor taps = { g_strconcat (listing->prefix->str, "conv.conv.weight", NULL),
    { hidden, 1, SYNTH_CONV_TAPS }, 3, 0.0f, 0.6f, FALSE };

  g_array_append_val (listing->tensors, taps);
  add_matrix (
      listing, "conv.in_proj.weight", 3 * hidden, hidden, gain_after_norm (listing, hidden));
  add_matrix (listing, "conv.out_proj.weight", hidden, hidden, DECODER_GAIN);
}

static void
add_text_model (Listing *listing, const gchar *prefix)
{
  const SynthPreset *preset = listing->preset;
  gfloat gain = gain_after_norm (listing, preset->hidden);
  guint i;

  set_prefix (listing, "%s", prefix);
  /* Tied to the head: this many times sqrt (hidden) is the deviation of the logits. */
  add (listing, "embed_tokens.weight", preset->vocab, preset->hidden, 0.0f, EMBEDDING_SIZE);
  /* Around zero, or every token's own embedding would make it its best continuation. */
  add (listing, "embedding_norm.weight", preset->hidden, 0, 0.0f, 1.0f);
  for (i = 0; i < preset->n_layers; i++) {
    set_prefix (listing, "%slayers.%u.", prefix, i);
    add_first_norm (listing, "operator_norm.weight", preset->hidden);
    add_first_norm (listing, "ffn_norm.weight", preset->hidden);
    add_matrix (listing, "feed_forward.w1.weight", preset->ff_rows, preset->hidden, gain);
    add_matrix (listing, "feed_forward.w2.weight", preset->hidden, preset->ff_rows, DECODER_GAIN);
    add_matrix (listing, "feed_forward.w3.weight", preset->ff_rows, preset->hidden, gain);
    if ((preset->attention_layers >> i & 1) != 0)
      add_attention (listing);
    else
      add_short_conv (listing);
  }
}

static void
add_vision_tower (Listing *listing)
{
  const SynthPreset *preset = listing->preset;
  guint hidden = preset->vision_hidden;
  gfloat gain = gain_after_norm (listing, hidden);
  guint i;

  set_prefix (listing, "model.vision_tower.vision_model.");
  add_linear (listing, "embeddings.patch_embedding", hidden, SYNTH_PATCH * SYNTH_PATCH * 3, 1.0f);
  add (listing, "embeddings.position_embedding.weight", SYNTH_POSITIONS, hidden, 0.0f, 0.3f);
  add_layer_norm (listing, "post_layernorm", hidden);
  for (i = 0; i < preset->n_vision_layers; i++) {
    set_prefix (listing, "model.vision_tower.vision_model.encoder.layers.%u.", i);
    add_first_norm (listing, "layer_norm1.weight", hidden);
    add_bias (listing, "layer_norm1.bias", hidden);
    add_first_norm (listing, "layer_norm2.weight", hidden);
    add_bias (listing, "layer_norm2.bias", hidden);
    add_linear (listing, "self_attn.q_proj", hidden, hidden, gain);
    add_linear (listing, "self_attn.k_proj", hidden, hidden, gain);
    add_linear (listing, "self_attn.v_proj", hidden, hidden, gain);
    add_linear (listing, "self_attn.out_proj", hidden, hidden, TOWER_GAIN);
    add_linear (listing, "mlp.fc1", preset->vision_ff, hidden, gain);
    add_linear (listing, "mlp.fc2", hidden, preset->vision_ff, TOWER_GAIN);
  }
}

static void
add_projector (Listing *listing)
{
  const SynthPreset *preset = listing->preset;
  guint width = preset->vision_hidden * SYNTH_DOWNSAMPLE * SYNTH_DOWNSAMPLE;

  set_prefix (listing, "model.multi_modal_projector.");
  if (preset->projector_norm)
    add_layer_norm (listing, "layer_norm", width);
  add_linear (listing, "linear_1", preset->projector_hidden, width, 1.0f);
  add_linear (listing, "linear_2", preset->hidden, preset->projector_hidden, EMBEDDING_SIZE);
}

/* (transfer full) */
static GArray *
list_tensors (const SynthPreset *preset, guint n_outliers)
{
  Listing listing = { preset, n_outliers, g_array_new (FALSE, FALSE, sizeof (Tensor)),
    g_string_new (NULL) };

  g_array_set_clear_func (listing.tensors, clear_tensor);
  if (preset->n_vision_layers > 0) {
    add_text_model (&listing, "model.language_model.");
    add_vision_tower (&listing);
    add_projector (&listing);
  } else {
    add_text_model (&listing, "model.");
  }
  g_string_free (listing.prefix, TRUE);
  return listing.tensors;
}

static guint64
count_values (const Tensor *tensor)
{
  guint64 n = 1;
  guint i;

  for (i = 0; i < tensor->n_dims; i++)
    n *= tensor->shape[i];
  return n;
}

/* (transfer full) the length field and the header, padded so that data begins at 8 bytes */
static GString *
make_header (const GArray *tensors)
{
  g_autoptr (GString) json = g_string_new ("{\"__metadata__\":{\"format\":\"pt\"}");
  GString *header;
  guint64 offset = 0, length;
  guint i, j;

  for (i = 0; i < tensors->len; i++) {
    const Tensor *tensor = &g_array_index (tensors, Tensor, i);
    guint64 end = offset + count_values (tensor) * 2;

    g_string_append_printf (json, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[", tensor->name);
    for (j = 0; j < tensor->n_dims; j++)
      g_string_append_printf (json, j == 0 ? "%u" : ",%u", tensor->shape[j]);
    g_string_append_printf (
        json, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}", offset, end);
    offset = end;
  }
  g_string_append_c (json, '}');
  while (json->len % 8 != 0)
    g_string_append_c (json, ' ');
  length = GUINT64_TO_LE (json->len);
  header = g_string_new_len ((const gchar *) &length, sizeof (length));
  g_string_append_len (header, json->str, json->len);
  return header;
}

static guint64
mix (guint64 state)
{
  state = (state ^ (state >> 30)) * G_GUINT64_CONSTANT (0xBF58476D1CE4E5B9);
  state = (state ^ (state >> 27)) * G_GUINT64_CONSTANT (0x94D049BB133111EB);
  return state ^ (state >> 31);
}

static guint64
start_of (const gchar *name, guint64 seed)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);

  for (; *name != '\0'; name++)
    hash = (hash ^ (guchar) *name) * G_GUINT64_CONSTANT (0x100000001b3);
  return mix (hash ^ mix (seed + G_GUINT64_CONSTANT (0x9E3779B97F4A7C15)));
}

/* bfloat16 by rounding to nearest, halves to even; value is finite. */
static guint16
to_bfloat16 (gfloat value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof (bits));
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

/* About normally distributed: four uniform 16-bit numbers added up, of one splitmix64 step. */
static void
fill (guint16 *values, gsize n, guint64 *state, const Tensor *tensor)
{
  gfloat scale = tensor->deviation * sqrtf (3.0f) / 65536.0f;
  gsize i;

  for (i = 0; i < n; i++) {
    guint64 r = mix (*state += G_GUINT64_CONSTANT (0x9E3779B97F4A7C15));
    gint32 sum = (gint32) ((r & 0xFFFF) + (r >> 16 & 0xFFFF) + (r >> 32 & 0xFFFF) + (r >> 48));

    values[i] = GUINT16_TO_LE (to_bfloat16 (tensor->mean + scale * (gfloat) (sum - 131070)));
  }
}

static gfloat
from_bfloat16 (guint16 value)
{
  guint32 bits = (guint32) value << 16;
  gfloat result;

  memcpy (&result, &bits, sizeof (result));
  return result;
}

/*
 * Raises n_outliers of n values; which ones depends on n and the seed only, so that all layers have
 * theirs at the same channels.
 */
static void
raise_outliers (guint16 *values, guint n, guint n_outliers, guint64 seed)
{
  guint64 state = start_of ("outliers", seed);
  guint channels[SYNTH_MAX_OUTLIERS];
  guint i, j;

  for (i = 0; i < MIN (n_outliers, n); i++) {
    guint channel = mix (state += G_GUINT64_CONSTANT (0x9E3779B97F4A7C15)) % n;

    for (j = 0; j < i; j++) {
      if (channels[j] == channel) {
        channel = (channel + 1) % n;
        j = G_MAXUINT; /* looks at all of them once more */
      }
    }
    channels[i] = channel;
    values[channel] = GUINT16_TO_LE (
        to_bfloat16 (from_bfloat16 (GUINT16_FROM_LE (values[channel])) * OUTLIER_GAIN));
  }
}

static gboolean
write_tensor (FILE *file, const Tensor *tensor, guint64 seed, guint n_outliers, guint16 *piece)
{
  guint64 state = start_of (tensor->name, seed);
  guint64 left = count_values (tensor);

  while (left > 0) {
    gsize n = MIN (left, PIECE);

    fill (piece, n, &state, tensor);
    if (tensor->has_outliers)
      raise_outliers (piece, n, n_outliers, seed);
    if (fwrite (piece, sizeof (guint16), n, file) != n)
      return FALSE;
    left -= n;
  }
  return TRUE;
}

gboolean
synth_write_weights (
    const SynthPreset *preset, guint64 seed, guint n_outliers, const gchar *folder, GError **error)
{
  g_autoptr (GArray) tensors = list_tensors (preset, n_outliers);
  g_autoptr (GString) header = make_header (tensors);
  g_autofree gchar *path = g_build_filename (folder, "model.safetensors", NULL);
  /* Under another name until it is whole. */
  g_autofree gchar *part = g_strconcat (path, ".part", NULL);
  g_autofree guint16 *piece = g_new (guint16, PIECE);
  FILE *file = g_fopen (part, "wb");
  gboolean written = file != NULL && fwrite (header->str, 1, header->len, file) == header->len;
  guint i;

  for (i = 0; written && i < tensors->len; i++)
    written = write_tensor (file, &g_array_index (tensors, Tensor, i), seed, n_outliers, piece);
  if (file != NULL && fclose (file) != 0)
    written = FALSE;
  written = written && g_rename (part, path) == 0;
  if (!written) {
    gint code = errno;

    g_set_error (
        error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
    g_unlink (part);
  }
  return written;
}
