/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "run.h"

#include <string.h>

#include <glib/gstdio.h>

#include "../caption.h"
#include "line.h"
#include "outputs.h"
#include "report.h"
#include "settings.h"
#include "share.h"
#include "signals.h"
#include "store.h"
#include "summary.h"

#define EXIT_USAGE 2

/* Redraws of the progress, in ms. */
#define DRAW_INTERVAL 200

/* How much of a video is as much work as a picture, in ns, where a video's captions are those of its scenes. */
#define STILL_LENGTH G_GINT64_CONSTANT (2000000000)

/* Of inputs that were captioned with other options so many are named. */
#define MAX_NOTES 5

/* Why no more inputs are begun, when it is not the number of a signal. */
#define STOP_BROKEN -1

typedef struct _Run Run;

/* A thread that captions one input after the other. */
typedef struct
{
  Run *run;
  GThread *thread;
  VlmLine *line;   /* NULL: none yet, or no more */
  VlmInput *input; /* being captioned, or NULL */
  guint index;     /* of that input */
} Job;

struct _Run
{
  const CaptionOptions *options;
  VlmInputs inputs;
  VlmStore *store;  /* or NULL */
  gchar *settings;  /* of this run */
  GPtrArray *notes; /* of gchar *: what is to be said before it */
  VlmReport *report;
  GMainLoop *loop;
  GCancellable *cancellable; /* of outputs */
  gint64 started;            /* us */
  gint stop;                 /* atomic: the number of a signal, or STOP_BROKEN */
  gint captioned;            /* atomic: all jobs are over */
  gboolean made;             /* all outputs are */

  GMutex lock; /* of all that follows, of the inputs, the store and the report */
  Job *jobs;
  VlmShare *shares; /* one for each input */
  guint next;       /* the input to begin next */
  guint n_new;      /* captions made by this run */
  gint64 played;    /* ns of inputs that are done */
  const VlmCaption *last;
};

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* Nothing more can be done; says why. To be called with the lock. */
static void
break_off (Run *run, const gchar *message)
{
  if (g_atomic_int_compare_and_exchange (&run->stop, 0, STOP_BROKEN) && message != NULL)
    vlm_report_failure (run->report, NULL, message);
}

/* Stores a caption, then prints it. */
static gboolean
take_caption (VlmInput *input, VlmCaption *caption, gpointer data)
{
  Run *run = data;
  g_autoptr (GError) error = NULL;
  gboolean done;

  caption->settings = g_strdup (run->settings);
  g_mutex_lock (&run->lock);
  if (run->store != NULL && !vlm_store_add (run->store, input, caption, &error)) {
    break_off (run, error->message);
    vlm_caption_free (caption);
    done = FALSE;
  } else {
    g_ptr_array_add (input->captions, caption);
    run->last = caption;
    run->n_new++;
    done = vlm_report_caption (run->report, caption);
    if (!done)
      break_off (run, NULL);
  }
  g_mutex_unlock (&run->lock);
  return done;
}

/* The next input that is still to be captioned, or NULL. */
static VlmInput *
take_input (Job *job)
{
  Run *run = job->run;

  g_mutex_lock (&run->lock);
  job->input = NULL;
  while (job->input == NULL && run->next < run->inputs.list->len
      && g_atomic_int_get (&run->stop) == 0) {
    VlmInput *input = run->inputs.list->pdata[run->next++];

    if (input->state == VLM_INPUT_WAITING)
      job->input = input;
    job->index = run->next - 1;
  }
  g_mutex_unlock (&run->lock);
  return job->input;
}

/* How much of its input the job has played, in ns; notes what share of it that is, if that is known. */
static gint64
measure (const Job *job)
{
  VlmShare *share = &job->run->shares[job->index];
  gint64 start = -1, position = -1, duration = -1;

  if (job->line == NULL || job->input == NULL)
    return 0;
  vlm_line_get_progress (job->line, &start, &position, &duration);
  if (start < 0)
    return 0;
  if (duration > start)
    share->duration = duration - start;
  if (position <= start)
    return 0;
  if (duration > start)
    share->done = (position - start) / (gdouble) (duration - start);
  return position - start;
}

