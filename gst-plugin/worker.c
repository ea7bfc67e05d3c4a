/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include <time.h>

#include "wording.h"
#include "worker.h"

/* Partial captions are told at most this often, in us. */
#define PARTIAL_PAUSE (200 * G_TIME_SPAN_MILLISECOND)
/* How far the load may have stayed below its limit and be made up for later, in us. */
#define MOST_CREDIT (250 * G_TIME_SPAN_MILLISECOND)

typedef enum
{
  MODEL_LOADING,
  MODEL_READY,
  MODEL_FAILED
} ModelState;

struct _GstVlmWorker
{
  GstVlmWorkerHooks hooks;
  gpointer user_data;

  /* Between start and stop these belong to the thread, else to the caller. */
  GThread *thread;
  gchar *path, *mmproj;
  VlmLoadOptions options;
  VlmModel *model;
  VlmSession *session;
  GstVlmFrameReader *reader;
  guint n_cpus;
  GCancellable *load_cancellable;

  GMutex lock;
  GCond cond; /* any change of what follows */

  ModelState model_state;
  gboolean stopping;
  gboolean flushing;
  GstVlmJob *waiting;        /* the newest selected frame */
  GstVlmJob *running;        /* being described; freed by the thread only */
  GCancellable *cancellable; /* of running */
  gboolean stale;            /* a flush came while running was described */
  guint64 last_ticket;       /* of the newest job */
  guint64 finished_ticket;   /* of the newest that has left waiting and running */
  gint64 not_before;         /* no caption begins before this time, but for urgent ones */
  gint64 idle_since;         /* when the model came or has made its last caption */
  GstClockTime idle_unload;  /* for how long it stays after that; 0: for ever */

  GstVlmWorkerStats counters; /* its times and ratio are computed on demand */
  guint64 latency_sum;        /* ns over all completed */
  gint64 busy;                /* us spent on captions */
  gint64 started_at;
  gint64 running_since;
};

void
gst_vlm_job_free (GstVlmJob *job)
{
  g_clear_pointer (&job->frame, gst_vlm_frame_free);
  g_clear_pointer (&job->settings, gst_vlm_settings_free);
  g_free (job);
}

/* Takes away the frame that waits, if any, and counts it. Called with the lock. */
static void
discard_waiting (GstVlmWorker *worker, guint64 *counter)
{
  if (worker->waiting == NULL)
    return;

  worker->finished_ticket = MAX (worker->finished_ticket, worker->waiting->ticket);
  g_clear_pointer (&worker->waiting, gst_vlm_job_free);
  (*counter)++;
  g_cond_broadcast (&worker->cond);
}

/* ---- The thread --------------------------------------------------------------------------- */

static void
report_progress (gdouble fraction, gpointer user_data)
{
  GstVlmWorker *worker = user_data;

  worker->hooks.progress (fraction, worker->user_data);
}

static gboolean
load_model (GstVlmWorker *worker)
{
  g_autoptr (GError) error = NULL;
  VlmModelInfo info;
  VlmModel *model;

  worker->hooks.loading (worker->user_data);
  model = vlm_model_load (
      worker->path, &worker->options, report_progress, worker, worker->load_cancellable, &error);

  if (model != NULL) {
    vlm_model_get_info (model, &info);
    if (!info.has_vision) {
      g_set_error (&error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
          "%s: a model for text only cannot see pictures", info.path);
      g_clear_pointer (&model, vlm_model_unref);
    }
  }

  /* The old model was held until here so that an unchanged one is found again, not read again. */
  g_clear_pointer (&worker->model, vlm_model_unref);
  worker->model = model;
  if (model != NULL)
    worker->session = vlm_session_new (model);

  worker->hooks.loaded (model, error, worker->user_data);

  g_mutex_lock (&worker->lock);
  worker->model_state = model != NULL ? MODEL_READY : MODEL_FAILED;
  worker->counters.loaded = model != NULL;
  worker->idle_since = g_get_monotonic_time ();
  /* What a caption takes is counted without the loading that had to come first. */
  if (worker->running != NULL)
    worker->running_since = worker->idle_since;
  if (model == NULL)
    discard_waiting (worker, &worker->counters.dropped);
  g_cond_broadcast (&worker->cond);
  g_mutex_unlock (&worker->lock);

  return model != NULL;
}

