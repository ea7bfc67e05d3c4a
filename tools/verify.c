/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "verify.h"

#include <stdio.h>

#include "engine/vlm.h"
#include "job.h"
#include "output.h"

typedef struct
{
  const gchar *path, *mmproj;
  JobProgress progress;
  guint n_problems;
} Verification;

static void
print_finding (VlmFindingKind kind, const gchar *text, gpointer user_data)
{
  Verification *verification = user_data;

  job_progress_end (&verification->progress);
  if (kind == VLM_FINDING_PROBLEM)
    verification->n_problems++;
  printf ("%s: %s\n", kind == VLM_FINDING_PROBLEM ? "problem" : "note", text);
}

static void
show_progress (gdouble fraction, gpointer user_data)
{
  Verification *verification = user_data;

  job_progress_update (fraction, &verification->progress);
}

static gboolean
run_verification (GCancellable *cancellable, gpointer user_data, GError **error)
{
  Verification *verification = user_data;

  return vlm_model_verify (verification->path, verification->mmproj, print_finding, show_progress,
      verification, cancellable, error);
}

gboolean
verify_model (const gchar *path, const gchar *mmproj, GError **error)
{
  Verification verification = { .path = path, .mmproj = mmproj };
  gboolean done;

  job_progress_init (&verification.progress, "verifying");
  done = job_run (run_verification, &verification, error);
  job_progress_end (&verification.progress);
  if (!done)
    return FALSE;
  if (verification.n_problems > 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: problems: %u", path,
        verification.n_problems);
    return FALSE;
  }
  printf ("%s: no problems\n", path);
  return output_check (error);
}