static void
finish_input (Job *job, const GError *model_error)
{
  Run *run = job->run;
  VlmShare *share = &run->shares[job->index];
  g_autoptr (GError) error = NULL;

  g_mutex_lock (&run->lock);
  run->played += measure (job);
  share->done = 1;
  if (share->duration < 0 && job->input->end >= 0)
    share->duration = MAX (job->input->end - run->options->run.selection.from, 0);
  if (model_error != NULL)
    break_off (run, model_error->message);
  vlm_report_input (run->report, job->input);
  if (run->store != NULL && job->input->state != VLM_INPUT_WAITING
      && !vlm_store_set_input (run->store, job->input, &error))
    break_off (run, error->message);
  job->input = NULL;
  g_mutex_unlock (&run->lock);
}

static gpointer
work (gpointer data)
{
  Job *job = data;
  Run *run = job->run;
  g_autoptr (GError) error = NULL;
  VlmLine *line =
      vlm_line_new (run->options, &run->options->run.selection, take_caption, run, &error);

  g_mutex_lock (&run->lock);
  job->line = line;
  if (line == NULL)
    break_off (run, error->message);
  g_mutex_unlock (&run->lock);

  while (line != NULL && error == NULL && take_input (job) != NULL) {
    vlm_line_play (line, job->input, &run->stop, &error);
    finish_input (job, error);
  }

  g_mutex_lock (&run->lock);
  job->line = NULL;
  g_mutex_unlock (&run->lock);
  if (line != NULL)
    vlm_line_free (line);
  return NULL;
}

static gboolean
has_work (const Run *run)
{
  guint i;

  for (i = 0; i < run->inputs.list->len; i++) {
    if (((VlmInput *) run->inputs.list->pdata[i])->state == VLM_INPUT_WAITING)
      return TRUE;
  }
  return FALSE;
}

static gboolean
end_loop (gpointer data)
{
  g_main_loop_quit (data);
  return G_SOURCE_REMOVE;
}

/* Has all jobs done, then makes the outputs; all of it while the main thread listens to signals. */
static gpointer
conduct (gpointer data)
{
  Run *run = data;
  const VlmRunOptions *options = &run->options->run;
  gint i, n = has_work (run) ? options->jobs : 0;

  for (i = 0; i < n; i++)
    run->jobs[i].thread = g_thread_new ("job", work, &run->jobs[i]);
  for (i = 0; i < n; i++)
    g_thread_join (run->jobs[i].thread);
  g_atomic_int_set (&run->captioned, 1);

  g_mutex_lock (&run->lock);
  run->made = vlm_outputs_make (
      options, run->inputs.list, g_atomic_int_get (&run->stop) != 0, run->cancellable, run->report);
  g_mutex_unlock (&run->lock);
  g_idle_add (end_loop, run->loop);
  return NULL;
}

/* ---- The main thread meanwhile ------------------------------------------------------------- */

static gboolean
show_progress (gpointer data)
{
  Run *run = data;
  VlmProgress progress = { .n_inputs = run->inputs.list->len };
  guint i;

  /* What makes outputs has the lock, and prints by itself. */
  if (g_atomic_int_get (&run->captioned))
    return G_SOURCE_REMOVE;
  g_mutex_lock (&run->lock);
  progress.played = run->played;
  for (i = 0; i < (guint) run->options->run.jobs; i++)
    progress.played += measure (&run->jobs[i]);
  progress.done = vlm_shares_get_done (run->shares, run->inputs.list->len);
  progress.seconds = (g_get_monotonic_time () - run->started) / (gdouble) G_USEC_PER_SEC;
  progress.n_captions = (gint) run->n_new;
  if (run->last != NULL) {
    progress.name = run->inputs.list->len > 1 ? run->last->input : NULL;
    progress.text = run->last->text;
  }
  vlm_report_progress (run->report, &progress);
  g_mutex_unlock (&run->lock);
  return G_SOURCE_CONTINUE;
}

