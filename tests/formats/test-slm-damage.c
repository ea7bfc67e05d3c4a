/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Damaged and lying .slm files: each is refused, with its name and the reason. */

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/formats/model-files.h"
#include "engine/vlm.h"
#include "slm-fixture.h"
#include "tests/engine/test-text-toy.h"

typedef struct
{
  gchar *directory, *path;
  guint8 *bytes;
  gsize size, data_start;
  int fd;
} Victim;

/* integers: the file with matrices of all kinds of fields. */
static Victim *
victim_new (gboolean integers)
{
  Victim *victim = g_new0 (Victim, 1);
  guint64 length;

  victim->directory = fixture_directory_new ();
  victim->path = g_build_filename (victim->directory, "victim.slm", NULL);
  if (integers)
    slm_fixture_write_integers (victim->path);
  else
    slm_fixture_write (victim->path);
  g_assert_true (
      g_file_get_contents (victim->path, (gchar **) &victim->bytes, &victim->size, NULL));
  memcpy (&length, victim->bytes, 8);
  victim->data_start = 8 + GUINT64_FROM_LE (length);
  victim->fd = g_open (victim->path, O_WRONLY | O_CLOEXEC, 0);
  g_assert_cmpint (victim->fd, >=, 0);
  return victim;
}

static void
victim_free (Victim *victim)
{
  close (victim->fd);
  fixture_directory_remove (victim->directory);
  g_free (victim->path);
  g_free (victim->bytes);
  g_free (victim);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Victim, victim_free)

static void
expect_refusal (const Victim *victim, const gchar *what, gsize at, gint bit)
{
  g_autoptr (GError) error = NULL;

  if (slm_read_all (victim->path, &error))
    g_error ("%s at byte %" G_GSIZE_FORMAT ", bit %d, went unnoticed", what, at, bit);
  if (strstr (error->message, "victim.slm") == NULL)
    g_error (
        "%s at byte %" G_GSIZE_FORMAT ": \"%s\" does not name the file", what, at, error->message);
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
}

/* ---- Bits --------------------------------------------------------------------------------- */

/* Every bit of the file, one after the other. */
static void
test_every_bit (gconstpointer data)
{
  g_autoptr (Victim) victim = victim_new (GPOINTER_TO_INT (data));
  g_autoptr (GError) error = NULL;
  gsize at;
  gint bit;

  g_assert_true (slm_read_all (victim->path, &error));
  g_assert_cmpuint (victim->size, <, 8192);
  for (at = 0; at < victim->size; at++) {
    for (bit = 0; bit < 8; bit++) {
      guint8 byte = victim->bytes[at] ^ 1 << bit;

      g_assert_cmpint (pwrite (victim->fd, &byte, 1, at), ==, 1);
      expect_refusal (victim, "a flipped bit", at, bit);
    }
    g_assert_cmpint (pwrite (victim->fd, &victim->bytes[at], 1, at), ==, 1);
  }
  g_assert_true (slm_read_all (victim->path, &error));
}

/* The name of the tensor that holds a byte of the data. */
static gchar *
find_owner (SlmParts *parts, gsize at)
{
  const gchar *name;
  json_t *entry;

  json_object_foreach (parts->header, name, entry) {
    const json_t *offsets = json_object_get (entry, "data_offsets");

    if (offsets != NULL && at >= json_integer_value (json_array_get (offsets, 0))
        && at < json_integer_value (json_array_get (offsets, 1)))
      return g_strdup (name);
  }
  g_error ("byte %" G_GSIZE_FORMAT " belongs to nobody", at);
}

/* Whatever part of the data is damaged, the message names the tensor. */
static void
test_names (gconstpointer data)
{
  g_autoptr (Victim) victim = victim_new (GPOINTER_TO_INT (data));
  g_autoptr (SlmParts) parts = slm_parts_load (victim->path);
  gsize at;

  for (at = victim->data_start; at < victim->size; at++) {
    g_autofree gchar *owner = find_owner (parts, at - victim->data_start);
    g_autofree gchar *shown = g_strdup_printf ("tensor %s ", owner);
    /* What the values may not be shows before the checksum. */
    g_autofree gchar *value = g_strdup_printf ("tensor %s is", owner);
    g_autoptr (GError) error = NULL;
    guint8 byte = victim->bytes[at] ^ 0x55;

    g_assert_cmpint (pwrite (victim->fd, &byte, 1, at), ==, 1);
    g_assert_false (slm_read_all (victim->path, &error));
    if (strstr (error->message, shown) == NULL && strstr (error->message, value) == NULL)
      g_error ("\"%s\" does not name %s", error->message, owner);
    g_assert_cmpint (pwrite (victim->fd, &victim->bytes[at], 1, at), ==, 1);
  }
}

