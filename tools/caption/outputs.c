/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "outputs.h"

#include <errno.h>
#include <string.h>

#include <gio/gio.h>

#include "remux.h"
#include "write.h"

/* A kind of output that there is one of for each video. */
typedef struct
{
  const gchar *option, *suffix;
  gsize path; /* where its path is in the options */
  /* One of these: a text, or a video that takes its time. */
  gboolean (*write) (const GPtrArray *cues, const gchar *path, GError **error);
  gboolean (*encode) (const gchar *uri, const GPtrArray *cues, const gchar *path,
      GCancellable *cancellable, VlmRemuxProgress progress, gpointer data, GError **error);
} Kind;

static const Kind kinds[] = {
  { "--srt", ".srt", G_STRUCT_OFFSET (VlmRunOptions, srt), vlm_write_srt, NULL },
  { "--vtt", ".vtt", G_STRUCT_OFFSET (VlmRunOptions, vtt), vlm_write_vtt, NULL },
  { "--mkv", ".mkv", G_STRUCT_OFFSET (VlmRunOptions, mkv), NULL, vlm_mux_mkv },
  { "--burn", ".mp4", G_STRUCT_OFFSET (VlmRunOptions, burn), NULL, vlm_burn },
};

static const gchar *
get_path (const Kind *kind, const VlmRunOptions *options)
{
  return G_STRUCT_MEMBER (gchar *, options, kind->path);
}

static gboolean
is_folder (const gchar *path)
{
  return g_str_has_suffix (path, "/") || g_file_test (path, G_FILE_TEST_IS_DIR);
}

const gchar **
vlm_outputs_get_paths (const VlmRunOptions *options)
{
  const gchar *paths[] = { options->jsonl, options->db, options->html, options->srt, options->vtt,
    options->mkv, options->burn };
  const gchar **list = g_new0 (const gchar *, G_N_ELEMENTS (paths) + 1);
  guint i, n = 0;

  for (i = 0; i < G_N_ELEMENTS (paths); i++) {
    if (paths[i] != NULL && strcmp (paths[i], "-") != 0 && !is_folder (paths[i]))
      list[n++] = paths[i];
  }
  return list;
}

/* A video, or what may turn out to be one. */
static gboolean
is_video (const VlmInput *input)
{
  return !input->still && input->relative != NULL;
}

/* The name without what tells its format. */
static gchar *
strip_suffix (const gchar *name)
{
  const gchar *dot = strrchr (name, '.');

  return dot != NULL && dot > name && dot[-1] != '/' && strchr (dot, '/') == NULL
      ? g_strndup (name, (gsize) (dot - name))
      : g_strdup (name);
}

/*
 * (transfer full) the names of all inputs' outputs below a folder, without a suffix: a.mp4 gives a,
 * or a.mp4 if there is an a.webm too, and a.mp4-2 for a second one from elsewhere.
 */
static GPtrArray *
name_outputs (const GPtrArray *inputs)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) stems = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GHashTable) taken = g_hash_table_new (g_str_hash, g_str_equal);
  guint i;

  for (i = 0; i < inputs->len; i++) {
    const VlmInput *input = inputs->pdata[i];
    gchar *stem = is_video (input) ? strip_suffix (input->relative) : g_strdup ("");

    g_hash_table_insert (
        stems, stem, GINT_TO_POINTER (GPOINTER_TO_INT (g_hash_table_lookup (stems, stem)) + 1));
  }
  for (i = 0; i < inputs->len; i++) {
    const VlmInput *input = inputs->pdata[i];
    gchar *name = is_video (input) ? strip_suffix (input->relative) : g_strdup ("");
    guint n = 1;

    if (is_video (input) && GPOINTER_TO_INT (g_hash_table_lookup (stems, name)) > 1) {
      g_free (name);
      name = g_strdup (input->relative);
      while (g_hash_table_contains (taken, name)) {
        g_free (name);
        name = g_strdup_printf ("%s-%u", input->relative, ++n);
      }
    }
    g_ptr_array_add (names, name);
    g_hash_table_add (taken, name);
  }
  return names;
}

/* (transfer full) where the kind's output of an input goes. */
static gchar *
find_path (const Kind *kind, const VlmRunOptions *options, const gchar *name)
{
  const gchar *path = get_path (kind, options);
  g_autofree gchar *file = NULL;

  if (!is_folder (path))
    return g_strdup (path);
  file = g_strconcat (name, kind->suffix, NULL);
  return g_build_filename (path, file, NULL);
}

/* ---- Checking ------------------------------------------------------------------------------ */