static void
stop_by (gint number, gpointer data)
{
  Run *run = data;

  g_cancellable_cancel (run->cancellable);
  if (g_atomic_int_compare_and_exchange (&run->stop, 0, number)
      && !g_atomic_int_get (&run->captioned)) {
    g_mutex_lock (&run->lock);
    vlm_report_note (run->report,
        "vlm-caption: stopping after the caption that is being made; once more to stop at once");
    g_mutex_unlock (&run->lock);
  }
}

/* What is known of the inputs before they are played. A picture counts as much as a caption of a video. */
static VlmShare *
make_shares (const Run *run)
{
  gdouble every = run->options->run.selection.every;
  guint i, n = run->inputs.list->len;
  VlmShare *shares = g_new0 (VlmShare, n);

  for (i = 0; i < n; i++) {
    const VlmInput *input = run->inputs.list->pdata[i];
    GStatBuf status;

    shares[i].wanted = input->state == VLM_INPUT_WAITING;
    shares[i].still = input->still;
    shares[i].duration = !input->still ? -1 : every > 0 ? (gint64) every : STILL_LENGTH;
    if (input->path != NULL && g_stat (input->path, &status) == 0)
      shares[i].size = (guint64) status.st_size;
  }
  return shares;
}

/* Takes away a source that may have ended itself. */
static void
remove_source (guint id)
{
  GSource *source = g_main_context_find_source_by_id (NULL, id);

  if (source != NULL)
    g_source_destroy (source);
}

static void
caption_all (Run *run)
{
  VlmSignals *signals = vlm_signals_new (stop_by, run);
  guint progress = g_timeout_add (DRAW_INTERVAL, show_progress, run);
  GThread *conductor;
  guint i;

  run->loop = g_main_loop_new (NULL, FALSE);
  run->cancellable = g_cancellable_new ();
  run->jobs = g_new0 (Job, (gsize) run->options->run.jobs);
  run->shares = make_shares (run);
  for (i = 0; i < (guint) run->options->run.jobs; i++)
    run->jobs[i].run = run;
  conductor = g_thread_new ("conductor", conduct, run);
  g_main_loop_run (run->loop);
  g_thread_join (conductor);
  vlm_signals_free (signals);
  remove_source (progress);
  g_free (run->jobs);
  g_free (run->shares);
  g_object_unref (run->cancellable);
  g_main_loop_unref (run->loop);
}

/* ---- Before and after ---------------------------------------------------------------------- */

static gboolean
open_store (Run *run, GError **error)
{
  const VlmRunOptions *options = &run->options->run;
  VlmStoreMode mode = options->resume ? VLM_STORE_RESUME
      : options->overwrite            ? VLM_STORE_OVERWRITE
                                      : VLM_STORE_NEW;

  if (options->jsonl == NULL && options->db == NULL)
    return TRUE;
  run->store =
      vlm_store_open (options->jsonl, options->db, mode, options->selection.thumbnails, error);
  if (run->store == NULL)
    return FALSE;
  return !options->resume
      || (vlm_store_resume (run->store, run->inputs.list, error)
          && vlm_settings_check (run->settings, run->inputs.list, run->notes, error));
}

/* From now on what is not captioned yet is captioned with the settings of this run. */
static void
give_settings (Run *run)
{
  for (guint i = 0; i < run->inputs.list->len; i++) {
    VlmInput *input = run->inputs.list->pdata[i];

    if (input->captions->len > 0 && input->settings != NULL)
      continue;
    g_free (input->settings);
    input->settings = g_strdup (run->settings);
  }
}

