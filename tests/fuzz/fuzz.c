/* SPDX-License-Identifier: LGPL-2.1-or-later */

#define _GNU_SOURCE /* memfd_create () */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/formats/model-files.h"
#include "engine/vlm.h"

/* Values of integers that are read at a time. */
#define READ_VALUES 4096

void
fuzz_file_init (FuzzFile *file)
{
  file->fd = memfd_create ("fuzz", MFD_CLOEXEC);
  g_assert (file->fd >= 0);
  g_snprintf (file->path, sizeof (file->path), "/proc/self/fd/%d", file->fd);
}

void
fuzz_file_set (FuzzFile *file, gconstpointer data, gsize size)
{
  g_assert (ftruncate (file->fd, 0) == 0);
  g_assert (pwrite (file->fd, data, size, 0) == (gssize) size);
}

void
fuzz_file_link (const FuzzFile *file, const gchar *directory, const gchar *name)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);

  g_assert (unlink (path) == 0 || errno == ENOENT);
  g_assert (symlink (file->path, path) == 0);
}

void
fuzz_expect_error (GError *error)
{
  g_assert (error);
  g_assert (error->domain == VLM_ERROR);
  g_assert (error->message && *error->message && g_utf8_validate (error->message, -1, NULL));
  g_error_free (error);
}

static void
on_finding (VlmFindingKind kind, const gchar *text, gpointer user_data)
{
  g_assert (text && *text && g_utf8_validate (text, -1, NULL));
}

void
fuzz_verify (const gchar *path, const gchar *mmproj)
{
  GError *error = NULL;

  if (!vlm_model_verify (path, mmproj, on_finding, NULL, NULL, NULL, &error))
    fuzz_expect_error (error);
}

static gboolean
read_integers (VlmTensorSource *source, const VlmTensorInfo *info, GError **error)
{
  gsize step = CLAMP (READ_VALUES / info->shape[1], 1, info->shape[0]);
  gboolean good = TRUE;
  VlmQuantRows rows;
  guint64 row;

  if (!vlm_quant_rows_init (&rows, &info->format, step, info->shape[1], error))
    return FALSE;
  for (row = 0; good && row < info->shape[0]; row += step)
    good = vlm_tensor_source_read_rows (
        source, info, row, MIN (step, info->shape[0] - row), &rows, NULL, error);
  vlm_quant_rows_clear (&rows);
  return good;
}

static gboolean
read_floats (VlmTensorSource *source, const VlmTensorInfo *info, GError **error)
{
  guint8 bytes[4096];
  guint64 offset;

  for (offset = 0; offset < info->n_bytes; offset += sizeof (bytes)) {
    if (!vlm_tensor_source_read (
            source, info, offset, bytes, MIN (sizeof (bytes), info->n_bytes - offset), NULL, error))
      return FALSE;
  }
  return TRUE;
}

void
fuzz_read_tensors (const gchar *path, const gchar *mmproj)
{
  GError *error = NULL;
  g_autoptr (VlmModelFiles) files = vlm_model_files_open (path, mmproj, &error);
  g_autoptr (VlmTensorSource) source = files ? vlm_model_files_open_tensors (files, &error) : NULL;
  guint i;

  for (i = 0; source && i < vlm_tensor_source_get_count (source); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);

    if (vlm_tensor_count_values (info) == 0)
      continue;
    if (!(info->dtype == VLM_DTYPE_QUANTISED ? read_integers (source, info, &error)
                                             : read_floats (source, info, &error)))
      break;
  }
  if (error)
    fuzz_expect_error (error);
}

guint
fuzz_random (unsigned int *state, guint n)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

gsize
fuzz_mutate_range (guint8 *data, gsize *size, gsize max_size, gsize begin, gsize end)
{
  gsize tail = *size - end, room = max_size - begin - tail, n;
  g_autofree guint8 *behind = g_memdup2 (data + end, tail);

  n = LLVMFuzzerMutate (data + begin, end - begin, room);
  if (tail)
    memcpy (data + begin + n, behind, tail);
  *size = begin + n + tail;
  return begin + n;
}

/* Finds a run of digits from a random place on; FALSE when there is none. */
static gboolean
find_number (const guint8 *data, gsize begin, gsize end, gsize from, gsize *first, gsize *last)
{
  for (*first = from; *first < end && !g_ascii_isdigit (data[*first]);)
    (*first)++;
  while (*first > begin && *first < end && g_ascii_isdigit (data[*first - 1]))
    (*first)--;
  for (*last = *first; *last < end && g_ascii_isdigit (data[*last]);)
    (*last)++;
  return *last > *first;
}

gsize
fuzz_mutate_number (
    guint8 *data, gsize *size, gsize max_size, gsize begin, gsize end, unsigned int *state)
{
  static const gchar *const numbers[] = { "0", "1", "2", "3", "7", "8", "16", "63", "64", "65",
    "255", "256", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "-1", "1e300", "0.5" };
  const gchar *number = numbers[fuzz_random (state, G_N_ELEMENTS (numbers))];
  gsize n = strlen (number), first, last;

  if (end <= begin
      || !find_number (data, begin, end, begin + fuzz_random (state, end - begin), &first, &last)
      || *size - (last - first) + n > max_size)
    return end;
  memmove (data + first + n, data + last, *size - last);
  memcpy (data + first, number, n);
  *size = *size - (last - first) + n;
  return end - (last - first) + n;
}
