/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Containers that lie: every check of a safetensors header, and of an index with shards. */

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/formats/safetensors.h"
#include "engine/vlm.h"
#include "fixture.h"

#define FILE_NAME "model.safetensors"

typedef struct
{
  const gchar *name;
  const gchar *header;
  gsize n_data;
  gint code;         /* -1: is accepted */
  const gchar *part; /* of the message */
} Case;

#define T(name, dtype, shape, offsets)                                                             \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const Case cases[] = {
  /* Good ones. */
  { "empty", "{}", 0, -1, NULL },
  { "padding", "{" T ("a", "F32", "[4]", "[0,16]") "}     ", 16, -1, NULL },
  { "blanks", "{ \"a\" :\n{ \"shape\":[ 2 , 2 ],\t\"data_offsets\" : [0, 8],\r\"dtype\":\"F16\"} }",
      8, -1, NULL },
  { "scalar", "{" T ("a", "BF16", "[]", "[0,2]") "}", 2, -1, NULL },
  { "empty-tensor",
      "{" T ("a", "F32", "[0,4]", "[4,4]") "," T ("b", "F32", "[1]", "[0,4]") "," T (
          "c", "F32", "[1]", "[4,8]") "}",
      8, -1, NULL },
  { "any-order", "{" T ("b", "F32", "[1]", "[4,8]") "," T ("a", "F32", "[1]", "[0,4]") "}", 8, -1,
      NULL },
  { "metadata",
      "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"{[,\\\"\"}," T ("a", "F32", "[1]", "[0,4]") "}",
      4, -1, NULL },
  { "escapes", "{" T ("\\u0061\\n\\ud83d\\ude00\\\\", "F32", "[1]", "[0,4]") "}", 4, -1, NULL },

  /* Types. */
  { "unknown-dtype", "{" T ("a", "X9", "[4]", "[0,1000000]") "}", 16, VLM_ERROR_FORMAT,
      "tensor a: unknown dtype \"X9\"" },
  { "integer-dtype", "{" T ("a", "I64", "[2]", "[0,16]") "}", 16, VLM_ERROR_UNSUPPORTED,
      "tensor a has dtype I64, expected F32, F16 or BF16" },
  { "lower-case", "{" T ("a", "f32", "[4]", "[0,16]") "}", 16, VLM_ERROR_FORMAT, "\"f32\"" },

  /* Spans and shapes. */
  { "span", "{" T ("a", "F32", "[32,8]", "[0,65536]") "}", 65536, VLM_ERROR_FORMAT,
      "tensor a: data_offsets span 65536 bytes, expected 1024 for F32 [32, 8]" },
  { "one-offset", "{" T ("a", "F32", "[4]", "[0]") "}", 16, VLM_ERROR_FORMAT,
      "data_offsets has 1 numbers, expected 2" },
  { "no-offset", "{" T ("a", "F32", "[4]", "[]") "}", 16, VLM_ERROR_FORMAT,
      "data_offsets has 0 numbers, expected 2" },
  { "three-offsets", "{" T ("a", "F32", "[4]", "[0,16,16]") "}", 16, VLM_ERROR_FORMAT,
      "data_offsets has more than 2 numbers" },
  { "shape", "{" T ("a", "F32", "[4]", "[0,8]") "}", 8, VLM_ERROR_FORMAT,
      "span 8 bytes, expected 16 for F32 [4]" },
  { "product-overflow", "{" T ("a", "F32", "[4611686018427387905,4]", "[0,16]") "}", 16,
      VLM_ERROR_FORMAT, "beyond all bounds" },
  { "size-overflow", "{" T ("a", "F32", "[4611686018427387908]", "[0,16]") "}", 16,
      VLM_ERROR_FORMAT, "beyond all bounds" },
  { "number-overflow", "{" T ("a", "F32", "[18446744073709551620]", "[0,16]") "}", 16,
      VLM_ERROR_FORMAT, "number above 2^64 - 1" },
  { "rank-9", "{" T ("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "shape has more than 8 numbers" },

  /* Offsets. */
  { "inverted", "{" T ("a", "F32", "[4]", "[10,5]") "}", 16, VLM_ERROR_FORMAT,
      "tensor a: data_offsets [10, 5] end before they begin" },
  { "negative", "{" T ("a", "F32", "[4]", "[-1,4]") "}", 16, VLM_ERROR_FORMAT,
      "integer from 0 on expected" },
  { "past-the-end", "{" T ("a", "F32", "[4]", "[0,16]") "}", 15, VLM_ERROR_FORMAT,
      "tensor a has data_offsets [0, 16], but the file holds 15" },
  { "far-past-the-end",
      "{" T ("a", "F32", "[4]", "[18446744073709551599,18446744073709551615]") "}", 16,
      VLM_ERROR_FORMAT, "tensor a has data_offsets [18446744073709551599" },
  { "exponent", "{" T ("a", "F32", "[4]", "[0,1e1]") "}", 16, VLM_ERROR_FORMAT,
      "integer from 0 on expected" },
  { "real", "{" T ("a", "F32", "[4.0]", "[0,16]") "}", 16, VLM_ERROR_FORMAT,
      "integer from 0 on expected" },
  { "string-offset", "{" T ("a", "F32", "[4]", "[0,\"16\"]") "}", 16, VLM_ERROR_FORMAT,
      "integer from 0 on expected" },
  { "leading-zero", "{" T ("a", "F32", "[04]", "[0,16]") "}", 16, VLM_ERROR_FORMAT,
      "integer from 0 on expected" },
  { "null-shape", "{" T ("a", "F32", "null", "[0,16]") "}", 16, VLM_ERROR_FORMAT, "'[' expected" },

  /* Layout of the data. */
  { "overlap", "{" T ("a", "F32", "[2]", "[0,8]") "," T ("b", "F32", "[2]", "[4,12]") "}", 12,
      VLM_ERROR_FORMAT, "tensor b begins at 4, expected 8: it overlaps" },
  { "same-place", "{" T ("a", "F32", "[2]", "[0,8]") "," T ("b", "F32", "[2]", "[0,8]") "}", 8,
      VLM_ERROR_FORMAT, "it overlaps" },
  { "gap", "{" T ("a", "F32", "[1]", "[0,4]") "," T ("b", "F32", "[1]", "[8,12]") "}", 12,
      VLM_ERROR_FORMAT, "tensor b begins at 8, expected 4: there is a gap" },
  { "gap-at-start", "{" T ("a", "F32", "[1]", "[4,8]") "}", 8, VLM_ERROR_FORMAT,
      "tensor a begins at 4, expected 0" },
  { "rest-at-end", "{" T ("a", "F32", "[1]", "[0,4]") "}", 5, VLM_ERROR_FORMAT,
      "the tensors end at byte 4 of the data, the file at 5" },
  { "empty-within", "{" T ("a", "F32", "[2]", "[0,8]") "," T ("b", "F32", "[0]", "[4,4]") "}", 8,
      VLM_ERROR_FORMAT, "tensor b begins at 4, expected 8" },

  /* Names and nesting. */
  { "duplicate", "{" T ("a", "F32", "[1]", "[0,4]") "," T ("a", "F32", "[1]", "[4,8]") "}", 8,
      VLM_ERROR_FORMAT, "tensor a is there twice" },
  { "duplicate-by-escape",
      "{" T ("a", "F32", "[1]", "[0,4]") "," T ("\\u0061", "F32", "[1]", "[4,8]") "}", 8,
      VLM_ERROR_FORMAT, "tensor a is there twice" },
  { "duplicate-key",
      "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],"
      "\"data_offsets\":[0,4]}}",
      4, VLM_ERROR_FORMAT, "key \"dtype\" is there twice" },
  { "duplicate-metadata", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, VLM_ERROR_FORMAT,
      "__metadata__ is there twice" },
  { "duplicate-metadata-key", "{\"__metadata__\":{\"k\":\"1\",\"j\":\"\",\"k\":\"2\"}}", 0,
      VLM_ERROR_FORMAT, "key \"k\" of __metadata__ is there twice" },
  { "lone-high-surrogate", "{" T ("\\ud800", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "\\u escape" },
  { "lone-low-surrogate", "{" T ("\\udc00", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "\\u escape" },
  { "two-high-surrogates", "{" T ("\\ud800\\ud800", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "\\u escape" },
  { "zero-in-name", "{" T ("a\\u0000b", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "\\u escape" },
  { "short-escape", "{\"\\u12\"}", 0, VLM_ERROR_FORMAT, "\\u escape" },
  { "unknown-escape", "{" T ("\\x41", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "unknown escape" },
  { "control-character", "{" T ("a\nb", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "control character" },

  /* Grammar. */
  { "no-brace", " {}", 0, VLM_ERROR_FORMAT, "header byte 0: '{' expected" },
  { "array", "[]", 0, VLM_ERROR_FORMAT, "header byte 0: '{' expected" },
  { "byte-order-mark", "\357\273\277{}", 0, VLM_ERROR_FORMAT, "header byte 0: '{' expected" },
  { "invalid-utf8", "{" T ("a\377", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "header byte 3: not UTF-8" },
  { "surrogate-utf8", "{" T ("\355\240\200", "F32", "[1]", "[0,4]") "}", 4, VLM_ERROR_FORMAT,
      "not UTF-8" },
  { "rest-behind", "{}x", 0, VLM_ERROR_FORMAT, "something other than spaces" },
  { "newline-behind", "{}\n", 0, VLM_ERROR_FORMAT, "something other than spaces" },
  { "trailing-comma", "{" T ("a", "F32", "[1]", "[0,4]") ",}", 4, VLM_ERROR_FORMAT,
      "'\"' expected" },
  { "cut", "{" T ("a", "F32", "[1]", "[0,4]"), 4, VLM_ERROR_FORMAT, "ends where '}'" },
  { "cut-string", "{\"abc", 0, VLM_ERROR_FORMAT, "ends within a string" },
  { "metadata-number", "{\"__metadata__\":{\"format\":1}}", 0, VLM_ERROR_FORMAT, "'\"' expected" },
  { "metadata-nested", "{\"__metadata__\":{\"format\":{\"a\":\"b\"}}}", 0, VLM_ERROR_FORMAT,
      "'\"' expected" },
  { "metadata-string", "{\"__metadata__\":\"pt\"}", 0, VLM_ERROR_FORMAT, "'{' expected" },
  { "entry-number", "{\"a\":1}", 0, VLM_ERROR_FORMAT, "tensor a: '{' expected" },
  { "entry-empty", "{\"a\":{}}", 0, VLM_ERROR_FORMAT, "tensor a: no dtype" },
  { "no-shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, VLM_ERROR_FORMAT,
      "tensor a: no shape" },
  { "no-offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, VLM_ERROR_FORMAT,
      "tensor a: no data_offsets" },
  { "unknown-key", "{\"a\":{\"strides\":[1]}}", 4, VLM_ERROR_FORMAT, "unknown key \"strides\"" },
};

static VlmTensorSource *
open_header (const gchar *header, gsize size, gsize n_data, GError **error)
{
  gchar *directory = fixture_directory_new ();
  VlmTensorSource *source;

  fixture_write_raw (directory, FILE_NAME, size, header, size, n_data);
  source = vlm_safetensors_open (directory, error);
  fixture_directory_remove (directory);
  return source;
}

static void
test_header (gconstpointer data)
{
  const Case *example = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmTensorSource) source =
      open_header (example->header, strlen (example->header), example->n_data, &error);

  if (example->code < 0) {
    g_assert_no_error (error);
    g_assert_nonnull (source);
  } else {
    g_assert_null (source);
    fixture_assert_message (error, example->code, example->part);
    fixture_assert_message (error, example->code, FILE_NAME);
  }
}

static void
test_contents (void)
{
  static const gchar header[] = "{" T ("x.y", "BF16", "[2,3]", "[4,16]") "," T (
      "z", "F32", "[]", "[0,4]") "," T ("\\u00e4\\ud83d\\ude00", "F16", "[0]", "[16,16]") "}";
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmTensorSource) source = open_header (header, strlen (header), 16, &error);
  const VlmTensorInfo *info;

  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 3);
  info = vlm_tensor_source_get_nth (source, 0);
  g_assert_cmpstr (info->name, ==, "z");
  g_assert_cmpuint (info->rank, ==, 0);
  info = vlm_tensor_source_lookup (source, "x.y");
  g_assert_true (info == vlm_tensor_source_get_nth (source, 1));
  g_assert_cmpint (info->dtype, ==, VLM_DTYPE_BF16);
  g_assert_cmpuint (info->rank, ==, 2);
  g_assert_cmpuint (info->shape[0], ==, 2);
  g_assert_cmpuint (info->shape[1], ==, 3);
  g_assert_cmpuint (info->n_bytes, ==, 12);
  g_assert_cmpuint (info->offset, ==, 8 + strlen (header) + 4);
  g_assert_nonnull (vlm_tensor_source_lookup (source, "\303\244\360\237\230\200"));
  g_assert_null (vlm_tensor_source_lookup (source, "x"));
  g_assert_null (vlm_tensor_source_lookup (source, "zz"));
}

static void
expect_length_error (guint64 length, const gchar *header, const gchar *part)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (GError) error = NULL;

  fixture_write_raw (directory, FILE_NAME, length, header, strlen (header), 0);
  g_assert_null (vlm_safetensors_open (directory, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, part);
  fixture_directory_remove (directory);
}

static void
test_header_length (void)
{
  expect_length_error (3, "{}", "header length is 3, expected at most 2");
  expect_length_error (0, "{}", "header byte 0: '{' expected");
  expect_length_error (G_MAXUINT64, "{}", "header length is 18446744073709551615");
  expect_length_error (G_MAXUINT64 - 7, "{}", "header length is 18446744073709551608");
  expect_length_error (G_GUINT64_CONSTANT (1) << 63, "{}", "header length is 9223372036854775808");
}

/* A sparse file, so that nothing else can be the reason. */
static void
test_header_limit (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);
  g_autoptr (GError) error = NULL;

  fixture_write_raw (directory, FILE_NAME, 200000000, "{", 1, 0);
  g_assert_cmpint (truncate (path, 200000008), ==, 0);
  g_assert_null (vlm_safetensors_open (directory, &error));
  fixture_assert_message (
      error, VLM_ERROR_FORMAT, "header length is 200000000, expected at most 100000000");
  fixture_directory_remove (directory);
}

static void
test_nesting (void)
{
  g_autoptr (GString) header = g_string_new ("{\"a\":");
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 10000; i++)
    g_string_append_c (header, '[');
  g_assert_null (open_header (header->str, header->len, 0, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "tensor a: '{' expected");
}

static void
test_zero_byte (void)
{
  static const gchar header[] = "{\"a\0b\":1}";
  g_autoptr (GError) error = NULL;

  g_assert_null (open_header (header, sizeof (header) - 1, 0, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "header byte 3: not UTF-8");
}

static void
test_long_name (void)
{
  g_autofree gchar *name = g_strnfill (5000, 'n');
  g_autofree gchar *header = g_strdup_printf ("{\"%s\":1}", name);
  g_autoptr (GError) error = NULL;

  g_assert_null (open_header (header, strlen (header), 0, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "string of more than 1024 bytes");
  g_assert_cmpuint (strlen (error->message), <, 300);
}

/* Many tensors whose names fall together in GLib's string hash: time must not be quadratic. */
static void
test_many_tensors (void)
{
  g_autoptr (GString) header = g_string_new ("{");
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  clock_t start;
  guint i, bit;

  for (i = 0; i < 1 << 16; i++) {
    gchar name[33] = { 0 };

    for (bit = 0; bit < 16; bit++)
      memcpy (name + 2 * bit, i >> bit & 1 ? "bA" : "ab", 2);
    g_string_append_printf (header,
        "%s\"%s\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":"
        "[%u,%u]}",
        i ? "," : "", name, 2 * i, 2 * i + 2);
  }
  g_string_append_c (header, '}');
  /* The processor's time: what else the machine does is no matter. */
  start = clock ();
  source = open_header (header->str, header->len, 2 << 16, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 1 << 16);
  g_assert_cmpfloat ((gdouble) (clock () - start) / CLOCKS_PER_SEC, <, 5);
}

/* Every prefix of a good file is refused, and every byte more. */
static void
test_prefixes (void)
{
  static const gchar header[] = "{\"__metadata__\":{\"format\":\"pt\"}," T (
      "one", "F32", "[2,2]", "[0,16]") "," T ("two", "BF16", "[3]", "[16,22]") "}  ";
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);
  g_autofree gchar *whole = NULL;
  gsize size, n;

  fixture_write_raw (directory, FILE_NAME, strlen (header), header, strlen (header), 22);
  g_assert_true (g_file_get_contents (path, &whole, &size, NULL));
  for (n = 0; n <= size; n++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (VlmTensorSource) source = NULL;

    fixture_write (directory, FILE_NAME, whole, n);
    source = vlm_safetensors_open (directory, &error);
    if (n == size)
      g_assert_no_error (error);
    g_assert_true ((source != NULL) == (n == size));
    if (n < size)
      g_assert_error (error, VLM_ERROR, VLM_ERROR_FORMAT);
  }
  fixture_directory_remove (directory);
}

/* Every single changed byte of the header either is refused or leaves a sound description. */
static void
test_changed_bytes (void)
{
  static const gchar header[] =
      "{" T ("one", "F32", "[2,2]", "[0,16]") "," T ("two", "BF16", "[3]", "[16,22]") "}";
  static const gchar others[] = "9-\"\\{],\377";
  gchar *directory = fixture_directory_new ();
  gsize at, i;

  for (at = 0; at < strlen (header); at++) {
    for (i = 0; i < strlen (others); i++) {
      g_autofree gchar *changed = g_strdup (header);
      g_autoptr (GError) error = NULL;
      g_autoptr (VlmTensorSource) source = NULL;
      guint t;

      changed[at] = others[i];
      fixture_write_raw (directory, FILE_NAME, strlen (changed), changed, strlen (changed), 22);
      source = vlm_safetensors_open (directory, &error);
      g_assert_true ((source == NULL) == (error != NULL));
      for (t = 0; source != NULL && t < vlm_tensor_source_get_count (source); t++) {
        const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, t);

        g_assert_cmpuint (info->offset + info->n_bytes, <=, 8 + strlen (header) + 22);
      }
    }
  }
  fixture_directory_remove (directory);
}

static void
test_reading (void)
{
  static const gchar header[] =
      "{" T ("a", "BF16", "[4]", "[0,8]") "," T ("b", "F32", "[1]", "[8,12]") "}";
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  guint8 data[] = "ABCDEFGHijkl", got[8];
  int fd;

  fixture_write_raw (directory, FILE_NAME, strlen (header), header, strlen (header), 12);
  fd = g_open (path, O_WRONLY, 0);
  g_assert_cmpint (pwrite (fd, data, 12, 8 + strlen (header)), ==, 12);
  source = vlm_safetensors_open (directory, &error);
  g_assert_no_error (error);
  g_assert_true (vlm_tensor_source_read (
      source, vlm_tensor_source_lookup (source, "a"), 2, got, 6, NULL, &error));
  g_assert_cmpmem (got, 6, "CDEFGH", 6);
  g_assert_true (vlm_tensor_source_read (
      source, vlm_tensor_source_lookup (source, "b"), 0, got, 4, NULL, &error));
  g_assert_cmpmem (got, 4, "ijkl", 4);

  /* A file that shrinks afterwards gives an error, not a signal. */
  g_assert_cmpint (ftruncate (fd, 8 + strlen (header) + 4), ==, 0);
  g_assert_false (vlm_tensor_source_read (
      source, vlm_tensor_source_lookup (source, "a"), 0, got, 8, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_READ, "ends at byte");
  g_clear_error (&error);

  g_cancellable_cancel (cancellable);
  g_assert_false (vlm_tensor_source_read (
      source, vlm_tensor_source_lookup (source, "a"), 0, got, 4, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  close (fd);
  fixture_directory_remove (directory);
}

static void
expect_open_error (const gchar *directory, gint code, const gchar *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (vlm_safetensors_open (directory, &error));
  fixture_assert_message (error, code, part);
}

static void
test_odd_files (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, FILE_NAME, NULL);

  expect_open_error (directory, VLM_ERROR_NOT_FOUND, FILE_NAME);

  /* Would wait for ever if it were opened as files usually are. */
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  expect_open_error (directory, VLM_ERROR_READ, "not a regular file");
  fixture_remove (directory, FILE_NAME);

  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  expect_open_error (directory, VLM_ERROR_READ, "not a regular file");
  fixture_remove (directory, FILE_NAME);

  g_assert_cmpint (symlink ("/dev/zero", path), ==, 0);
  expect_open_error (directory, VLM_ERROR_READ, "not a regular file");
  fixture_remove (directory, FILE_NAME);

  g_assert_cmpint (symlink ("nowhere", path), ==, 0);
  expect_open_error (directory, VLM_ERROR_NOT_FOUND, FILE_NAME);
  fixture_directory_remove (directory);
}

#define SHARD1 "model-00001-of-00002.safetensors"
#define SHARD2 "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

static void
write_shards (const gchar *directory, const gchar *first, const gchar *second)
{
  fixture_write_raw (directory, SHARD1, strlen (first), first, strlen (first), 4);
  fixture_write_raw (directory, SHARD2, strlen (second), second, strlen (second), 4);
}

static const Case indices[] = {
  { "good",
      "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"b\":\"" SHARD2 "\",\"a\":\"" SHARD1
      "\"}}",
      0, -1, NULL },
  { "missing-shard", "{\"weight_map\":{\"a\":\"" SHARD1 "\",\"b\":\"other.safetensors\"}}", 0,
      VLM_ERROR_NOT_FOUND, "other.safetensors" },
  { "wrong-shard", "{\"weight_map\":{\"a\":\"" SHARD2 "\",\"b\":\"" SHARD1 "\"}}", 0,
      VLM_ERROR_FORMAT, "tensor a is not in " SHARD2 },
  { "not-in-map", "{\"weight_map\":{\"a\":\"" SHARD1 "\",\"c\":\"" SHARD2 "\"}}", 0,
      VLM_ERROR_FORMAT, "tensor b is not in the weight_map" },
  { "not-in-shards",
      "{\"weight_map\":{\"a\":\"" SHARD1 "\",\"b\":\"" SHARD2 "\",\"c\":\"" SHARD2 "\"}}", 0,
      VLM_ERROR_FORMAT, "tensor c is not in " SHARD2 },
  { "parent", "{\"weight_map\":{\"a\":\"../" SHARD1 "\"}}", 0, VLM_ERROR_FORMAT,
      "weight_map.a is \"../" SHARD1 "\", expected the plain name" },
  { "absolute", "{\"weight_map\":{\"a\":\"/tmp/x.safetensors\"}}", 0, VLM_ERROR_FORMAT,
      "expected the plain name" },
  { "hidden", "{\"weight_map\":{\"a\":\"..safetensors\"}}", 0, VLM_ERROR_FORMAT,
      "expected the plain name" },
  { "folder", "{\"weight_map\":{\"a\":\"sub/x.safetensors\"}}", 0, VLM_ERROR_FORMAT,
      "expected the plain name" },
  { "other-file", "{\"weight_map\":{\"a\":\"config.json\"}}", 0, VLM_ERROR_FORMAT,
      "expected the plain name" },
  { "empty-name", "{\"weight_map\":{\"a\":\"\"}}", 0, VLM_ERROR_FORMAT, "expected the plain name" },
  { "number", "{\"weight_map\":{\"a\":1}}", 0, VLM_ERROR_FORMAT, "weight_map.a is 1" },
  { "empty", "{\"weight_map\":{}}", 0, VLM_ERROR_FORMAT, "weight_map is empty" },
  { "absent", "{}", 0, VLM_ERROR_FORMAT, "weight_map is empty or absent" },
  { "list", "{\"weight_map\":[]}", 0, VLM_ERROR_FORMAT, "weight_map is [], expected an object" },
  { "duplicate", "{\"weight_map\":{\"a\":\"" SHARD1 "\",\"a\":\"" SHARD2 "\"}}", 0,
      VLM_ERROR_FORMAT, "duplicate" },
  { "cut", "{\"weight_map\":{\"a\":", 0, VLM_ERROR_FORMAT, INDEX ":1:" },
};

static void
test_index (gconstpointer data)
{
  const Case *example = data;
  gchar *directory = fixture_directory_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmTensorSource) source = NULL;

  write_shards (
      directory, "{" T ("a", "F32", "[1]", "[0,4]") "}", "{" T ("b", "F32", "[1]", "[0,4]") "}");
  fixture_write (directory, INDEX, example->header, strlen (example->header));
  source = vlm_safetensors_open (directory, &error);
  if (example->code < 0) {
    const VlmTensorInfo *b;

    g_assert_no_error (error);
    g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 2);
    b = vlm_tensor_source_lookup (source, "b");
    g_assert_true (g_str_has_suffix (vlm_tensor_source_get_path (source, b), SHARD2));
  } else {
    g_assert_null (source);
    fixture_assert_message (error, example->code, example->part);
    fixture_assert_message (error, example->code, INDEX);
  }
  fixture_directory_remove (directory);
}

static void
test_two_shards (void)
{
  static const gchar map[] = "{\"weight_map\":{\"a\":\"" SHARD1 "\",\"b\":\"" SHARD2 "\"}}";
  gchar *directory = fixture_directory_new ();

  write_shards (directory, "{" T ("a", "F32", "[1]", "[0,4]") "}",
      "{" T ("a", "F32", "[1]", "[0,4]") "," T ("b", "F32", "[0]", "[0,0]") "}");
  fixture_write (directory, INDEX, map, strlen (map));
  expect_open_error (directory, VLM_ERROR_FORMAT, "tensor a is there twice");

  write_shards (
      directory, "{" T ("a", "F32", "[1]", "[0,4]") "}", "{" T ("b", "F32", "[2]", "[0,8]") "}");
  expect_open_error (directory, VLM_ERROR_FORMAT, SHARD2 ": tensor b has data_offsets [0, 8]");
  fixture_directory_remove (directory);
}

/* Name number i of 512 that a plain hash, 33 times and add, cannot tell apart. */
static gchar *
colliding_name (guint i)
{
  GString *name = g_string_new (NULL);
  guint bit;

  for (bit = 0; bit < 9; bit++)
    g_string_append (name, i >> bit & 1 ? "bB" : "c!");
  g_string_append (name, ".safetensors");
  return g_string_free (name, FALSE);
}

/* An index of n shards, each with a tensor of its own, which is there or not. */
static void
write_many_shards (const gchar *directory, guint n, gboolean whole)
{
  json_t *map = json_object (), *root = json_pack ("{s:o}", "weight_map", map);
  guint i;

  for (i = 0; i < n; i++) {
    /* Neither in the order of their names nor in the opposite one. */
    g_autofree gchar *file = colliding_name (i * 37 % n);
    g_autofree gchar *tensor = g_strdup_printf ("t%u", i);
    g_autofree gchar *header = g_strdup_printf ("{" T ("%s", "F32", "[1]", "[0,4]") "}", tensor);

    json_object_set_new (map, tensor, json_string (file));
    if (whole)
      fixture_write_raw (directory, file, strlen (header), header, strlen (header), 4);
  }
  fixture_write_json (directory, INDEX, root);
  json_decref (root);
}

/* As many shards as there may be, and one more. */
static void
test_many_shards (void)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  write_many_shards (directory, 256, TRUE);
  source = vlm_safetensors_open (directory, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 256);
  for (i = 0; i < 256; i++) {
    g_autofree gchar *file = colliding_name (i * 37 % 256);
    g_autofree gchar *tensor = g_strdup_printf ("t%u", i);
    const VlmTensorInfo *info = vlm_tensor_source_lookup (source, tensor);

    g_assert_true (g_str_has_suffix (vlm_tensor_source_get_path (source, info), file));
  }
  write_many_shards (directory, 257, FALSE);
  expect_open_error (directory, VLM_ERROR_UNSUPPORTED, "weight_map names more than 256 files");
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  gsize i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *path = g_strconcat ("/safetensors/header/", cases[i].name, NULL);

    g_test_add_data_func (path, &cases[i], test_header);
  }
  g_test_add_func ("/safetensors/contents", test_contents);
  g_test_add_func ("/safetensors/header-length", test_header_length);
  g_test_add_func ("/safetensors/header-limit", test_header_limit);
  g_test_add_func ("/safetensors/nesting", test_nesting);
  g_test_add_func ("/safetensors/zero-byte", test_zero_byte);
  g_test_add_func ("/safetensors/long-name", test_long_name);
  g_test_add_func ("/safetensors/many-tensors", test_many_tensors);
  g_test_add_func ("/safetensors/prefixes", test_prefixes);
  g_test_add_func ("/safetensors/changed-bytes", test_changed_bytes);
  g_test_add_func ("/safetensors/reading", test_reading);
  g_test_add_func ("/safetensors/odd-files", test_odd_files);
  for (i = 0; i < G_N_ELEMENTS (indices); i++) {
    g_autofree gchar *path = g_strconcat ("/safetensors/index/", indices[i].name, NULL);

    g_test_add_data_func (path, &indices[i], test_index);
  }
  g_test_add_func ("/safetensors/two-shards", test_two_shards);
  g_test_add_func ("/safetensors/many-shards", test_many_shards);
  return g_test_run ();
}
