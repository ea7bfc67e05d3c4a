/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "patience.h"

void
vlm_patience_begin (VlmPatience *patience, guint seconds, gint64 now)
{
  patience->limit = seconds * G_TIME_SPAN_SECOND;
  patience->looked = now;
  patience->idle = 0;
}

gboolean
vlm_patience_look (VlmPatience *patience, gboolean moved, gint64 now)
{
  patience->idle += MIN (now - patience->looked, G_TIME_SPAN_SECOND);
  patience->looked = now;
  if (moved)
    patience->idle = 0;
  return patience->idle <= patience->limit;
}