/* Lets the model go until the next frame. */
static void
unload_model (GstVlmWorker *worker)
{
  g_clear_pointer (&worker->session, vlm_session_free);
  g_clear_pointer (&worker->model, vlm_model_unref);
}

/* The time at which the model goes, 0 if it stays or has gone. Called with the lock. */
static gint64
get_unload_time (const GstVlmWorker *worker)
{
  if (worker->idle_unload == 0 || !worker->counters.loaded)
    return 0;
  return worker->idle_since + (gint64) (worker->idle_unload / GST_USECOND);
}

/*
 * Waits until a frame is there and may be described, or until the time at which the model goes.
 * Called with the lock; TRUE if it is that time.
 */
static gboolean
wait_for_job (GstVlmWorker *worker)
{
  while (!worker->stopping) {
    const GstVlmJob *job = worker->waiting;
    gint64 now = g_get_monotonic_time ();
    gint64 until = job != NULL ? worker->not_before : get_unload_time (worker);

    if (job != NULL && (job->urgent || now >= until))
      return FALSE;
    if (job == NULL && until > 0 && now >= until)
      return TRUE;

    if (until > 0)
      g_cond_wait_until (&worker->cond, &worker->lock, until);
    else
      g_cond_wait (&worker->cond, &worker->lock);
  }
  return FALSE;
}

/* Waits for a frame and makes it the running one; NULL when stopping. */
static GstVlmJob *
take_job (GstVlmWorker *worker)
{
  GstVlmJob *job = NULL;

  g_mutex_lock (&worker->lock);
  while (wait_for_job (worker)) {
    worker->counters.loaded = FALSE;
    g_mutex_unlock (&worker->lock);
    unload_model (worker);
    g_mutex_lock (&worker->lock);
  }
  if (!worker->stopping) {
    job = g_steal_pointer (&worker->waiting);
    worker->running = job;
    worker->stale = FALSE;
    worker->cancellable = g_cancellable_new ();
    worker->running_since = g_get_monotonic_time ();
  }
  g_mutex_unlock (&worker->lock);

  return job;
}

/* A caption that grows. */
typedef struct
{
  GstVlmWorker *worker;
  const GstVlmJob *job;
  GString *text;
  gint64 told_at;
} Growth;

/* No flush has come since the job was taken. */
static gboolean
is_wanted (GstVlmWorker *worker)
{
  gboolean wanted;

  g_mutex_lock (&worker->lock);
  wanted = !worker->stale;
  g_mutex_unlock (&worker->lock);

  return wanted;
}

static void
on_text (const gchar *delta, gpointer user_data)
{
  Growth *growth = user_data;
  GstVlmWorker *worker = growth->worker;
  gint64 now = g_get_monotonic_time ();

  g_string_append (growth->text, delta);
  if (now < growth->told_at + PARTIAL_PAUSE || !is_wanted (worker))
    return;
  growth->told_at = now;
  worker->hooks.grew (growth->job, growth->text->str, worker->user_data);
}

static gboolean
generate (GstVlmWorker *worker, const GstVlmJob *job, const VlmRequest *request, VlmResult *result,
    GError **error)
{
  Growth growth = { worker, job, NULL, 0 };
  VlmWatch watch = { NULL, NULL, &growth, worker->cancellable };
  gboolean generated;

  if (job->settings->partial_captions && job->settings->post_messages != GST_VLM_POST_NONE) {
    watch.text = on_text;
    growth.text = g_string_new (NULL);
  }
  generated = vlm_session_generate (worker->session, request, &watch, result, error);
  if (growth.text != NULL)
    g_string_free (growth.text, TRUE);

  return generated;
}

/* The text as it is to be shown. (transfer full) */
static gchar *
take_text (VlmResult *result)
{
  if (result->finish_reason == VLM_FINISH_STOP)
    return g_steal_pointer (&result->text);
  return gst_vlm_wording_round_off (result->text);
}