/* ---- Length ------------------------------------------------------------------------------- */

static void
test_truncated (gconstpointer data)
{
  g_autoptr (Victim) victim = victim_new (GPOINTER_TO_INT (data));
  gsize size;

  for (size = victim->size; size-- > 0;) {
    g_assert_cmpint (ftruncate (victim->fd, size), ==, 0);
    expect_refusal (victim, "an end", size, -1);
  }
}

static void
test_longer (gconstpointer data)
{
  g_autoptr (Victim) victim = victim_new (GPOINTER_TO_INT (data));
  gsize more;

  for (more = 1; more <= 130; more++) {
    g_assert_cmpint (ftruncate (victim->fd, victim->size + more), ==, 0);
    expect_refusal (victim, "an addition", victim->size, -1);
  }
}

/* A file that is cut after it was opened. */
static void
test_cut_while_open (void)
{
  g_autoptr (Victim) victim = victim_new (FALSE);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlm) slm = vlm_slm_open (victim->path, &error);
  g_autoptr (VlmTensorSource) source = vlm_slm_get_tensors (slm, &error);

  g_assert_cmpint (ftruncate (victim->fd, victim->size - 10), ==, 0);
  g_assert_false (vlm_tensor_source_verify_rest (source, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_READ, "taps.weight");
}

/* ---- Lies --------------------------------------------------------------------------------- */

/* Damages the parts; every checksum that may be right is made right afterwards. */
typedef void (*Lie) (SlmParts *parts);

static void
expect_lie (Lie lie, gboolean integers, gint code, const gchar *part)
{
  g_autoptr (Victim) victim = victim_new (integers);
  g_autoptr (SlmParts) parts = slm_parts_load (victim->path);
  g_autoptr (GError) error = NULL;

  lie (parts);
  slm_parts_save (parts, victim->path);
  g_assert_false (slm_read_all (victim->path, &error));
  fixture_assert_message (error, code, part);
  fixture_assert_message (error, code, "victim.slm");
}

/* Without a lie the file taken apart and put together is a good one. */
static void
test_no_lie (gconstpointer data)
{
  g_autoptr (Victim) victim = victim_new (GPOINTER_TO_INT (data));
  g_autoptr (SlmParts) parts = slm_parts_load (victim->path);
  g_autoptr (GError) error = NULL;

  slm_parts_save (parts, victim->path);
  g_assert_true (slm_read_all (victim->path, &error));
  g_assert_no_error (error);
}

static void
set (json_t *object, const gchar *key, json_t *value)
{
  g_assert_cmpint (json_object_set_new (object, key, value), ==, 0);
}

/* Replaces the value under key of the entry of a tensor, or of its quantisation. */
static void
set_entry (SlmParts *parts, const gchar *name, const gchar *key, json_t *value)
{
  json_t *entry = slm_parts_find (parts, name);
  json_t *quantisation = json_object_get (entry, "quantisation");

  set (json_object_get (quantisation, key) ? quantisation : entry, key, value);
}

#define LIE(NAME, ...)                                                                             \
  static void lie_##NAME (SlmParts *parts)                                                         \
  {                                                                                                \
    __VA_ARGS__;                                                                                   \
  }

/* The manifest as a whole. */
LIE (version, set (parts->manifest, "format_version", json_integer (3)))
LIE (version_text, set (parts->manifest, "format_version", json_string ("2")))
LIE (no_version, json_object_del (parts->manifest, "format_version"))
LIE (family, set (parts->manifest, "model_family", json_string ("llama")))
LIE (no_family, json_object_del (parts->manifest, "model_family"))
LIE (layer, set (parts->manifest, "layer_types", json_pack ("[ss]", "conv", "mamba")))
LIE (no_layers, set (parts->manifest, "layer_types", json_array ()))
LIE (layers_text, set (parts->manifest, "layer_types", json_string ("conv")))
LIE (key, set (parts->manifest, "rope", json_integer (1)))
LIE (no_tensors, json_object_del (parts->manifest, "tensors"))
LIE (no_json, parts->text = g_strdup ("{\"format_version\":2"))
LIE (array, parts->text = g_strdup ("[]"))
LIE (key_twice, parts->text = g_strdup ("{\"format_version\":2,\"format_version\":2}"))
LIE (
    empty_entry, json_array_append_new (json_object_get (parts->manifest, "tensors"), json_null ()))

