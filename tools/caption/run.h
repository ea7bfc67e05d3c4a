/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captioning of all inputs, from the command line's words to the exit code. */

#ifndef TOOLS_CAPTION_RUN_H
#define TOOLS_CAPTION_RUN_H

#include "../caption-options.h"

/*
 * Captions the inputs that the options name. command is the whole command line, which is printed to
 * go on with. Returns the exit code: 0 all went well, 1 something failed, 2 the options do not fit
 * the inputs, 128 + the number of the signal that ended it.
 */
int vlm_run (const CaptionOptions *options, gchar **command);

#endif
