/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "summary.h"

#include <string.h>

#include "times.h"

/* So many names are printed; of the others only how many there are. */
#define MAX_NAMES 10

static void
print_ignored (const GPtrArray *ignored, VlmReport *report)
{
  g_autoptr (GString) names = g_string_new (NULL);
  guint i;

  if (ignored->len == 0)
    return;
  for (i = 0; i < ignored->len && i < MAX_NAMES; i++)
    g_string_append_printf (names, "%s%s", i > 0 ? ", " : "", (gchar *) ignored->pdata[i]);
  if (ignored->len > MAX_NAMES)
    g_string_append_printf (names, " and %u more", ignored->len - MAX_NAMES);
  vlm_report_note (report, "Left out, neither pictures nor videos: %s", names->str);
}

static const gchar *
describe_state (VlmInputState state)
{
  switch (state) {
    case VLM_INPUT_WHOLE:
      return "captioned";
    case VLM_INPUT_CUT:
      return "captioned in part";
    case VLM_INPUT_FAILED:
      return "failed";
    default:
      return "not finished";
  }
}

void
vlm_summary_print (const VlmSummary *summary, const VlmInputs *inputs, VlmReport *report)
{
  static const VlmInputState order[] = { VLM_INPUT_WHOLE, VLM_INPUT_CUT, VLM_INPUT_FAILED,
    VLM_INPUT_WAITING };
  guint counts[G_N_ELEMENTS (order)] = { 0 };
  g_autoptr (GString) line = g_string_new (NULL);
  g_autofree gchar *played = vlm_time_to_short_text (summary->played);
  guint i;

  if (inputs->list->len == 1 && ((VlmInput *) inputs->list->pdata[0])->still)
    return;
  print_ignored (inputs->ignored, report);
  for (i = 0; i < inputs->list->len; i++) {
    const VlmInput *input = inputs->list->pdata[i];

    counts[input->state]++;
    if (inputs->list->len > 1
        && (input->state == VLM_INPUT_CUT || input->state == VLM_INPUT_FAILED))
      vlm_report_note (report, "%s: %s (%s)", input->state == VLM_INPUT_CUT ? "In part" : "Failed",
          input->name, input->message);
  }
  for (i = 0; i < G_N_ELEMENTS (order); i++) {
    if (counts[order[i]] > 0)
      g_string_append_printf (
          line, "%s%u %s", line->len > 0 ? ", " : "", counts[order[i]], describe_state (order[i]));
  }
  g_string_append_printf (line, "; %u captions", summary->n_new);
  if (summary->played > 0)
    g_string_append_printf (line, ", %s of video", played);
  g_string_append_printf (line, " in %.1f s", summary->seconds);
  if (summary->played > 0)
    g_string_append_printf (
        line, " (%.1f x real time)", summary->played / 1e9 / MAX (summary->seconds, 1e-3));
  vlm_report_note (report, "%s", line->str);
}

void
vlm_summary_name_left (const VlmInputs *inputs, VlmReport *report)
{
  guint i, n = 0;

  for (i = 0; i < inputs->list->len; i++) {
    const VlmInput *input = inputs->list->pdata[i];

    if (input->state != VLM_INPUT_WAITING || input->captions->len > 0)
      continue;
    if (n++ < MAX_NAMES)
      vlm_report_failure (report, input->name, "not captioned after the error above");
  }
  if (n > MAX_NAMES)
    vlm_report_note (report, "vlm-caption: and %u more", n - MAX_NAMES);
}

void
vlm_summary_print_command (const VlmRunOptions *options, gchar **command, VlmReport *report)
{
  g_autoptr (GString) line = g_string_new (NULL);
  guint i;

  if ((options->jsonl == NULL && options->db == NULL) || g_strcmp0 (options->jsonl, "-") == 0) {
    vlm_report_note (report,
        "Interrupted. The next run begins anew; with --jsonl or --db it could go on with "
        "--resume.");
    return;
  }
  for (i = 0; command[i] != NULL; i++) {
    g_autofree gchar *word = g_shell_quote (command[i]);
    gboolean plain = strpbrk (command[i], " \t\n'\"\\$`*?[]{}()<>|&;#~!") == NULL;

    if (strcmp (command[i], "--overwrite") == 0 || strcmp (command[i], "--resume") == 0)
      continue;
    g_string_append_printf (
        line, "%s%s", i > 0 ? " " : "", plain && command[i][0] != '\0' ? command[i] : word);
    if (i == 0)
      g_string_append (line, " --resume");
  }
  vlm_report_note (report, "Interrupted. To go on:\n  %s", line->str);
}