/* Sets exit to the code if the run cannot begin. */
static gboolean
prepare (Run *run, int *exit_code)
{
  const VlmRunOptions *options = &run->options->run;
  g_autofree const gchar **outputs = vlm_outputs_get_paths (options);
  g_autoptr (GError) error = NULL;

  *exit_code = 1;
  if (!vlm_inputs_collect (&run->inputs, run->options->pictures, outputs, &error)) {
    caption_fail (NULL, error->message);
  } else if (run->inputs.list->len == 0) {
    caption_fail (NULL, "there is neither a picture nor a video in what was named");
  } else if (!vlm_outputs_check (options, run->inputs.list, &error)) {
    caption_fail (NULL, error->message);
    *exit_code = EXIT_USAGE;
  } else if (!open_store (run, &error)) {
    caption_fail (NULL, error->message);
    if (g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_EXIST)
        || error->domain == G_OPTION_ERROR)
      *exit_code = EXIT_USAGE;
  } else {
    give_settings (run);
    return TRUE;
  }
  return FALSE;
}

static void
make_report (Run *run)
{
  const VlmRunOptions *options = &run->options->run;
  VlmReportSettings settings = { 0 };
  guint i;

  settings.names = run->inputs.list->len > 1;
  settings.progress = !options->quiet;
  settings.captions = g_strcmp0 (options->jsonl, "-") != 0
      && !(options->quiet && vlm_run_options_find_output (options) != NULL);
  run->report = vlm_report_new (&settings);
  /* What is known before anything is played. */
  for (i = 0; i < MIN (run->notes->len, MAX_NOTES); i++)
    vlm_report_failure (run->report, NULL, run->notes->pdata[i]);
  if (i < run->notes->len)
    vlm_report_note (run->report, "vlm-caption: and %u more", run->notes->len - i);
  for (i = 0; i < run->inputs.list->len; i++)
    vlm_report_input (run->report, run->inputs.list->pdata[i]);
}

static int
finish (Run *run, gchar **command)
{
  const VlmRunOptions *options = &run->options->run;
  VlmSummary summary = { .n_new = run->n_new, .played = run->played };
  g_autoptr (GError) error = NULL;
  gboolean done = run->stop != STOP_BROKEN;
  guint i;

  summary.seconds = (g_get_monotonic_time () - run->started) / (gdouble) G_USEC_PER_SEC;
  for (i = 0; i < run->inputs.list->len; i++)
    done = done && ((VlmInput *) run->inputs.list->pdata[i])->state <= VLM_INPUT_WHOLE;
  done = run->made && done;
  if (run->store != NULL && !vlm_store_close (run->store, &error)) {
    vlm_report_failure (run->report, NULL, error->message);
    done = FALSE;
  }
  run->store = NULL;
  if (run->stop == STOP_BROKEN)
    vlm_summary_name_left (&run->inputs, run->report);
  if (!options->quiet)
    vlm_summary_print (&summary, &run->inputs, run->report);
  if (run->stop > 0)
    vlm_summary_print_command (options, command, run->report);
  return run->stop > 0 ? 128 + run->stop : done ? 0 : 1;
}

int
vlm_run (const CaptionOptions *options, gchar **command)
{
  Run run = { .options = options, .started = g_get_monotonic_time () };
  int exit_code;

  g_mutex_init (&run.lock);
  run.settings = vlm_settings_new (options);
  run.notes = g_ptr_array_new_with_free_func (g_free);
  if (prepare (&run, &exit_code)) {
    make_report (&run);
    caption_all (&run);
    exit_code = finish (&run, command);
    vlm_report_free (run.report);
  }
  if (run.store != NULL)
    vlm_store_close (run.store, NULL);
  vlm_inputs_clear (&run.inputs);
  g_ptr_array_unref (run.notes);
  g_free (run.settings);
  g_mutex_clear (&run.lock);
  return exit_code;
}