static GstVlmAnswer *
describe (GstVlmWorker *worker, const GstVlmJob *job, GError **error)
{
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  VlmImage image;
  GstVlmAnswer *answer;
  gint64 now;

  if (!gst_vlm_frame_reader_read (worker->reader, job->frame, &image, error))
    return NULL;

  gst_vlm_settings_fill_request (job->settings, &request);
  request.images = &image;
  request.n_images = 1;
  if (!generate (worker, job, &request, &result, error))
    return NULL;

  answer = gst_vlm_answer_new ();
  answer->id = job->id;
  answer->serial = job->serial;
  answer->times = job->times;
  answer->text = take_text (&result);
  answer->n_prompt_tokens = result.n_prompt_tokens;
  answer->n_image_tokens = result.n_image_tokens;
  answer->n_tokens = result.n_ids;
  answer->finish_reason = result.finish_reason;
  now = g_get_monotonic_time ();
  answer->latency = (now - job->selected_at) * GST_USECOND;
  answer->work = (now - worker->running_since) * GST_USECOND;
  vlm_result_clear (&result);

  return answer;
}

/* CPU time of the calling thread, us. */
static gint64
get_cpu_time (void)
{
  struct timespec time;

  if (clock_gettime (CLOCK_THREAD_CPUTIME_ID, &time) != 0)
    return 0;
  return time.tv_sec * G_TIME_SPAN_SECOND + time.tv_nsec / 1000;
}

/*
 * Settles when the next caption may begin, so that they take max-load of the CPUs on average. cpu
 * is what this one took of its own thread, which leads a team that works as long as it does.
 * Called with the lock.
 */
static void
plan_rest (GstVlmWorker *worker, const GstVlmSettings *settings, gint64 cpu)
{
  guint n_threads =
      settings->threads > 0 ? MIN (settings->threads, worker->n_cpus) : worker->n_cpus;
  gint64 since = worker->running_since;

  if (settings->max_load >= 100) {
    worker->not_before = 0;
    return;
  }
  /* Frames come when they come: what began late is made up for. */
  if (worker->not_before > 0)
    since = CLAMP (worker->not_before, since - MOST_CREDIT, since);
  worker->not_before = since + cpu * n_threads * 100 / (worker->n_cpus * settings->max_load);
}

/* Called with the lock. */
static void
count_outcome (GstVlmWorker *worker, gboolean wanted, const GstVlmAnswer *answer)
{
  worker->busy += g_get_monotonic_time () - worker->running_since;
  worker->running_since = 0;

  if (!wanted) {
    worker->counters.cancelled++;
  } else if (answer == NULL) {
    worker->counters.failed++;
  } else {
    worker->counters.completed++;
    worker->counters.last_latency = answer->latency;
    worker->latency_sum += answer->latency;
  }
}

/* The running job is done with. Called with the lock. */
static void
end_job (GstVlmWorker *worker, const GstVlmJob *job)
{
  worker->running = NULL;
  worker->finished_ticket = MAX (worker->finished_ticket, job->ticket);
  g_clear_object (&worker->cancellable);
  g_cond_broadcast (&worker->cond);
}

static void
run_job (GstVlmWorker *worker, GstVlmJob *job)
{
  g_autoptr (GError) error = NULL;
  gint64 cpu = get_cpu_time ();
  GstVlmAnswer *answer = describe (worker, job, &error);
  gboolean wanted = is_wanted (worker);

  if (wanted && answer != NULL)
    worker->hooks.answered (answer, worker->user_data);
  else if (wanted)
    worker->hooks.failed (job, error, worker->user_data);

  /* Only now, with the outcome delivered, does the job count as finished. */
  g_mutex_lock (&worker->lock);
  plan_rest (worker, job->settings, get_cpu_time () - cpu);
  worker->idle_since = g_get_monotonic_time ();
  count_outcome (worker, wanted, answer);
  end_job (worker, job);
  g_mutex_unlock (&worker->lock);

  g_clear_pointer (&answer, gst_vlm_answer_unref);
  gst_vlm_job_free (job);
}

/* The model could not be loaded again: its frame goes undescribed. */
static void
give_up_job (GstVlmWorker *worker, GstVlmJob *job)
{
  g_mutex_lock (&worker->lock);
  worker->running_since = 0;
  worker->counters.dropped++;
  end_job (worker, job);
  g_mutex_unlock (&worker->lock);

  gst_vlm_job_free (job);
}

static gpointer
run (gpointer user_data)
{
  GstVlmWorker *worker = user_data;
  GstVlmJob *job;
  gboolean usable;

  worker->reader = gst_vlm_frame_reader_new ();
  worker->n_cpus = vlm_count_cpus ();
  usable = load_model (worker);
  while (usable && (job = take_job (worker)) != NULL) {
    usable = worker->session != NULL || load_model (worker);
    if (usable)
      run_job (worker, job);
    else
      give_up_job (worker, job);
  }

  g_clear_pointer (&worker->session, vlm_session_free);
  g_clear_pointer (&worker->reader, gst_vlm_frame_reader_free);

  return NULL;
}

