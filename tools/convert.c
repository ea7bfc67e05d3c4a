/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "convert.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "output.h"

#define MIB (1024.0 * 1024.0)

typedef struct
{
  const gchar *source, *destination;
  const VlmConvertOptions *options;
  JobProgress progress;
} Conversion;

gboolean
convert_parse_type (const gchar *option, const gchar *word, VlmWeightType *type, GError **error)
{
  static const struct
  {
    const gchar *word;
    VlmWeightType type;
  } types[] = { { "f16", VLM_WEIGHT_F16 }, { "int8", VLM_WEIGHT_INT8 }, { "int4", VLM_WEIGHT_INT4 },
    { "keep", VLM_WEIGHT_KEEP } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    if (strcmp (word, types[i].word) == 0) {
      *type = types[i].type;
      return TRUE;
    }
  }
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
      "--%s is %s, expected f16, int8, int4 or keep", option, word);
  return FALSE;
}

static gboolean
run_conversion (GCancellable *cancellable, gpointer user_data, GError **error)
{
  Conversion *conversion = user_data;

  return vlm_model_convert (conversion->source, conversion->destination, conversion->options,
      job_progress_update, &conversion->progress, cancellable, error);
}

gboolean
convert_model (
    const gchar *source, const gchar *destination, const VlmConvertOptions *options, GError **error)
{
  Conversion conversion = { .source = source, .destination = destination, .options = options };
  gboolean done;
  GStatBuf status;

  /* A file that grows beyond its limit is an error of writing, to be cleaned up after. */
  signal (SIGXFSZ, SIG_IGN);
  job_progress_init (&conversion.progress, "converting");
  done = job_run (run_conversion, &conversion, error);
  job_progress_end (&conversion.progress);
  if (!done)
    return FALSE;
  if (g_stat (destination, &status) == 0)
    printf ("%s: %.2f MiB\n", destination, status.st_size / MIB);
  return output_check (error);
}
