/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "output.h"

#include <errno.h>
#include <stdio.h>

gboolean
output_check (GError **error)
{
  gint code = errno;

  if (!ferror (stdout))
    return TRUE;
  g_set_error (
      error, G_IO_ERROR, g_io_error_from_errno (code), "standard output: %s", g_strerror (code));
  return FALSE;
}

gboolean
output_flush (GError **error)
{
  /* What fails here marks the stream, as every earlier failure did. */
  fflush (stdout);
  return output_check (error);
}