/* Entries of the manifest. */
LIE (scheme, set_entry (parts, "rows.weight", "scheme", json_string ("int7-row")))
LIE (other_scheme, set_entry (parts, "rows.weight", "scheme", json_string ("int4-group-64")))
LIE (columns, set_entry (parts, "rows.weight", "columns", json_integer (8)))
LIE (odd_columns, set_entry (parts, "groups.weight", "columns", json_integer (131)))
LIE (dtype, set_entry (parts, "norm.weight", "dtype", json_string ("BF16")))
LIE (plain_u8, set_entry (parts, "norm.weight", "dtype", json_string ("U8")))
LIE (no_scheme, json_object_del (slm_parts_find (parts, "rows.weight"), "quantisation"))
LIE (no_shape, json_object_del (slm_parts_find (parts, "norm.weight"), "shape"))
LIE (shape, set_entry (parts, "norm.weight", "shape", json_pack ("[i]", 6)))
LIE (zero, set_entry (parts, "norm.weight", "shape", json_pack ("[i]", 0)))
LIE (negative, set_entry (parts, "norm.weight", "shape", json_pack ("[i]", -1)))
LIE (fraction, set_entry (parts, "norm.weight", "shape", json_pack ("[f]", 5.0)))
LIE (too_large,
    set_entry (parts, "norm.weight", "shape",
        json_pack ("[II]", (json_int_t) 1 << 32, (json_int_t) 1 << 32)))
LIE (rank,
    set_entry (parts, "norm.weight", "shape", json_pack ("[iiiiiiiii]", 1, 1, 1, 1, 1, 1, 1, 1, 5)))
LIE (hash,
    set_entry (parts, "norm.weight", "xxh3", json_string ("0123456789abcdef0123456789ABCDEF")))
LIE (short_hash, set_entry (parts, "norm.weight", "xxh3", json_string ("0123")))
LIE (wrong_hash,
    set_entry (parts, "norm.weight", "xxh3", json_string ("0123456789abcdef0123456789abcdef")))
LIE (entry_key, set (slm_parts_find (parts, "norm.weight"), "zero_point", json_integer (8)))
LIE (scheme_key,
    set (json_object_get (slm_parts_find (parts, "rows.weight"), "quantisation"), "zero_point",
        json_integer (8)))
LIE (scale_shape, set_entry (parts, "rows.weight.scale", "shape", json_pack ("[ii]", 3, 1)))
LIE (scale_name, set_entry (parts, "rows.weight.scale", "name", json_string ("rows.weight.scales")))
LIE (twice, set_entry (parts, "taps.weight", "name", json_string ("norm.weight")))
LIE (file, set_entry (parts, "files/tokenizer.json", "name", json_string ("files/../passwd")))
LIE (file_type, set_entry (parts, "files/tokenizer.json", "dtype", json_string ("I8")))
LIE (padding_name, set_entry (parts, "taps.weight", "name", json_string ("padding/9")))
LIE (blank_name, set_entry (parts, "taps.weight", "name", json_string ("a b")))

static void
lie_last_scale (SlmParts *parts)
{
  json_t *tensors = json_object_get (parts->manifest, "tensors");

  json_array_remove (tensors, json_array_size (tensors) - 1);
  json_array_remove (tensors, json_array_size (tensors) - 1);
}

static void
lie_missing (SlmParts *parts)
{
  json_array_append_new (json_object_get (parts->manifest, "tensors"),
      json_pack ("{s:s, s:s, s:[i], s:s}", "name", "more.weight", "dtype", "F16", "shape", 1,
          "xxh3", "0123456789abcdef0123456789abcdef"));
}

static void
lie_unlisted (SlmParts *parts)
{
  json_array_remove (json_object_get (parts->manifest, "tensors"), 2);
}

/* The header beside it. */
LIE (metadata, set (json_object_get (parts->header, "__metadata__"), "more", json_string ("")))
LIE (format, set (json_object_get (parts->header, "__metadata__"), "format", json_string ("np")))
LIE (no_metadata, json_object_del (parts->header, "__metadata__"))