/* ---- Life --------------------------------------------------------------------------------- */

GstVlmWorker *
gst_vlm_worker_new (const GstVlmWorkerHooks *hooks, gpointer user_data)
{
  GstVlmWorker *worker = g_new0 (GstVlmWorker, 1);

  worker->hooks = *hooks;
  worker->user_data = user_data;
  worker->counters.last_latency = GST_CLOCK_TIME_NONE;
  /* Nothing is accepted before the first start. */
  worker->model_state = MODEL_FAILED;
  g_mutex_init (&worker->lock);
  g_cond_init (&worker->cond);

  return worker;
}

void
gst_vlm_worker_free (GstVlmWorker *worker)
{
  g_assert (worker->thread == NULL);

  gst_vlm_worker_release_model (worker);
  g_free (worker->path);
  g_free (worker->mmproj);
  g_cond_clear (&worker->cond);
  g_mutex_clear (&worker->lock);
  g_free (worker);
}

gboolean
gst_vlm_worker_start (
    GstVlmWorker *worker, const gchar *path, const VlmLoadOptions *options, GError **error)
{
  g_assert (worker->thread == NULL);

  g_free (worker->path);
  worker->path = g_strdup (path);
  g_free (worker->mmproj);
  worker->options = *options;
  worker->options.mmproj = worker->mmproj = g_strdup (options->mmproj);
  worker->load_cancellable = g_cancellable_new ();

  /* There is no thread yet, but statistics are read at any time. */
  g_mutex_lock (&worker->lock);
  worker->model_state = MODEL_LOADING;
  worker->stopping = FALSE;
  worker->flushing = FALSE;
  worker->counters = (GstVlmWorkerStats){ .last_latency = GST_CLOCK_TIME_NONE };
  worker->last_ticket = 0;
  worker->finished_ticket = 0;
  worker->not_before = 0;
  worker->latency_sum = 0;
  worker->busy = 0;
  worker->started_at = g_get_monotonic_time ();
  g_mutex_unlock (&worker->lock);

  worker->thread = g_thread_try_new ("vlmcaption", run, worker, error);
  if (worker->thread == NULL) {
    g_clear_object (&worker->load_cancellable);
    g_mutex_lock (&worker->lock);
    worker->model_state = MODEL_FAILED;
    g_mutex_unlock (&worker->lock);
    return FALSE;
  }
  return TRUE;
}

void
gst_vlm_worker_stop (GstVlmWorker *worker)
{
  if (worker->thread == NULL)
    return;

  gst_vlm_worker_begin_flush (worker);

  g_mutex_lock (&worker->lock);
  worker->stopping = TRUE;
  g_cond_broadcast (&worker->cond);
  g_mutex_unlock (&worker->lock);
  g_cancellable_cancel (worker->load_cancellable);

  g_thread_join (g_steal_pointer (&worker->thread));
  g_clear_object (&worker->load_cancellable);
}

void
gst_vlm_worker_release_model (GstVlmWorker *worker)
{
  g_clear_pointer (&worker->model, vlm_model_unref);
  g_mutex_lock (&worker->lock);
  worker->counters.loaded = FALSE;
  g_mutex_unlock (&worker->lock);
}

void
gst_vlm_worker_begin_flush (GstVlmWorker *worker)
{
  g_autoptr (GCancellable) cancellable = NULL;

  g_mutex_lock (&worker->lock);
  worker->flushing = TRUE;
  discard_waiting (worker, &worker->counters.cancelled);
  if (worker->running != NULL) {
    worker->stale = TRUE;
    g_set_object (&cancellable, worker->cancellable);
  }
  g_cond_broadcast (&worker->cond);
  g_mutex_unlock (&worker->lock);

  /* Outside the lock: handlers of the engine may run in here. */
  g_cancellable_cancel (cancellable);
}

void
gst_vlm_worker_end_flush (GstVlmWorker *worker)
{
  g_mutex_lock (&worker->lock);
  worker->flushing = FALSE;
  g_mutex_unlock (&worker->lock);
}

/* ---- Frames ------------------------------------------------------------------------------- */

