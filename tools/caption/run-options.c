/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "run-options.h"

#include <string.h>

#include "times.h"

#define DEFAULT_EVERY 2e9
#define DEFAULT_MIN_CUE 1e9
#define DEFAULT_SCENE_CHANGE 0.05

void
vlm_run_options_add (VlmRunOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
    { "every", 'e', 0, G_OPTION_ARG_STRING, &options->every_text,
        "Caption a frame of a video that often (2s)", "TIME" },
    { "fps", 0, 0, G_OPTION_ARG_STRING, &options->fps_text,
        "Caption that many frames of a second of video", "N" },
    { "scenes", 0, 0, G_OPTION_ARG_NONE, &options->scenes,
        "Caption the first frame of each scene of a video", NULL },
    { "scene-change", 0, 0, G_OPTION_ARG_STRING, &options->scenes_text,
        "The same; a scene begins where CHANGE of the picture, 0 to 1, is new (0.05)", "CHANGE" },
    { "from", 0, 0, G_OPTION_ARG_STRING, &options->from_text, "Begin there in each video", "TIME" },
    { "to", 0, 0, G_OPTION_ARG_STRING, &options->to_text, "End there in each video", "TIME" },
    { "jobs", 0, 0, G_OPTION_ARG_INT, &options->jobs, "Caption that many inputs side by side (1)",
        "N" },
    { "srt", 0, 0, G_OPTION_ARG_FILENAME, &options->srt, "Write subtitles as SubRip", "PATH" },
    { "vtt", 0, 0, G_OPTION_ARG_FILENAME, &options->vtt, "Write subtitles as WebVTT", "PATH" },
    { "jsonl", 0, 0, G_OPTION_ARG_FILENAME, &options->jsonl,
        "Append captions as JSON, one a line, as they come", "FILE" },
    { "db", 0, 0, G_OPTION_ARG_FILENAME, &options->db,
        "Put captions into a database to search in, as they come", "FILE" },
    { "html", 0, 0, G_OPTION_ARG_FILENAME, &options->html,
        "Write a page of thumbnails and captions", "FILE" },
    { "mkv", 0, 0, G_OPTION_ARG_FILENAME, &options->mkv, "Copy the video with a track of subtitles",
        "PATH" },
    { "burn", 0, 0, G_OPTION_ARG_FILENAME, &options->burn,
        "Encode the video with captions in the picture", "PATH" },
    { "min-cue", 0, 0, G_OPTION_ARG_STRING, &options->min_cue_text,
        "Shortest subtitle (1s, or the time between captions if that is less)", "TIME" },
    { "max-cue", 0, 0, G_OPTION_ARG_STRING, &options->max_cue_text,
        "Longest subtitle (as long as it is true)", "TIME" },
    { "resume", 0, 0, G_OPTION_ARG_NONE, &options->resume,
        "Go on after the last caption in the files of --jsonl and --db", NULL },
    { "overwrite", 0, 0, G_OPTION_ARG_NONE, &options->overwrite,
        "Empty the files of --jsonl and --db if they are there", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &options->quiet,
        "Print no progress and no summary; with an output no captions either", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };
  GOptionGroup *group = g_option_group_new ("captioning", "Captioning", "", options, NULL);

  options->jobs = 1;
  g_option_group_add_entries (group, entries);
  g_option_context_add_group (context, group);
}

gboolean
vlm_option_refuse (GError **error, const gchar *option, const gchar *found, const gchar *expected)
{
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--%s is %s, expected %s", option,
      found, expected);
  return FALSE;
}

/* text may be NULL: time stays as it is. */
static gboolean
read_time (const gchar *option, const gchar *text, gint64 *time, GError **error)
{
  return text == NULL || vlm_time_parse (text, time)
      || vlm_option_refuse (error, option, text, "a time such as 2s, 500ms, 1m30s or 0:01:30");
}

/* A number from 0 (excluded) to max. */
static gboolean
read_number (const gchar *option, const gchar *text, gdouble max, const gchar *expected,
    gdouble *number, GError **error)
{
  gchar *end;

  if (text == NULL)
    return TRUE;
  *number = g_ascii_strtod (text, &end);
  return (end != text && *end == '\0' && *number > 0 && *number <= max)
      || vlm_option_refuse (error, option, text, expected);
}