static void
lie_surplus (SlmParts *parts)
{
  json_int_t end = parts->data->len;

  g_byte_array_set_size (parts->data, end + 2);
  memset (parts->data->data + end, 0, 2);
  set (parts->header, "surplus.weight",
      json_pack (
          "{s:s, s:[i], s:[I, I]}", "dtype", "F16", "shape", 1, "data_offsets", end, end + 2));
}

LIE (header_type, set (json_object_get (parts->header, "rows.weight"), "dtype", json_string ("U8")))
LIE (header_shape,
    set (json_object_get (parts->header, "rows.weight"), "shape", json_pack ("[ii]", 7, 3)))

static void
lie_renamed (SlmParts *parts)
{
  json_t *entry = json_incref (json_object_get (parts->header, "norm.weight"));

  json_object_del (parts->header, "norm.weight");
  set (parts->header, "other.weight", entry);
}

/* Two tensors of the same form change places. */
static void
lie_swapped (SlmParts *parts)
{
  json_t *one = json_incref (json_object_get (parts->header, "padding/0"));
  json_t *other = json_incref (json_object_get (parts->header, "padding/1"));

  set (parts->header, "padding/0", other);
  set (parts->header, "padding/1", one);
}

/* Values that no writer makes, under checksums that are right. */
static void
put_half (SlmParts *parts, const gchar *name, guint16 half)
{
  half = GUINT16_TO_LE (half);
  memcpy (slm_parts_payload (parts, name) + 2, &half, 2);
  slm_parts_rehash (parts, name);
}

static void
put_byte (SlmParts *parts, const gchar *name, gsize at, guint8 byte)
{
  slm_parts_payload (parts, name)[at] = byte;
  slm_parts_rehash (parts, name);
}

LIE (nan, put_half (parts, "rows.weight.scale", 0x7e00))
LIE (infinity, put_half (parts, "groups.weight.scale", 0x7c00))
LIE (minus, put_half (parts, "groups.weight.scale", 0xbc00))
LIE (minus_zero, put_half (parts, "rows.weight.scale", 0x8000))
LIE (minus_128, put_byte (parts, "rows.weight", 9, 0x80))
LIE (low_zero, put_byte (parts, "groups.weight", 65 + 3, 0x80))
LIE (high_zero, put_byte (parts, "groups.weight", 65 + 3, 0x08))
LIE (spare, put_byte (parts, "odd.weight", 5, 0x91))
LIE (padding, *slm_parts_payload (parts, "padding/1") = 1)

/* Lies about integers of any format. */
#define SET(NAME, KEY, VALUE) set_entry (parts, NAME, KEY, VALUE)

LIE (bits, SET ("five.weight", "bits", json_integer (7)))
LIE (bits_text, SET ("five.weight", "bits", json_string ("5")))
LIE (other_bits, SET ("five.weight", "bits", json_integer (6)))
LIE (group, SET ("five.weight", "group", json_integer (24)))
LIE (group_zero, SET ("five.weight", "group", json_integer (0)))
LIE (group_large, SET ("codes.weight", "group", json_integer (512)))
LIE (group_huge, SET ("five.weight", "group", json_integer (((json_int_t) 1 << 32) + 16)))
LIE (group_of_row,
    set (json_object_get (slm_parts_find (parts, "row.weight"), "quantisation"), "group",
        json_integer (16)))
LIE (no_group,
    json_object_del (
        json_object_get (slm_parts_find (parts, "five.weight"), "quantisation"), "group"))
LIE (scale_kind, SET ("five.weight", "scale", json_string ("f64")))
LIE (other_scale, SET ("five.weight", "scale", json_string ("f32")))
LIE (minimum, SET ("five.weight", "minimum", json_integer (1)))
LIE (minimum_of_bytes, SET ("bytes.weight", "minimum", json_true ()))
LIE (minimum_of_row, SET ("row.weight", "minimum", json_true ()))
LIE (integers_key,
    set (json_object_get (slm_parts_find (parts, "five.weight"), "quantisation"), "zero_point",
        json_integer (8)))
