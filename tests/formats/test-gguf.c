/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The GGUF container: headers that lie, values, models in several files, time and memory. */

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/vlm.h"
#include "gguf-fixture.h"

#define FILE_NAME "model.gguf"

typedef struct
{
  const gchar *name;
  const gchar *recipe;
  gint code;         /* -1: is accepted */
  const gchar *part; /* of the message */
} Case;

/* Version 3, with so many tensors and keys. */
#define HEAD(tensors, keys) "GGUF u32:3 u64:" tensors " u64:" keys " "
#define KEY_U8(name) "s:" name " u32:0 u8:1 "
#define ARRAY(name, element, n) "s:" name " u32:9 u32:" element " u64:" n " "
#define TENSOR(name, rank, dims, type, offset)                                                     \
  "s:" name " u32:" rank " " dims " u32:" type " u64:" offset " "
/* The last tensor of a file, and the data of all. */
#define LAST(name, rank, dims, type, offset, n_data)                                               \
  "s:" name " u32:" rank " " dims " u32:" type " u64:" offset " pad:32 zeros:" n_data

#define D4 "u64:4"
#define N63 "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJK"

static const Case cases[] = {
  /* Good ones. */
  { "empty", HEAD ("0", "0"), -1, NULL },
  { "version-2", "GGUF u32:2 u64:0 u64:0", -1, NULL },
  { "one", HEAD ("1", "1") KEY_U8 ("k") LAST ("t", "1", D4, "0", "0", "32"), -1, NULL },
  { "long-name", HEAD ("1", "0") LAST (N63, "1", D4, "0", "0", "32"), -1, NULL },
  { "alignment-64",
      HEAD ("1", "1") "s:general.alignment u32:4 u32:64 s:t u32:1 u64:4 u32:0 u64:0 pad:64 "
                      "zeros:64",
      -1, NULL },
  { "rest-behind", HEAD ("1", "0") LAST ("t", "1", D4, "0", "0", "33"), -1, NULL },

  /* Start. */
  { "nothing", "", VLM_ERROR_FORMAT, "start: needs 4 bytes, but the file has only 0 more" },
  { "other-magic", "GGML u32:3 u64:0 u64:0", VLM_ERROR_FORMAT, "no \"GGUF\" there" },
  { "version-0", "GGUF u32:0 u64:0 u64:0", VLM_ERROR_UNSUPPORTED, "version 0, expected 2 or 3" },
  { "version-1", "GGUF u32:1 u32:0 u32:0", VLM_ERROR_UNSUPPORTED, "version 1, expected 2 or 3" },
  { "version-4", "GGUF u32:4 u64:0 u64:0", VLM_ERROR_UNSUPPORTED, "version 4, expected 2 or 3" },
  { "big-endian", "GGUF u32:0x03000000 u64:0 u64:0", VLM_ERROR_UNSUPPORTED,
      "is big-endian (version 3)" },

  /* Counts. */
  { "many-keys", HEAD ("0", "0x1000000000000000"), VLM_ERROR_FORMAT,
      "number of keys: is 1152921504606846976, expected at most 16384" },
  { "keys-beyond-end", HEAD ("0", "16384"), VLM_ERROR_FORMAT,
      "number of keys: is 16384, but the file has only 0 more bytes" },
  { "negative-keys", HEAD ("0", "-1"), VLM_ERROR_FORMAT, "is 18446744073709551615, expected at" },
  { "many-tensors", HEAD ("0x2000000000000000", "0"), VLM_ERROR_FORMAT,
      "number of tensors: is 2305843009213693952, expected at most 16384" },
  { "tensors-beyond-end", HEAD ("16384", "0"), VLM_ERROR_FORMAT,
      "number of tensors: is 16384, but the file has only 8 more bytes" },

  /* Strings. */
  { "long-key", HEAD ("0", "1") "u64:0x8000000000000000 zeros:64", VLM_ERROR_FORMAT,
      "its name has 9223372036854775808 bytes, expected 1..1024" },
  { "key-beyond-end", HEAD ("0", "1") "u64:1000 zeros:64", VLM_ERROR_FORMAT,
      "needs 1000 bytes, but the file has only 64 more" },
  { "long-string", HEAD ("0", "1") "s:k u32:8 u64:0x8000000000000000 zeros:64", VLM_ERROR_FORMAT,
      "key k: needs 9223372036854775808 bytes, but the file has only 64 more" },
  { "string-of-900-mb", HEAD ("0", "1") "s:k u32:8 u64:900000000 zeros:55", VLM_ERROR_FORMAT,
      "key k: needs 900000000 bytes, but the file has only 55 more" },
  { "all-ones-string", HEAD ("0", "1") "s:k u32:8 u64:-1 zeros:64", VLM_ERROR_FORMAT,
      "key k: needs 18446744073709551615 bytes" },

  /* Keys. */
  { "empty-key", HEAD ("0", "1") "s: u32:0 u8:1 zeros:8", VLM_ERROR_FORMAT,
      "its name has 0 bytes, expected 1..1024" },
  { "key-no-utf8", HEAD ("0", "1") "s:a\377 u32:0 u8:1 zeros:8", VLM_ERROR_FORMAT,
      "key: its name is no UTF-8" },
  { "key-with-zero", HEAD ("0", "1") "u64:2 a u8:0 u32:0 u8:1 zeros:8", VLM_ERROR_FORMAT,
      "key: its name is no UTF-8, or has a zero byte" },
  { "duplicate-key", HEAD ("0", "3") KEY_U8 ("k") KEY_U8 ("j") KEY_U8 ("k"), VLM_ERROR_FORMAT,
      "key k is there twice" },
  { "unknown-value-type", HEAD ("0", "1") "s:k u32:13 zeros:16", VLM_ERROR_FORMAT,
      "key k: its type is 13, expected 0..12" },

  /* Arrays. */
  { "array-of-2-40", HEAD ("0", "1") ARRAY ("k", "0", "0x10000000000") "zeros:10", VLM_ERROR_FORMAT,
      "key k: needs 1099511627776 bytes, but the file has only 10 more" },
  { "array-of-2-63", HEAD ("0", "1") ARRAY ("k", "0", "0x8000000000000000") "zeros:10",
      VLM_ERROR_FORMAT, "key k: needs 9223372036854775808 bytes" },
  { "array-size-overflow", HEAD ("0", "1") ARRAY ("k", "10", "0x2000000000000001") "zeros:64",
      VLM_ERROR_FORMAT, "key k: needs 18446744073709551615 bytes" },
  { "strings-of-2-61", HEAD ("0", "1") ARRAY ("k", "8", "0x2000000000000000") "zeros:64",
      VLM_ERROR_FORMAT, "key k: needs 18446744073709551615 bytes" },
  { "strings-beyond-end", HEAD ("0", "1") ARRAY ("k", "8", "2") "s:abcdefgh u32:0",
      VLM_ERROR_FORMAT, "key k: needs 8 bytes, but the file has only 4 more" },
  { "nested-array", HEAD ("0", "1") ARRAY ("k", "9", "1") "u32:0 u64:1 u8:0", VLM_ERROR_FORMAT,
      "key k: is an array of arrays" },
  { "unknown-element", HEAD ("0", "1") ARRAY ("k", "99", "1") "zeros:16", VLM_ERROR_FORMAT,
      "key k: its type is 99" },

  /* Alignment. */
  { "alignment-string", HEAD ("0", "1") "s:general.alignment u32:8 s:32", VLM_ERROR_FORMAT,
      "key general.alignment is a string, expected an integer" },
  { "alignment-0", HEAD ("0", "1") "s:general.alignment u32:4 u32:0", VLM_ERROR_FORMAT,
      "key general.alignment is 0, expected 1..4294967295" },
  { "alignment-3", HEAD ("0", "1") "s:general.alignment u32:4 u32:3", VLM_ERROR_FORMAT,
      "key general.alignment is 3, expected a power of two" },
  { "alignment-u64", HEAD ("0", "1") "s:general.alignment u32:10 u64:32", VLM_ERROR_FORMAT,
      "expected a power of two of 32 bits" },

  /* Tensors: rank. */
  { "rank-0", HEAD ("1", "0") LAST ("t", "0", "u64:1", "0", "0", "32"), VLM_ERROR_FORMAT,
      "tensor t: has 0 dimensions, expected 1..4" },
  { "rank-5", HEAD ("1", "0") LAST ("t", "5", D4 " u64:1 u64:1 u64:1 u64:1", "0", "0", "32"),
      VLM_ERROR_FORMAT, "tensor t: has 5 dimensions, expected 1..4" },
  { "rank-9", HEAD ("1", "0") LAST ("t", "9", D4, "0", "0", "99"), VLM_ERROR_FORMAT,
      "tensor t: has 9 dimensions, expected 1..4" },
  { "rank-2-31", HEAD ("1", "0") LAST ("t", "0x80000000", D4, "0", "0", "99"), VLM_ERROR_FORMAT,
      "tensor t: has 2147483648 dimensions, expected 1..4" },
  /* Dimensions. */
  { "product-wraps",
      HEAD ("1", "0") LAST ("t", "2", "u64:0x40000000001 u64:0x400000", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t: its dimensions have a product beyond 2^63 - 1" },
  { "product-negative",
      HEAD ("1", "0") LAST ("t", "2", "u64:0x7fffffffffffffff u64:2", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t: its dimensions have a product beyond 2^63 - 1" },
  { "bytes-wrap", HEAD ("1", "0") LAST ("t", "1", "u64:0x4000000000000001", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t: has more than 2^63 - 1 bytes" },
  { "negative-dim", HEAD ("1", "0") LAST ("t", "2", "u64:-4 u64:1", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t: dimension 0 is -4, expected 1 or above" },
  { "zero-dim", HEAD ("1", "0") LAST ("t", "2", "u64:0 u64:4", "0", "0", "64"), VLM_ERROR_FORMAT,
      "tensor t: dimension 0 is 0, expected 1 or above" },
  { "zero-dim-last", HEAD ("1", "0") LAST ("t", "2", "u64:4 u64:0", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t: dimension 1 is 0" },
  /* Types. */
  { "unknown-type", HEAD ("1", "0") LAST ("t", "1", D4, "77", "0", "64"), VLM_ERROR_UNSUPPORTED,
      "tensor t: is of type 77, which is not known" },
  { "given-up-type", HEAD ("1", "0") LAST ("t", "1", D4, "4", "0", "64"), VLM_ERROR_UNSUPPORTED,
      "tensor t: is of type 4" },
  { "q4-k-rows-of-128", HEAD ("1", "0") LAST ("t", "2", "u64:128 u64:2", "12", "0", "160"),
      VLM_ERROR_FORMAT,
      "tensor t: has rows of 128 values, expected a multiple of 256 for type Q4_K" },
  { "q8-0-rows-of-48", HEAD ("1", "0") LAST ("t", "2", "u64:48 u64:2", "8", "0", "160"),
      VLM_ERROR_FORMAT, "has rows of 48 values, expected a multiple of 32 for type Q8_0" },
  /* Names. */
  { "empty-name", HEAD ("1", "0") LAST ("", "1", D4, "0", "0", "64"), VLM_ERROR_FORMAT,
      "tensor: its name has 0 bytes, expected 1..63" },
  { "name-of-64", HEAD ("1", "0") LAST (N63 "x", "1", D4, "0", "0", "32"), VLM_ERROR_FORMAT,
      "tensor: its name has 64 bytes, expected 1..63" },
  { "duplicate-tensor",
      HEAD ("2", "0") TENSOR ("t", "1", D4, "0", "0") LAST ("t", "1", D4, "0", "32", "64"),
      VLM_ERROR_FORMAT, "tensor t is there twice" },
  /* Places. */
  { "same-offset",
      HEAD ("2", "0") TENSOR ("t", "1", D4, "0", "0") LAST ("u", "1", D4, "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor u has offset 0, expected 32" },
  { "overlap", HEAD ("2", "0") TENSOR ("t", "1", D4, "0", "0") LAST ("u", "1", D4, "0", "16", "64"),
      VLM_ERROR_FORMAT, "tensor u has offset 16, expected 32" },
  { "gap", HEAD ("2", "0") TENSOR ("t", "1", D4, "0", "0") LAST ("u", "1", D4, "0", "64", "99"),
      VLM_ERROR_FORMAT, "tensor u has offset 64, expected 32" },
  { "offset-past-end", HEAD ("1", "0") LAST ("t", "1", D4, "0", "0x1000", "64"), VLM_ERROR_FORMAT,
      "tensor t has offset 4096, expected 0" },
  { "offset-all-ones", HEAD ("1", "0") LAST ("t", "1", D4, "0", "-1", "64"), VLM_ERROR_FORMAT,
      "tensor t has offset 18446744073709551615, expected 0" },
  { "data-beyond-end", HEAD ("1", "0") LAST ("t", "1", "u64:1000", "0", "0", "64"),
      VLM_ERROR_FORMAT,
      "tensor t needs 4000 bytes of data from 64 on, but the file has only 64: it is cut off" },
  { "terabytes", HEAD ("1", "0") LAST ("t", "2", "u64:0x100000 u64:0x100000", "0", "0", "64"),
      VLM_ERROR_FORMAT, "tensor t needs 4398046511104 bytes of data" },
  { "no-data", HEAD ("1", "0") "s:t u32:1 u64:4 u32:0 u64:0", VLM_ERROR_FORMAT,
      "tensor t needs 32 bytes of data" },
};

static VlmGguf *
open_bytes (const gchar *directory, const guint8 *bytes, gsize n, GError **error)
{
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);

  fixture_write (directory, FILE_NAME, n ? bytes : (const guint8 *) "", n);
  return vlm_gguf_open (path, error);
}

static void
test_case (gconstpointer data)
{
  const Case *it = data;
  gchar *directory = fixture_directory_new ();
  g_autoptr (GByteArray) bytes = gguf_bytes_new (it->recipe);
  g_autoptr (GError) error = NULL;
  gint64 start = fixture_get_time ();
  g_autoptr (VlmGguf) gguf = open_bytes (directory, bytes->data, bytes->len, &error);

  g_assert_cmpint (fixture_get_time () - start, <, 10000);
  if (it->code < 0)
    g_assert_no_error (error);
  else
    fixture_assert_message (error, it->code, it->part);
  g_assert_true (!gguf == (it->code >= 0));
  if (error)
    g_assert_nonnull (strstr (error->message, directory));
  fixture_directory_remove (directory);
}

/* ---- Values ------------------------------------------------------------------------------- */

/* One key of each type, and tensors of several. */
static GgufWriter *
make_writer (void)
{
  static const gint32 integers[] = { 0, -5, 8 };
  static const gfloat floats[] = { 0.5f, -1.5f };
  static const gchar *const strings[] = { "a", "", "\303\251" };
  static const guint64 dims[] = { 4, 2 }, blocks[] = { 32, 1, 3 };
  g_autofree guint8 *data = g_malloc0 (128);
  GgufWriter *writer = gguf_writer_new ();

  gguf_put_u32 (writer, "u32", 4000000000u);
  gguf_put_u16 (writer, "u16", 65535);
  gguf_put_f32 (writer, "f32", 1e-5f);
  gguf_put_bool (writer, "yes", TRUE);
  gguf_put_string (writer, "text", "hello");
  gguf_put_raw (writer, "i8", "u32:1 u8:-7");
  gguf_put_raw (writer, "i64", "u32:11 u64:-1");
  gguf_put_raw (writer, "u64", "u32:10 u64:-1");
  gguf_put_raw (writer, "f64", "u32:12 u64:0x3ff8000000000000");
  gguf_put_raw (writer, "bad-bool", "u32:7 u8:2");
  gguf_put_raw (writer, "bad-text", "u32:8 s:\377");
  gguf_put_raw (writer, "zero-text", "u32:8 u64:1 u8:0");
  gguf_put_f32 (writer, "nan", NAN);
  gguf_put_f32 (writer, "inf", INFINITY);
  gguf_put_i32s (writer, "integers", integers, 3);
  gguf_put_f32s (writer, "floats", floats, 2);
  gguf_put_strings (writer, "strings", strings, 3);
  gguf_put_raw (writer, "nothing", "u32:9 u32:8 u64:0");
  gguf_add_tensor (writer, "plain", 0, 2, dims, data, 32);
  gguf_add_tensor (writer, "blocks", 8, 3, blocks, data, 102);
  return writer;
}

static VlmGguf *
open_writer (const GgufWriter *writer, const gchar *directory)
{
  g_autoptr (GByteArray) bytes = gguf_writer_get_bytes (writer);
  g_autoptr (GError) error = NULL;
  VlmGguf *gguf = open_bytes (directory, bytes->data, bytes->len, &error);

  g_assert_no_error (error);
  return gguf;
}

static void
check_scalars (VlmGguf *gguf)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  guint64 number = 7;
  gdouble real = 7;
  gboolean flag = FALSE;

  g_assert_true (vlm_gguf_get_uint (gguf, "absent", 0, 1, &number, &error));
  g_assert_cmpuint (number, ==, 7);
  g_assert_true (vlm_gguf_get_uint (gguf, "u32", 0, G_MAXUINT32, &number, &error));
  g_assert_cmpuint (number, ==, 4000000000u);
  g_assert_true (vlm_gguf_get_uint (gguf, "u16", 0, 65535, &number, &error));
  g_assert_cmpuint (number, ==, 65535);
  g_assert_true (vlm_gguf_get_uint (gguf, "u64", 0, G_MAXUINT64, &number, &error));
  g_assert_cmpuint (number, ==, G_MAXUINT64);
  g_assert_true (vlm_gguf_get_double (gguf, "f32", 0, 1, &real, &error));
  g_assert_cmpfloat (real, ==, (gdouble) 1e-5f);
  g_assert_true (vlm_gguf_get_double (gguf, "f64", 0, 2, &real, &error));
  g_assert_cmpfloat (real, ==, 1.5);
  g_assert_true (vlm_gguf_get_double (gguf, "i8", -10, 0, &real, &error));
  g_assert_cmpfloat (real, ==, -7);
  g_assert_true (vlm_gguf_get_boolean (gguf, "yes", &flag, &error));
  g_assert_true (flag);
  g_assert_true (vlm_gguf_get_string (gguf, "absent", &text, &error));
  g_assert_null (text);
  g_assert_true (vlm_gguf_get_string (gguf, "text", &text, &error));
  g_assert_cmpstr (text, ==, "hello");
}

static void
check_arrays (VlmGguf *gguf)
{
  static const gchar *const expected[] = { "a", "", "\303\251" };
  g_autoptr (GError) error = NULL;
  const VlmGgufValue *value = NULL;
  const gchar *bytes;
  gsize position = 0, length;
  guint i;

  g_assert_true (vlm_gguf_get_integers (gguf, "integers", &value, &error));
  g_assert_cmpuint (value->n, ==, 3);
  g_assert_cmpint (vlm_gguf_value_get_integer (value, 1), ==, -5);
  g_assert_cmpint (vlm_gguf_value_get_integer (value, 2), ==, 8);
  g_assert_true (vlm_gguf_get_numbers (gguf, "integers", &value, &error));
  g_assert_cmpfloat (vlm_gguf_value_get_number (value, 1), ==, -5);
  g_assert_true (vlm_gguf_get_numbers (gguf, "floats", &value, &error));
  g_assert_cmpfloat (vlm_gguf_value_get_number (value, 1), ==, -1.5);
  g_assert_true (vlm_gguf_get_strings (gguf, "strings", &value, &error));
  for (i = 0; vlm_gguf_value_next_string (value, &position, &bytes, &length); i++)
    g_assert_cmpmem (bytes, length, expected[i], strlen (expected[i]));
  g_assert_cmpuint (i, ==, 3);
  g_assert_true (vlm_gguf_get_strings (gguf, "nothing", &value, &error));
  position = 0;
  g_assert_false (vlm_gguf_value_next_string (value, &position, &bytes, &length));
  g_assert_cmpint (vlm_gguf_value_get_integer (vlm_gguf_find (gguf, "u64"), 0), ==, G_MAXINT64);
  g_assert_null (vlm_gguf_find (gguf, "u6"));
}

static void
assert_failure (gboolean result, GError **error, const gchar *part)
{
  g_assert_false (result);
  fixture_assert_message (*error, VLM_ERROR_FORMAT, part);
  g_clear_error (error);
}

static void
check_wrong_types (VlmGguf *gguf)
{
  g_autofree gchar *text = NULL;
  const VlmGgufValue *value = NULL;
  GError *error = NULL;
  guint64 number;
  gdouble real;
  gboolean flag;

  assert_failure (vlm_gguf_get_uint (gguf, "text", 0, 9, &number, &error), &error,
      "model.gguf: key text is a string, expected an integer");
  assert_failure (vlm_gguf_get_uint (gguf, "yes", 0, 9, &number, &error), &error,
      "key yes is a bool, expected an integer");
  assert_failure (vlm_gguf_get_uint (gguf, "i64", 0, 9, &number, &error), &error,
      "key i64 is -1, expected 0..9");
  assert_failure (vlm_gguf_get_uint (gguf, "u64", 0, 9, &number, &error), &error,
      "key u64 is 18446744073709551615, expected 0..9");
  assert_failure (vlm_gguf_get_uint (gguf, "integers", 0, 9, &number, &error), &error,
      "key integers is an array, each element an i32, expected an integer");
  assert_failure (vlm_gguf_get_double (gguf, "nan", 0, 9, &real, &error), &error,
      "key nan is nan, expected 0..9");
  assert_failure (vlm_gguf_get_double (gguf, "inf", 0, INFINITY, &real, &error), &error,
      "key inf is inf, expected 0..inf");
  assert_failure (vlm_gguf_get_double (gguf, "text", 0, 9, &real, &error), &error,
      "key text is a string, expected a number");
  assert_failure (vlm_gguf_get_boolean (gguf, "u32", &flag, &error), &error,
      "key u32 is a u32, expected a bool");
  assert_failure (vlm_gguf_get_boolean (gguf, "bad-bool", &flag, &error), &error,
      "key bad-bool is a bool of 2, expected 0 or 1");
  assert_failure (vlm_gguf_get_string (gguf, "u32", &text, &error), &error,
      "key u32 is a u32, expected a string");
  assert_failure (
      vlm_gguf_get_string (gguf, "bad-text", &text, &error), &error, "key bad-text is no UTF-8");
  assert_failure (vlm_gguf_get_string (gguf, "zero-text", &text, &error), &error,
      "key zero-text is no UTF-8, or has a zero byte");
  assert_failure (vlm_gguf_get_integers (gguf, "u32", &value, &error), &error,
      "key u32 is a u32, expected an array of integers");
  assert_failure (vlm_gguf_get_integers (gguf, "floats", &value, &error), &error,
      "key floats is an array, each element an f32, expected an array of integers");
  assert_failure (vlm_gguf_get_numbers (gguf, "strings", &value, &error), &error,
      "key strings is an array, each element a string, expected an array of numbers");
  assert_failure (vlm_gguf_get_strings (gguf, "text", &value, &error), &error,
      "key text is a string, expected an array of strings");
}

static void
test_values (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = make_writer ();
  g_autoptr (VlmGguf) gguf = open_writer (writer, directory);

  g_assert_cmpuint (vlm_gguf_get_version (gguf), ==, 3);
  g_assert_cmpuint (vlm_gguf_get_n_files (gguf), ==, 1);
  g_assert_true (g_str_has_suffix (vlm_gguf_get_path (gguf), FILE_NAME));
  check_scalars (gguf);
  check_arrays (gguf);
  check_wrong_types (gguf);
  fixture_directory_remove (directory);
}

static void
test_tensors (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = make_writer ();
  g_autoptr (GByteArray) bytes = gguf_writer_get_bytes (writer);
  g_autoptr (VlmGguf) gguf = open_writer (writer, directory);
  const VlmGgufTensor *tensor;

  g_assert_cmpuint (vlm_gguf_get_n_tensors (gguf), ==, 2);
  tensor = vlm_gguf_get_tensor (gguf, 0);
  g_assert_cmpstr (tensor->name, ==, "plain");
  g_assert_cmpuint (tensor->n_bytes, ==, 32);
  g_assert_cmpuint (tensor->offset, ==, bytes->len - writer->data->len);
  tensor = vlm_gguf_find_tensor (gguf, "blocks");
  g_assert_true (tensor == vlm_gguf_get_tensor (gguf, 1));
  g_assert_cmpuint (tensor->type, ==, 8);
  g_assert_cmpstr (vlm_gguf_type_name (tensor->type), ==, "Q8_0");
  g_assert_cmpuint (tensor->rank, ==, 3);
  g_assert_cmpuint (tensor->dims[0], ==, 32);
  g_assert_cmpuint (tensor->dims[1], ==, 1);
  g_assert_cmpuint (tensor->dims[2], ==, 3);
  g_assert_cmpuint (tensor->n_bytes, ==, 102);
  g_assert_cmpuint (tensor->offset, ==, bytes->len - writer->data->len + 32);
  g_assert_null (vlm_gguf_find_tensor (gguf, "block"));
  g_assert_null (vlm_gguf_type_name (4));
  g_assert_null (vlm_gguf_type_name (4000));
  fixture_directory_remove (directory);
}

/* ---- Time and memory ---------------------------------------------------------------------- */

/* Ever shorter, so that it is the same file all the time. */
static void
test_prefixes (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);
  g_autoptr (GgufWriter) writer = make_writer ();
  g_autoptr (GByteArray) bytes = gguf_writer_get_bytes (writer);
  gsize n;

  gguf_writer_save (writer, directory, FILE_NAME);
  for (n = bytes->len; n-- > 0;) {
    g_autoptr (GError) error = NULL;
    gint64 start;

    g_assert_cmpint (truncate (path, n), ==, 0);
    start = fixture_get_time ();
    g_assert_null (vlm_gguf_open (path, &error));
    g_assert_cmpint (fixture_get_time () - start, <, 10000);
    g_assert_error (error, VLM_ERROR, VLM_ERROR_FORMAT);
  }
  fixture_directory_remove (directory);
}

/* The same in a process that may have little more memory than it has at the start. */
static void
test_prefix_memory (void)
{
  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 60 * G_USEC_PER_SEC, 0);
    g_test_trap_assert_passed ();
    return;
  }
  fixture_limit_memory (1 << 20);
  test_prefixes ();
}

/* So many tokens with so many merges. */
static void
put_vocabulary (GgufWriter *writer, guint n_tokens, guint n_merges)
{
  g_autofree const gchar **texts = g_new (const gchar *, n_tokens);
  g_autoptr (GStringChunk) chunk = g_string_chunk_new (1 << 20);
  g_autofree gint32 *types = g_new (gint32, n_tokens);
  guint i;

  for (i = 0; i < n_tokens; i++) {
    g_autofree gchar *text = g_strdup_printf ("token%u", i);

    texts[i] = g_string_chunk_insert (chunk, text);
    types[i] = 1;
  }
  gguf_put_strings (writer, "tokenizer.ggml.tokens", texts, n_tokens);
  gguf_put_i32s (writer, "tokenizer.ggml.token_type", types, n_tokens);
  gguf_put_strings (writer, "tokenizer.ggml.merges", texts, n_merges);
}

static void
test_large_vocabulary (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  const VlmGgufValue *value;
  g_autoptr (VlmGguf) gguf = NULL;
  gint64 start;

  put_vocabulary (writer, 200000, 100000);
  gguf_writer_save (writer, directory, FILE_NAME);
  start = fixture_get_time ();
  gguf = open_writer (writer, directory);
  g_assert_cmpint (fixture_get_time () - start, <, G_USEC_PER_SEC / 2);
  value = vlm_gguf_find (gguf, "tokenizer.ggml.merges");
  g_assert_cmpuint (value->n, ==, 100000);
  fixture_directory_remove (directory);
}

/* As many keys and tensors as there may be, twice in opposite orders: no search is quadratic. */
static void
test_many_names (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (VlmGguf) gguf = NULL;
  const guint64 dims[] = { 8 };
  const gfloat data[8] = { 0 };
  gint64 start;
  guint i;

  for (i = 0; i < 16384; i++) {
    g_autofree gchar *key = g_strdup_printf ("key%05u", i);
    g_autofree gchar *name = g_strdup_printf ("tensor%05u", 16383 - i);

    gguf_put_u32 (writer, key, i);
    gguf_add_tensor (writer, name, 0, 1, dims, data, sizeof (data));
  }
  start = fixture_get_time ();
  gguf = open_writer (writer, directory);
  g_assert_cmpint (fixture_get_time () - start, <, G_USEC_PER_SEC);
  g_assert_cmpuint (vlm_gguf_get_n_tensors (gguf), ==, 16384);
  g_assert_nonnull (vlm_gguf_find (gguf, "key16383"));
  g_assert_nonnull (vlm_gguf_find_tensor (gguf, "tensor00000"));
  fixture_directory_remove (directory);
}

/* ---- Several files ------------------------------------------------------------------------ */

typedef struct
{
  const gchar *name;
  const gchar *open;          /* which file is opened */
  const gchar *rename[2];     /* a file and its new name */
  guint no, count, n_tensors; /* what the second file says of itself; 3 tensors are right */
  gint code;
  const gchar *part;
} SplitCase;

#define PART1 "m-00001-of-00002.gguf"
#define PART2 "m-00002-of-00002.gguf"

static const SplitCase split_cases[] = {
  { "good", PART1, { NULL }, 1, 2, 3, -1, NULL },
  { "second", PART2, { NULL }, 1, 2, 3, VLM_ERROR_FORMAT,
      PART2 ": is file 2 of 2 of a model, expected the first one, whose name ends with "
            "-00001-of-00002.gguf" },
  { "missing", PART1, { PART2, "elsewhere.gguf" }, 1, 2, 3, VLM_ERROR_NOT_FOUND, PART2 },
  { "renamed", "m.gguf", { PART1, "m.gguf" }, 1, 2, 3, VLM_ERROR_FORMAT,
      "m.gguf: is the first of 2 files of a model, expected a name that ends with "
      "-00001-of-00002.gguf" },
  { "other-number", PART1, { NULL }, 0, 2, 3, VLM_ERROR_FORMAT,
      PART2 ": says that it is file 1 of 2, expected 2 of 2" },
  { "other-count", PART1, { NULL }, 1, 3, 3, VLM_ERROR_FORMAT,
      PART2 ": says that it is file 2 of 3, expected 2 of 2" },
  { "whole-file", PART1, { NULL }, 0, 0, 3, VLM_ERROR_FORMAT,
      PART2 ": says that it is file 1 of 0, expected 2 of 2" },
  { "number-beyond-count", PART1, { NULL }, 2, 2, 3, VLM_ERROR_FORMAT,
      PART2 ": key split.no is 2, expected 0..1" },
  { "count-of-tensors", PART1, { NULL }, 1, 2, 4, VLM_ERROR_FORMAT,
      "key split.tensors.count is 4, but the 2 files have 3 tensors" },
  { "same-tensor", PART1, { NULL }, 1, 2, 0, VLM_ERROR_FORMAT, "tensor t0 is there twice: in " },
};

/* A file of a split model, with tensors first .. first + n - 1. */
static void
save_part (const gchar *directory, const gchar *file, guint no, guint count, guint n_all,
    guint first, guint n)
{
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  const guint64 dims[] = { 4 };
  const gfloat data[4] = { first };
  guint i;

  gguf_put_u16 (writer, "split.no", no);
  gguf_put_u16 (writer, "split.count", count);
  gguf_put_raw (writer, "split.tensors.count", n_all == 4 ? "u32:5 u32:4" : "u32:5 u32:3");
  for (i = first; i < first + n; i++) {
    g_autofree gchar *name = g_strdup_printf ("t%u", i);

    gguf_add_tensor (writer, name, 0, 1, dims, data, sizeof (data));
  }
  gguf_writer_save (writer, directory, file);
}

static void
test_split (gconstpointer data)
{
  const SplitCase *it = data;
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, it->open, NULL);
  gboolean same = it->n_tensors == 0;
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;

  save_part (directory, PART1, 0, 2, it->n_tensors, 0, 1);
  save_part (directory, PART2, it->no, it->count, it->n_tensors, same ? 0 : 1, 2);
  if (it->rename[0]) {
    g_autofree gchar *from = g_build_filename (directory, it->rename[0], NULL);
    g_autofree gchar *to = g_build_filename (directory, it->rename[1], NULL);

    g_assert_cmpint (rename (from, to), ==, 0);
  }
  gguf = vlm_gguf_open (path, &error);
  if (it->code >= 0) {
    g_assert_null (gguf);
    fixture_assert_message (error, it->code, it->part);
  } else {
    g_assert_no_error (error);
    g_assert_cmpuint (vlm_gguf_get_n_files (gguf), ==, 2);
    g_assert_cmpuint (vlm_gguf_get_n_tensors (gguf), ==, 3);
    g_assert_cmpuint (vlm_gguf_find_tensor (gguf, "t0")->file, ==, 0);
    g_assert_cmpuint (vlm_gguf_find_tensor (gguf, "t2")->file, ==, 1);
    g_assert_true (g_str_has_suffix (vlm_file_get_path (vlm_gguf_get_file (gguf, 1)), PART2));
  }
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  gsize i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *path = g_strdup_printf ("/gguf/case/%s", cases[i].name);

    g_test_add_data_func (path, &cases[i], test_case);
  }
  for (i = 0; i < G_N_ELEMENTS (split_cases); i++) {
    g_autofree gchar *path = g_strdup_printf ("/gguf/split/%s", split_cases[i].name);

    g_test_add_data_func (path, &split_cases[i], test_split);
  }
  g_test_add_func ("/gguf/values", test_values);
  g_test_add_func ("/gguf/tensors", test_tensors);
  g_test_add_func ("/gguf/prefixes", test_prefixes);
  g_test_add_func ("/gguf/prefix-memory", test_prefix_memory);
  g_test_add_func ("/gguf/large-vocabulary", test_large_vocabulary);
  g_test_add_func ("/gguf/many-names", test_many_names);
  return g_test_run ();
}
