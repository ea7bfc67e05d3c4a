/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * vlm-caption: pictures to captions on the command line. Text goes in and out as UTF-8 whatever the
 * locale, therefore not through g_print().
 */

#include <stdio.h>

#include <gst/gst.h>

#include "caption.h"
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

int
main (int argc, char **argv)
{
  CaptionOptions options;
  g_autoptr (GError) error = NULL;
  gboolean done = TRUE;

  switch (caption_options_parse (&options, argc, argv, &error)) {
    case CAPTION_OPTIONS_WRONG:
      g_printerr ("vlm-caption: %s\nvlm-caption --help tells more.\n", error->message);
      caption_options_clear (&options);
      return EXIT_USAGE;
    case CAPTION_OPTIONS_DONE:
      break;
    case CAPTION_OPTIONS_RUN:
      gst_init (NULL, NULL);
      if (options.dump != NULL || options.n_pictures == 0 || options.timings)
        done = caption_direct (&options);
      else
        done = caption_by_element (&options);
      break;
  }
  caption_options_clear (&options);
  /* Where a caption was lost, that has been said. */
  if (done && !output_flush (&error)) {
    caption_fail (NULL, error->message);
    done = FALSE;
  }
  return done ? 0 : 1;
}
