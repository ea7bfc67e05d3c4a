/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * vlm-caption: videos and pictures to captions on the command line. Text goes in and out as UTF-8 whatever the
 * locale, therefore not through g_print().
 */

#include <stdio.h>
#include <string.h>

#include <gst/gst.h>

#include "caption.h"
#include "caption/run.h"
#include "caption/search.h"
#include "output.h"

#define EXIT_USAGE 2

gboolean
caption_print (const CaptionOptions *options, const gchar *picture, const gchar *text)
{
  g_autoptr (GError) error = NULL;

  if (picture != NULL && options->n_pictures > 1)
    printf ("%s: %s\n", picture, text);
  else
    printf ("%s\n", text);
  if (output_flush (&error))
    return TRUE;
  caption_fail (NULL, error->message);
  return FALSE;
}

void
caption_fail (const gchar *picture, const gchar *message)
{
  if (picture != NULL)
    fprintf (stderr, "vlm-caption: %s: %s\n", picture, message);
  else
    fprintf (stderr, "vlm-caption: %s\n", message);
}

/* What the options ask for; returns the exit code. */
static int
run (const CaptionOptions *options, gchar **command)
{
  if (options->dump != NULL || options->n_pictures == 0 || options->timings)
    return caption_direct (options) ? 0 : 1;
  return vlm_run (options, command);
}

static int
caption (int argc, char **argv)
{
  CaptionOptions options;
  /* Parsing takes words out of it. */
  g_auto (GStrv) command = g_strdupv (argv);
  g_autoptr (GError) error = NULL;
  int exit_code = 0;

  switch (caption_options_parse (&options, argc, argv, &error)) {
    case CAPTION_OPTIONS_WRONG:
      g_printerr ("vlm-caption: %s\nvlm-caption --help tells more.\n", error->message);
      exit_code = EXIT_USAGE;
      break;
    case CAPTION_OPTIONS_DONE:
      break;
    case CAPTION_OPTIONS_RUN:
      exit_code = run (&options, command);
      break;
  }
  caption_options_clear (&options);
  return exit_code;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  int exit_code;

  gst_init (NULL, NULL);
  if (argc > 1 && strcmp (argv[1], "search") == 0)
    exit_code = vlm_search (argc - 1, argv + 1);
  else
    exit_code = caption (argc, argv);
  /* Where a caption was lost, that has been said. */
  if (exit_code == 0 && !output_flush (&error)) {
    caption_fail (NULL, error->message);
    exit_code = 1;
  }
  return exit_code;
}
