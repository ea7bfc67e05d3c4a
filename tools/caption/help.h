/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What --help prints: one screen of 24 lines by 80 columns. */

#ifndef TOOLS_CAPTION_HELP_H
#define TOOLS_CAPTION_HELP_H

extern const char vlm_help_text[];

#endif
