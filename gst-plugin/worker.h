/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The thread that loads the model and makes captions: one is made at a time, at most one more
 * frame waits, and a newer frame takes the place of the one that waits.
 */

#ifndef GST_VLM_WORKER_H
#define GST_VLM_WORKER_H

#include "answer.h"
#include "frame.h"
#include "settings.h"

G_BEGIN_DECLS

typedef struct _GstVlmWorker GstVlmWorker;

/* One selected frame and how it is to be described. */
typedef struct
{
  guint64 id;
  guint serial;    /* copied into the answer */
  gboolean urgent; /* it was asked for: no rest before it, and only its like takes its place */
  guint64 ticket;  /* set by the worker: its place in the order of jobs */
  GstVlmTimes times;
  GstVlmFrame *frame;       /* owned */
  GstVlmSettings *settings; /* owned */
  gint64 selected_at;       /* g_get_monotonic_time () */
} GstVlmJob;

void gst_vlm_job_free (GstVlmJob *job);

/*
 * Called from the worker's thread with no lock held. loading and loaded are called for each time
 * that the model is loaded: once after gst_vlm_worker_start(), and again when it was unloaded.
 */
typedef struct
{
  void (*loading) (gpointer user_data);
  void (*progress) (gdouble fraction, gpointer user_data);
  /* model is NULL if it failed or was cancelled (G_IO_ERROR_CANCELLED); error says which. */
  void (*loaded) (VlmModel *model, const GError *error, gpointer user_data);
  /* The text grew; at most a few times a second, and only if the job's settings want it. */
  void (*grew) (const GstVlmJob *job, const gchar *text, gpointer user_data);
  void (*answered) (GstVlmAnswer *answer, gpointer user_data);
  void (*failed) (const GstVlmJob *job, const GError *error, gpointer user_data);
} GstVlmWorkerHooks;

typedef struct
{
  guint64 submitted; /* selected frames handed over */
  guint64 completed;
  guint64 dropped; /* replaced by a newer one, given up for the load's sake, or no model came */
  guint64 failed;
  guint64 cancelled;         /* by a flush or by stopping */
  GstClockTime last_latency; /* NONE before the first caption */
  GstClockTime mean_latency;
  gdouble busy_ratio; /* share of the time since start spent on captions */
  gboolean loaded;    /* the model is held */
} GstVlmWorkerStats;

GstVlmWorker *gst_vlm_worker_new (const GstVlmWorkerHooks *hooks, gpointer user_data);

/* Must be stopped. */
void gst_vlm_worker_free (GstVlmWorker *worker);

/* Starts the thread, which loads the model first. Counters start again. */
gboolean gst_vlm_worker_start (
    GstVlmWorker *worker, const gchar *path, const VlmLoadOptions *options, GError **error);

/* Cancels what is going on and joins the thread; the model stays held. */
void gst_vlm_worker_stop (GstVlmWorker *worker);

/* Drops the held model. The worker must be stopped. */
void gst_vlm_worker_release_model (GstVlmWorker *worker);

/* Cancels captions, refuses new ones and releases waiters, without waiting for anything. */
void gst_vlm_worker_begin_flush (GstVlmWorker *worker);
void gst_vlm_worker_end_flush (GstVlmWorker *worker);

/* FALSE once loading has failed: no frame needs to be copied any more. */
gboolean gst_vlm_worker_is_useful (GstVlmWorker *worker);

/*
 * Whether a frame that is selected now could be described before the next one, an interval later:
 * not while the worker rests to keep to its load. A frame that is not handed over for that counts
 * as dropped.
 */
gboolean gst_vlm_worker_wants (GstVlmWorker *worker, GstClockTime interval);

/*
 * The model goes when it has made no caption for this long, 0: never; at any time, also for a model
 * that has made none yet.
 */
void gst_vlm_worker_set_idle_unload (GstVlmWorker *worker, GstClockTime idle_unload);

/* The load may be another from now on: ends the rest. */
void gst_vlm_worker_wake (GstVlmWorker *worker);

/*
 * Hands a frame over and returns at once. (transfer full) FALSE if it is given up at once, for one
 * that was asked for and still waits, or in a flush.
 */
gboolean gst_vlm_worker_submit (GstVlmWorker *worker, GstVlmJob *job);

/*
 * Hands a frame over and waits until it has been answered or has failed, also for the model to
 * load. (transfer full) FALSE if a flush or a stop ended the wait.
 */
gboolean gst_vlm_worker_finish (GstVlmWorker *worker, GstVlmJob *job);

/* Whether no frame of this serial is being described or waiting for it. */
gboolean gst_vlm_worker_is_idle (GstVlmWorker *worker, guint serial);

/* The PTS of the oldest frame of this serial that is being described or waiting, else NONE. */
GstClockTime gst_vlm_worker_get_oldest_pts (GstVlmWorker *worker, guint serial);

void gst_vlm_worker_get_stats (GstVlmWorker *worker, GstVlmWorkerStats *stats);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstVlmJob, gst_vlm_job_free)

G_END_DECLS

#endif