static gboolean
refuse_together (gboolean together, const gchar *options, GError **error)
{
  if (together)
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s do not go together", options);
  return !together;
}

static gboolean
read_selection (VlmRunOptions *options, GError **error)
{
  VlmSelection *selection = &options->selection;
  gint64 every = (gint64) DEFAULT_EVERY;
  gdouble fps = 0;

  selection->to = -1;
  selection->scene_change = DEFAULT_SCENE_CHANGE;
  if (!read_time ("every", options->every_text, &every, error)
      || !read_number ("fps", options->fps_text, 1000, "more than 0, at most 1000", &fps, error)
      || !read_number ("scene-change", options->scenes_text, 1, "more than 0, at most 1",
          &selection->scene_change, error)
      || !read_time ("from", options->from_text, &selection->from, error)
      || !read_time ("to", options->to_text, &selection->to, error))
    return FALSE;
  if (every < 1000000)
    return vlm_option_refuse (error, "every", options->every_text, "at least 1ms");
  if (selection->to >= 0 && selection->to <= selection->from)
    return vlm_option_refuse (error, "to", options->to_text, "a time after --from");
  selection->every = options->scenes || options->scenes_text != NULL ? 0
      : fps > 0                                                      ? 1e9 / fps
                                                                     : (gdouble) every;
  selection->thumbnails = options->html != NULL;
  return TRUE;
}

static gboolean
read_cues (VlmRunOptions *options, GError **error)
{
  gdouble every = options->selection.every;

  options->min_cue = (gint64) (every > 0 ? MIN (DEFAULT_MIN_CUE, every) : DEFAULT_MIN_CUE);
  if (!read_time ("min-cue", options->min_cue_text, &options->min_cue, error)
      || !read_time ("max-cue", options->max_cue_text, &options->max_cue, error))
    return FALSE;
  if (options->max_cue == 0)
    return TRUE;
  if (options->min_cue_text == NULL)
    options->min_cue = MIN (options->min_cue, options->max_cue);
  return options->max_cue >= options->min_cue
      || vlm_option_refuse (error, "max-cue", options->max_cue_text, "at least --min-cue");
}

gboolean
vlm_run_options_complete (VlmRunOptions *options, GError **error)
{
  gboolean stored = options->jsonl != NULL || options->db != NULL;
  gboolean standard = g_strcmp0 (options->jsonl, "-") == 0;

  if (options->jobs < 1 || options->jobs > 64) {
    g_autofree gchar *found = g_strdup_printf ("%d", options->jobs);

    return vlm_option_refuse (error, "jobs", found, "1 to 64");
  }
  if (!refuse_together ((options->every_text != NULL) + (options->fps_text != NULL)
                  + (options->scenes || options->scenes_text != NULL)
              > 1,
          "--every, --fps and --scenes", error)
      || !refuse_together (options->resume && options->overwrite, "--resume and --overwrite", error)
      || !refuse_together (options->resume && standard, "--resume and --jsonl -", error))
    return FALSE;
  if (options->resume && !stored) {
    g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
        "--resume needs the --jsonl or --db of the run that it goes on with");
    return FALSE;
  }
  return read_selection (options, error) && read_cues (options, error);
}

const gchar *
vlm_run_options_find_output (const VlmRunOptions *options)
{
  const struct
  {
    const gchar *name, *path;
  } outputs[] = { { "--srt", options->srt }, { "--vtt", options->vtt },
    { "--jsonl", options->jsonl }, { "--db", options->db }, { "--html", options->html },
    { "--mkv", options->mkv }, { "--burn", options->burn } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (outputs); i++) {
    if (outputs[i].path != NULL)
      return outputs[i].name;
  }
  return NULL;
}

void
vlm_run_options_clear (VlmRunOptions *options)
{
  gchar *texts[] = { options->srt, options->vtt, options->jsonl, options->db, options->html,
    options->mkv, options->burn, options->every_text, options->fps_text, options->scenes_text,
    options->from_text, options->to_text, options->min_cue_text, options->max_cue_text };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
  memset (options, 0, sizeof (*options));
}
