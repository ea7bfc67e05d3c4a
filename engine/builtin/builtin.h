/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small model that is compiled in. */

#ifndef VLM_BUILTIN_H
#define VLM_BUILTIN_H

/* Makes vlm_builtin_model () openable. May be called any number of times, from any thread. */
void vlm_builtin_register (void);

#endif