LIE (integers_columns, SET ("five.weight", "columns", json_integer (39)))
LIE (min_name, SET ("five.weight.min", "name", json_string ("five.weight.mins")))
LIE (super_shape, SET ("codes.weight.super_min", "shape", json_pack ("[ii]", 1, 2)))
LIE (plain_f32, SET ("bytes.weight.scale", "name", json_string ("bytes.scale")))
LIE (scale_type, SET ("bytes.weight.scale", "dtype", json_string ("F16")))
LIE (spare_five, put_byte (parts, "five.weight", 23, 0x80))
LIE (spare_four, put_byte (parts, "codes.weight", 16, 0x10))
LIE (nan_half, put_half (parts, "five.weight.min", 0x7e00))
LIE (infinite_super, put_half (parts, "codes.weight.super_scale", 0xfc00))
LIE (nan_float, put_byte (parts, "row.weight.scale", 6, 0xc0);
     put_byte (parts, "row.weight.scale", 7, 0xff))

static const struct
{
  const gchar *name;
  Lie lie;
  gboolean integers; /* about a matrix of slm_fixture_integers */
  gint code;
  const gchar *part;
} lies[] = {
#define CASE(NAME, CODE, PART)                                                                     \
  {                                                                                                \
#NAME, lie_##NAME, FALSE, VLM_ERROR_##CODE, PART                                               \
  }
  CASE (version, UNSUPPORTED, "format_version is 3, expected 2"),
  CASE (version_text, UNSUPPORTED, "format_version is \"2\", expected 2"),
  CASE (no_version, UNSUPPORTED, "format_version is absent, expected 2"),
  CASE (family, UNSUPPORTED, "model_family is \"llama\", expected \"lfm2\" or \"lfm2_vl\""),
  CASE (no_family, UNSUPPORTED, "model_family is absent"),
  CASE (layer, UNSUPPORTED, "layer_types[1] is \"mamba\", expected \"conv\" or \"full_attention\""),
  CASE (no_layers, FORMAT, "layer_types is []"),
  CASE (layers_text, FORMAT, "layer_types is \"conv\""),
  CASE (key, UNSUPPORTED, "rope is 1, expected no key of this name"),
  CASE (no_tensors, FORMAT, "tensors is absent"),
  CASE (no_json, FORMAT, "manifest:1:"),
  CASE (array, FORMAT, "manifest: not a JSON object"),
  CASE (key_twice, FORMAT, "duplicate"),
  CASE (empty_entry, FORMAT, "is no object"),

  CASE (scheme, UNSUPPORTED,
      "(rows.weight).quantisation.scheme is \"int7-row\", expected \"int8-row\" or"),
  CASE (other_scheme, FORMAT, "(rows.weight).quantisation.columns is 7"),
  CASE (columns, FORMAT, "(rows.weight).quantisation.columns is 8"),
  CASE (odd_columns, FORMAT, "(groups.weight).quantisation.columns is 131"),
  CASE (dtype, UNSUPPORTED, "dtype is \"BF16\", expected \"F32\" or \"F16\" or \"U8\" or"),
  CASE (plain_u8, FORMAT, "tensor norm.weight is U8 [5] in the manifest, expected F16"),
  CASE (no_scheme, FORMAT, "tensor rows.weight is I8 [3, 7] in the manifest, expected F16"),
  CASE (no_shape, FORMAT, "(norm.weight).shape is absent"),
  CASE (shape, FORMAT, "tensor norm.weight is F16 [5] at byte"),
  CASE (zero, FORMAT, "(norm.weight).shape is [0]"),
  CASE (negative, FORMAT, "(norm.weight).shape is [-1]"),
  CASE (fraction, FORMAT, "(norm.weight).shape is [5.0]"),
  CASE (too_large, FORMAT, "(norm.weight).shape is [4294967296,4294967296]"),
  CASE (rank, FORMAT, "(norm.weight).shape is [1,1,1,1,1,1,1,1,5]"),
  CASE (hash, FORMAT, "(norm.weight).xxh3 is \"0123456789abcdef0123456789ABCDEF\""),
  CASE (short_hash, FORMAT, "(norm.weight).xxh3 is \"0123\""),
  CASE (wrong_hash, FORMAT, "tensor norm.weight is damaged"),
  CASE (entry_key, UNSUPPORTED, "(norm.weight).zero_point is 8"),
  CASE (scheme_key, UNSUPPORTED, "(rows.weight).quantisation.zero_point is 8"),
  CASE (scale_shape, FORMAT, "tensor rows.weight.scale is F16 [3, 1] in the manifest, expected"),
  CASE (scale_name, FORMAT, "tensor rows.weight is followed by rows.weight.scales in the"),
  CASE (twice, FORMAT, "tensor norm.weight is there twice"),
  CASE (file, FORMAT, "tensor files/../passwd is U8 [2] in the manifest, expected no file"),
  CASE (file_type, FORMAT, "tensor files/tokenizer.json is I8 [2]"),
  CASE (padding_name, FORMAT, "tensor padding/9 is"),
  CASE (blank_name, FORMAT, "expected a name of plain characters"),
  CASE (last_scale, FORMAT, "tensor odd.weight is followed by nothing"),
  CASE (missing, FORMAT, "tensor more.weight is in the manifest, but missing in the header"),
  CASE (unlisted, FORMAT, "tensor norm.weight is in the header, but has no place in the manifest"),

  CASE (metadata, FORMAT, "__metadata__ has 4 keys"),
  CASE (format, FORMAT, "__metadata__"),
  CASE (no_metadata, UNSUPPORTED, "without a manifest"),
  CASE (surplus, FORMAT, "tensor surplus.weight is in the header, but has no place"),
  CASE (header_type, FORMAT, "tensor rows.weight is U8 [3, 7] at byte"),
  CASE (header_shape, FORMAT, "tensor rows.weight is I8 [7, 3] at byte"),
  CASE (renamed, FORMAT, "tensor other.weight is in the header, but has no place"),
  CASE (swapped, FORMAT, "tensor padding/"),

  CASE (nan, FORMAT, "value 1 of tensor rows.weight.scale is nan, expected a finite scale"),
  CASE (infinity, FORMAT, "value 1 of tensor groups.weight.scale is inf"),
  CASE (minus, FORMAT, "value 1 of tensor groups.weight.scale is -1"),
  CASE (minus_zero, FORMAT, "value 1 of tensor rows.weight.scale is -0"),
  CASE (minus_128, FORMAT, "row 1 of tensor rows.weight has the integer -128, expected -127..127"),
  CASE (low_zero, FORMAT, "row 1 of tensor groups.weight has the integer -8, expected -7..7"),
  CASE (high_zero, FORMAT, "row 1 of tensor groups.weight has the integer -8"),
  CASE (spare, FORMAT, "row 1 of tensor odd.weight ends with 4 spare bits of 9, expected 8"),
  CASE (padding, FORMAT, "tensor padding/1 is damaged: byte 0 is 1, expected 0"),
#undef CASE

#define CASE(NAME, CODE, PART)                                                                     \
  {                                                                                                \
#NAME, lie_##NAME, TRUE, VLM_ERROR_##CODE, PART                                                \
  }
  CASE (bits, UNSUPPORTED,
      "(five.weight).quantisation: integers of 7 bits with scale f16, group 16 and minimum true"),
  CASE (bits_text, FORMAT, "(five.weight).quantisation.bits is \"5\""),
  CASE (other_bits, FORMAT, "(five.weight).quantisation.columns is 37"),
  CASE (group, UNSUPPORTED, "group 24 and minimum true are not known"),
  CASE (group_zero, FORMAT, "(five.weight).quantisation.group is 0"),
  CASE (group_large, UNSUPPORTED, "scale codes, group 512"),
  CASE (group_huge, UNSUPPORTED, "group 4294967312"),
  CASE (group_of_row, FORMAT, "(row.weight).quantisation.group is 16"),
  CASE (no_group, FORMAT, "(five.weight).quantisation.group is absent"),
  CASE (scale_kind, UNSUPPORTED, "quantisation.scale is \"f64\", expected \"row\" or \"f16\""),
  CASE (
      other_scale, FORMAT, "tensor five.weight.scale is F16 [3, 3] in the manifest, expected F32"),
  CASE (minimum, FORMAT, "(five.weight).quantisation.minimum is 1, expected true or false"),
  CASE (minimum_of_bytes, UNSUPPORTED, "integers of 8 bits with scale f32, group 16 and minimum"),
  CASE (minimum_of_row, UNSUPPORTED, "integers of 6 bits with scale row, group 0 and minimum true"),
  CASE (integers_key, UNSUPPORTED, "(five.weight).quantisation.zero_point is 8"),
  CASE (integers_columns, FORMAT, "(five.weight).quantisation.columns is 39"),
  CASE (min_name, FORMAT,
      "tensor five.weight.scale is followed by five.weight.mins in the manifest, expected "
      "five.weight.min"),
  CASE (super_shape, FORMAT,
      "tensor codes.weight.super_min is F16 [1, 2] in the manifest, expected F16 [2, 1]"),
  CASE (plain_f32, FORMAT, "tensor bytes.weight is followed by bytes.scale in the manifest"),
  CASE (
      scale_type, FORMAT, "tensor bytes.weight.scale is F16 [2, 2] in the manifest, expected F32"),
  CASE (spare_five, FORMAT, "row 0 of tensor five.weight ends with 7 spare bits of 64, expected 0"),
  CASE (spare_four, FORMAT, "row 0 of tensor codes.weight ends with 4 spare bits of 1, expected 0"),
  CASE (nan_half, FORMAT, "value 1 of tensor five.weight.min is nan, expected a finite number"),
  CASE (infinite_super, FORMAT, "value 1 of tensor codes.weight.super_scale is -inf, expected a"),
  CASE (nan_float, FORMAT, "value 1 of tensor row.weight.scale is -nan, expected a finite number"),
#undef CASE
};