gboolean
gst_vlm_worker_is_useful (GstVlmWorker *worker)
{
  gboolean useful;

  g_mutex_lock (&worker->lock);
  useful = worker->model_state != MODEL_FAILED;
  g_mutex_unlock (&worker->lock);

  return useful;
}

/* Puts the job into the slot; FALSE (the job is freed) if it is not wanted. Called with the lock. */
static gboolean
put_job (GstVlmWorker *worker, GstVlmJob *job)
{
  if (worker->flushing || worker->model_state == MODEL_FAILED) {
    gst_vlm_job_free (job);
    return FALSE;
  }

  worker->counters.submitted++;
  if (worker->waiting != NULL && worker->waiting->urgent && !job->urgent) {
    worker->counters.dropped++;
    gst_vlm_job_free (job);
    return FALSE;
  }

  discard_waiting (worker, &worker->counters.dropped);
  job->ticket = ++worker->last_ticket;
  worker->waiting = job;
  g_cond_broadcast (&worker->cond);

  return TRUE;
}

gboolean
gst_vlm_worker_wants (GstVlmWorker *worker, GstClockTime interval)
{
  gint64 now = g_get_monotonic_time ();
  gboolean wants;

  g_mutex_lock (&worker->lock);
  wants = now >= worker->not_before
      || interval / GST_USECOND >= (GstClockTime) (worker->not_before - now);
  if (!wants) {
    worker->counters.submitted++;
    worker->counters.dropped++;
  }
  g_mutex_unlock (&worker->lock);

  return wants;
}

void
gst_vlm_worker_set_idle_unload (GstVlmWorker *worker, GstClockTime idle_unload)
{
  g_mutex_lock (&worker->lock);
  worker->idle_unload = idle_unload;
  g_cond_broadcast (&worker->cond);
  g_mutex_unlock (&worker->lock);
}

void
gst_vlm_worker_wake (GstVlmWorker *worker)
{
  g_mutex_lock (&worker->lock);
  worker->not_before = 0;
  g_cond_broadcast (&worker->cond);
  g_mutex_unlock (&worker->lock);
}

gboolean
gst_vlm_worker_submit (GstVlmWorker *worker, GstVlmJob *job)
{
  gboolean taken;

  g_mutex_lock (&worker->lock);
  taken = put_job (worker, job);
  g_mutex_unlock (&worker->lock);

  return taken;
}

gboolean
gst_vlm_worker_finish (GstVlmWorker *worker, GstVlmJob *job)
{
  guint64 ticket;
  gboolean finished;

  g_mutex_lock (&worker->lock);
  if (put_job (worker, job)) {
    ticket = worker->last_ticket;
    while (!worker->flushing && worker->finished_ticket < ticket)
      g_cond_wait (&worker->cond, &worker->lock);
  }
  finished = !worker->flushing;
  g_mutex_unlock (&worker->lock);

  return finished;
}

gboolean
gst_vlm_worker_is_idle (GstVlmWorker *worker, guint serial)
{
  gboolean idle;

  g_mutex_lock (&worker->lock);
  idle = (worker->running == NULL || worker->running->serial != serial)
      && (worker->waiting == NULL || worker->waiting->serial != serial);
  g_mutex_unlock (&worker->lock);

  return idle;
}

GstClockTime
gst_vlm_worker_get_oldest_pts (GstVlmWorker *worker, guint serial)
{
  GstClockTime pts = GST_CLOCK_TIME_NONE;

  g_mutex_lock (&worker->lock);
  if (worker->running != NULL && worker->running->serial == serial)
    pts = worker->running->times.pts;
  else if (worker->waiting != NULL && worker->waiting->serial == serial)
    pts = worker->waiting->times.pts;
  g_mutex_unlock (&worker->lock);

  return pts;
}

void
gst_vlm_worker_get_stats (GstVlmWorker *worker, GstVlmWorkerStats *stats)
{
  gint64 now = g_get_monotonic_time ();
  gint64 busy, elapsed;

  g_mutex_lock (&worker->lock);
  *stats = worker->counters;
  stats->mean_latency = GST_CLOCK_TIME_NONE;
  if (stats->completed > 0)
    stats->mean_latency = worker->latency_sum / stats->completed;
  busy = worker->busy;
  if (worker->running_since > 0)
    busy += now - worker->running_since;
  elapsed = now - worker->started_at;
  stats->busy_ratio = elapsed > 0 ? (gdouble) busy / elapsed : 0;
  g_mutex_unlock (&worker->lock);
}
