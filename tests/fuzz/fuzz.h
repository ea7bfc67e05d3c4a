/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the fuzz targets share: files that exist in memory only, and parts of inputs. */

#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <gio/gio.h>
#include <stdint.h>

/* What libFuzzer calls, and what it offers. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
int LLVMFuzzerInitialize (int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate (uint8_t *data, size_t size, size_t max_size);

/* A regular file without a place on a disk: path can be opened as often as one likes. */
typedef struct
{
  int fd;
  gchar path[32];
} FuzzFile;

void fuzz_file_init (FuzzFile *file);
void fuzz_file_set (FuzzFile *file, gconstpointer data, gsize size);

/* Makes directory/name lead to the file. */
void fuzz_file_link (const FuzzFile *file, const gchar *directory, const gchar *name);

/*
 * Looks at every byte of the model at path, as vlm-model verify does. Whatever is wrong with it must
 * be told by an error or a finding with a text.
 */
void fuzz_verify (const gchar *path, const gchar *mmproj);

/* Reads every tensor of what is at path, whether there is a network that it fits or not. */
void fuzz_read_tensors (const gchar *path, const gchar *mmproj);

/* The error is one that this program makes of what it is given, with a message; frees it. */
void fuzz_expect_error (GError *error);

/* ---- For mutators ------------------------------------------------------------------------- */

/* Small random numbers, the same for the same seed. */
guint fuzz_random (unsigned int *state, guint n);

/*
 * Mutates bytes begin .. end - 1 of a buffer of *size bytes with room for max_size, moves what comes
 * behind them, and sets *size. Returns the new end.
 */
gsize fuzz_mutate_range (guint8 *data, gsize *size, gsize max_size, gsize begin, gsize end);

/* Sets one decimal number of the text, its place given by chance, to one that is near a limit. */
gsize fuzz_mutate_number (
    guint8 *data, gsize *size, gsize max_size, gsize begin, gsize end, unsigned int *state);

#endif