/* Whether path is where an input is, which would be lost. */
static gboolean
check_free (const gchar *option, const gchar *path, const GPtrArray *inputs, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  guint i;

  for (i = 0; i < inputs->len; i++) {
    const VlmInput *input = inputs->pdata[i];
    g_autoptr (GFile) other = input->path != NULL ? g_file_new_for_path (input->path) : NULL;

    if (other != NULL && g_file_equal (file, other)) {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
          "%s would write over the input %s", option, input->name);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
check_kind (const Kind *kind, const VlmRunOptions *options, const GPtrArray *inputs,
    const GPtrArray *names, guint n_videos, GError **error)
{
  const gchar *path = get_path (kind, options);
  guint i;

  if (path == NULL)
    return TRUE;
  if (n_videos > 1 && !is_folder (path)) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
        "%s is %s, expected a folder for %u videos: one that is there, or a path that ends in /",
        kind->option, path, n_videos);
    return FALSE;
  }
  for (i = 0; i < inputs->len; i++) {
    g_autofree gchar *file =
        is_video (inputs->pdata[i]) ? find_path (kind, options, names->pdata[i]) : NULL;

    if (file != NULL && !check_free (kind->option, file, inputs, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_outputs_check (const VlmRunOptions *options, const GPtrArray *inputs, GError **error)
{
  g_autoptr (GPtrArray) names = name_outputs (inputs);
  guint i, n_videos = 0;

  for (i = 0; i < inputs->len; i++)
    n_videos += is_video (inputs->pdata[i]);
  for (i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (!check_kind (&kinds[i], options, inputs, names, n_videos, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Making -------------------------------------------------------------------------------- */

/* (transfer container) the captions of the inputs, the last of each with the input's end. */
static GPtrArray *
gather (const GPtrArray *inputs, guint first, guint n)
{
  GPtrArray *captions = g_ptr_array_new ();
  guint i, j;

  for (i = first; i < first + n; i++) {
    const VlmInput *input = inputs->pdata[i];

    for (j = 0; j < input->captions->len; j++) {
      VlmCaption *caption = input->captions->pdata[j];

      if (!input->still && j + 1 == input->captions->len)
        caption->end = input->end > caption->pts ? input->end : -1;
      g_ptr_array_add (captions, caption);
    }
  }
  return captions;
}

/* A video that is being made. */
typedef struct
{
  VlmReport *report;
  const gchar *path;
  gint64 since; /* us */
} Making;

static void
show_progress (gint64 position, gint64 duration, gpointer data)
{
  const Making *making = data;
  VlmProgress progress = { .n_inputs = 1, .n_captions = -1, .played = position };

  progress.done = duration > 0 ? position / (gdouble) duration : 0;
  progress.seconds = (g_get_monotonic_time () - making->since) / (gdouble) G_USEC_PER_SEC;
  progress.name = making->path;
  vlm_report_progress (making->report, &progress);
}

static gboolean
make_file (const Kind *kind, const VlmInput *input, const GPtrArray *cues, const gchar *path,
    GCancellable *cancellable, VlmReport *report, GError **error)
{
  Making making = { report, path, g_get_monotonic_time () };
  g_autofree gchar *folder = g_path_get_dirname (path);

  if (g_mkdir_with_parents (folder, 0777) != 0) {
    gint code = errno;

    g_set_error (
        error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", folder, g_strerror (code));
    return FALSE;
  }
  if (kind->write != NULL)
    return kind->write (cues, path, error);
  vlm_report_step (report, "Making", path);
  return kind->encode (input->uri, cues, path, cancellable, show_progress, &making, error);
}

static gboolean
make_for_input (const VlmRunOptions *options, const GPtrArray *inputs, guint index,
    const gchar *name, gboolean partial, GCancellable *cancellable, VlmReport *report)
{
  g_autoptr (GPtrArray) captions = gather (inputs, index, 1);
  g_autoptr (GPtrArray) cues = vlm_cues_new (captions, options->min_cue, options->max_cue);
  gboolean done = TRUE;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree gchar *path = NULL;

    if (get_path (&kinds[i], options) == NULL)
      continue;
    path = find_path (&kinds[i], options, name);
    if (kinds[i].encode != NULL && (partial || g_cancellable_is_cancelled (cancellable))) {
      vlm_report_note (report, "%s: not made, since the run was interrupted", path);
      continue;
    }
    if (!make_file (&kinds[i], inputs->pdata[index], cues, path, cancellable, report, &error)) {
      vlm_report_failure (report, kinds[i].option, error->message);
      done = FALSE;
    }
  }
  return done;
}

static gboolean
make_html (const VlmRunOptions *options, const GPtrArray *inputs, VlmReport *report)
{
  g_autoptr (GPtrArray) captions = gather (inputs, 0, inputs->len);
  g_autoptr (GPtrArray) cues = vlm_cues_new (captions, 0, 0);
  g_autoptr (GError) error = NULL;

  if (vlm_write_html (cues, options->html, &error))
    return TRUE;
  vlm_report_failure (report, "--html", error->message);
  return FALSE;
}

gboolean
vlm_outputs_make (const VlmRunOptions *options, const GPtrArray *inputs, gboolean partial,
    GCancellable *cancellable, VlmReport *report)
{
  g_autoptr (GPtrArray) names = name_outputs (inputs);
  gboolean done = TRUE;
  guint i;

  for (i = 0; i < inputs->len; i++) {
    const VlmInput *input = inputs->pdata[i];

    if (is_video (input) && input->captions->len > 0)
      done = make_for_input (options, inputs, i, names->pdata[i], partial, cancellable, report)
          && done;
  }
  if (options->html != NULL)
    done = make_html (options, inputs, report) && done;
  return done;
}