static void
test_lie (gconstpointer data)
{
  guint i = GPOINTER_TO_UINT (data);

  expect_lie (lies[i].lie, lies[i].integers, lies[i].code, lies[i].part);
}

/* ---- The loader --------------------------------------------------------------------------- */

static FixtureModel *
new_model (void)
{
  FixtureModel *model = fixture_model_new (TRUE);

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  fixture_save (model);
  return model;
}

/* What a flipped bit does to a whole model: nothing of it is used. */
static void
test_loader (void)
{
  g_autoptr (FixtureModel) model = new_model ();
  g_autofree gchar *path = g_build_filename (model->directory, "victim.slm", NULL);
  g_autofree gchar *bytes = NULL;
  g_autoptr (GRand) random = g_rand_new_with_seed (3);
  gsize size;
  guint i;
  int fd;

  slm_fixture_convert (model, path, VLM_SLM_INT4);
  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  fd = g_open (path, O_WRONLY | O_CLOEXEC, 0);
  for (i = 0; i < 250; i++) {
    gsize at = g_rand_int_range (random, 0, size);
    gchar byte = bytes[at] ^ 1 << g_rand_int_range (random, 0, 8);
    g_autoptr (GError) error = NULL;

    g_assert_cmpint (pwrite (fd, &byte, 1, at), ==, 1);
    if (vlm_model_load (path, NULL, NULL, NULL, NULL, &error) != NULL)
      g_error ("a flipped bit in byte %" G_GSIZE_FORMAT " went unnoticed", at);
    g_assert_nonnull (strstr (error->message, "victim.slm"));
    g_assert_cmpint (pwrite (fd, &bytes[at], 1, at), ==, 1);
  }
  close (fd);
}

