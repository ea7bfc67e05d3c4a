/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-caption search: captions of a database found again. */

#ifndef TOOLS_CAPTION_SEARCH_H
#define TOOLS_CAPTION_SEARCH_H

#include <glib.h>

/*
 * Runs the command line, whose argv[0] is "search". Returns the exit code: 0 something was found, 1
 * nothing was, or it could not be searched, 2 for a wrong command line.
 */
int vlm_search (int argc, char **argv);

#endif
