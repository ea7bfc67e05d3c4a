/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is to be captioned: files, the files of folders, URIs. */

#ifndef TOOLS_CAPTION_INPUT_H
#define TOOLS_CAPTION_INPUT_H

#include <gio/gio.h>

/* The values are written to databases. */
typedef enum
{
  VLM_INPUT_WAITING = 0, /* not captioned yet, or not to its end */
  VLM_INPUT_WHOLE = 1,   /* captioned to its end */
  VLM_INPUT_CUT = 2,     /* captioned as far as it goes, which is not as far as it should */
  VLM_INPUT_FAILED = 3   /* nothing of it could be captioned, or not all that should have been */
} VlmInputState;

typedef struct
{
  gchar *name; /* as named on the command line or found in a folder; UTF-8 for display */
  gchar *uri;
  gchar *path;     /* of a local file, else NULL */
  gchar *relative; /* file name of outputs of its own: the path below the folder it was found in */
  gboolean still;  /* a picture */
  gboolean exact_seeks; /* frames have the same times after a seek as without */
  VlmInputState state;
  gchar *message;      /* why it is cut or failed, else NULL */
  gint64 end;          /* ns of stream time where it ends, or what was asked of it; -1: not known */
  GPtrArray *captions; /* of VlmCaption, in order of pts */
  gchar *settings;     /* of vlm_settings_new (), that captions are made with; NULL: not known */
} VlmInput;

void vlm_input_free (VlmInput *input);

/* Sets state and message; a message that is there already stays. */
void vlm_input_fail (VlmInput *input, VlmInputState state, const gchar *message);

typedef struct
{
  GPtrArray *list;    /* of VlmInput */
  GPtrArray *ignored; /* names of files in folders that are no pictures and no videos */
} VlmInputs;

/*
 * Finds out what the words of the command line stand for: files; folders with all that is in them,
 * sorted by name; globs; URIs; "-", a list of these on standard input, one a line. Each input is
 * there once. What a file is says its content. What cannot be captioned is in the list too, failed
 * and with a message, except for files of folders that neither are nor are called pictures, videos
 * or sounds; hidden ones, and those in
 * outputs (NULL-terminated paths), are left out of folders altogether.
 * Error: standard input cannot be read.
 */
gboolean vlm_inputs_collect (
    VlmInputs *inputs, gchar **words, const gchar *const *outputs, GError **error);
void vlm_inputs_clear (VlmInputs *inputs);

#endif