/* Tensors that the network does not use are verified all the same. */
static void
test_unused_tensor (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "victim.slm", NULL);
  g_autofree gchar *copy = g_build_filename (model->directory, "copy.slm", NULL);
  const gchar *name = "model.vision_tower.vision_model.head.probe";
  const VlmConvertOptions options = { VLM_WEIGHT_INT8, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  g_autoptr (SlmParts) parts = NULL;
  g_autoptr (GError) error = NULL, other = NULL;
  VlmModel *loaded;

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  fixture_add (model, name, VLM_DTYPE_F16, 1, 16, 0, 0);
  fixture_save (model);
  slm_fixture_convert (model, path, VLM_SLM_INT8);
  loaded = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  vlm_model_unref (loaded);
  parts = slm_parts_load (path);
  *slm_parts_payload (parts, name) ^= 1;
  slm_parts_save (parts, path);
  g_assert_null (vlm_model_load (path, NULL, NULL, NULL, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, name);
  g_assert_false (vlm_model_convert (path, copy, &options, NULL, NULL, NULL, &other));
  fixture_assert_message (other, VLM_ERROR_FORMAT, name);
}

static void
expect_checkpoint_lie (Lie lie, gint code, const gchar *part)
{
  g_autoptr (FixtureModel) model = new_model ();
  g_autofree gchar *path = g_build_filename (model->directory, "victim.slm", NULL);
  g_autoptr (SlmParts) parts = NULL;
  g_autoptr (GError) error = NULL;

  slm_fixture_convert (model, path, VLM_SLM_INT8);
  parts = slm_parts_load (path);
  lie (parts);
  slm_parts_save (parts, path);
  g_assert_null (vlm_checkpoint_open (path, NULL, &error));
  fixture_assert_message (error, code, part);
  fixture_assert_message (error, code, "victim.slm");
}

LIE (text_family, set (parts->manifest, "model_family", json_string ("lfm2")))
LIE (one_layer, set (parts->manifest, "layer_types", json_pack ("[s]", "conv")))
LIE (other_layers, set (parts->manifest, "layer_types", json_pack ("[ss]", "conv", "conv")))

/* What the manifest says of the network must be what config.json says. */
static void
test_config_lies (void)
{
  expect_checkpoint_lie (lie_text_family, VLM_ERROR_FORMAT,
      "model_family is lfm2 in the manifest, model_type lfm2_vl in config.json");
  expect_checkpoint_lie (lie_one_layer, VLM_ERROR_FORMAT,
      "layer_types has 1 entries in the manifest, 2 in config.json");
  expect_checkpoint_lie (lie_other_layers, VLM_ERROR_FORMAT,
      "layer_types[1] is conv in the manifest, full_attention in config.json");
}

/* ---- What is no .slm file at all ---------------------------------------------------------- */

static void
expect_unknown (gconstpointer bytes, gsize size, const gchar *part)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "thing", NULL);
  g_autoptr (GError) checked = NULL, opened = NULL;

  fixture_write (directory, "thing", bytes, size);
  g_assert_false (vlm_model_check_path (path, NULL, &checked));
  fixture_assert_message (checked, VLM_ERROR_UNSUPPORTED, part);
  g_assert_null (vlm_checkpoint_open (path, NULL, &opened));
  fixture_assert_message (opened, VLM_ERROR_UNSUPPORTED, part);
  fixture_directory_remove (directory);
}

static void
test_unknown_files (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  g_autofree gchar *path = g_build_filename (model->directory, "model.safetensors", NULL);
  g_autoptr (GError) error = NULL;

  expect_unknown ("", 0, "is neither a model directory nor a file of a known format: it is empty");
  expect_unknown ("GGML\3\0\0\0\0\0\0\0", 12, "begins with 47 47 4d 4c 03 00 00 00 \"GGML....\"");
  expect_unknown ("CELLN\1", 6, "begins with 43 45 4c 4c 4e 01 \"CELLN.\"");
  expect_unknown ("\200\0\0\0\0\0\0\0", 8, "begins with 80 00");

  fixture_save (model);
  g_assert_false (vlm_model_check_path (path, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "by naming their directory");
}

/* Integers are for .slm files alone. */
static void
test_plain_integers (void)
{
  static const gchar header[] = "{\"x\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}";
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  g_autoptr (GError) error = NULL;

  fixture_save (model);
  fixture_write_raw (
      model->directory, "model.safetensors", strlen (header), header, strlen (header), 8);
  g_assert_null (vlm_checkpoint_open (model->directory, NULL, &error));
  fixture_assert_message (
      error, VLM_ERROR_UNSUPPORTED, "tensor x has dtype I8, expected F32, F16 or BF16");
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const gchar *path;
    GTestDataFunc func;
  } twice[] = { { "/slm/damage/every-bit", test_every_bit }, { "/slm/damage/names", test_names },
    { "/slm/damage/truncated", test_truncated }, { "/slm/damage/longer", test_longer },
    { "/slm/lies/none", test_no_lie } };
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (twice); i++) {
    g_autofree gchar *path = g_strconcat (twice[i].path, "-of-integers", NULL);

    g_test_add_data_func (twice[i].path, GINT_TO_POINTER (FALSE), twice[i].func);
    g_test_add_data_func (path, GINT_TO_POINTER (TRUE), twice[i].func);
  }
  g_test_add_func ("/slm/damage/cut-while-open", test_cut_while_open);
  for (i = 0; i < G_N_ELEMENTS (lies); i++) {
    g_autofree gchar *path = g_strconcat ("/slm/lies/", lies[i].name, NULL);

    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_lie);
  }
  g_test_add_func ("/slm/lies/config", test_config_lies);
  g_test_add_func ("/slm/loader/flipped-bits", test_loader);
  g_test_add_func ("/slm/loader/unused-tensor", test_unused_tensor);
  g_test_add_func ("/slm/unknown-files", test_unknown_files);
  g_test_add_func ("/slm/plain-integers", test_plain_integers);
  return g_test_run ();
}
