/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small change of the public interface: error domain, names, results. */

#include "vlm.h"

G_DEFINE_QUARK (vlm - error - quark, vlm_error)

const gchar *
vlm_finish_reason_name (VlmFinishReason reason)
{
  switch (reason) {
    case VLM_FINISH_STOP:
      return "stop";
    case VLM_FINISH_LENGTH:
      return "length";
    case VLM_FINISH_CONTEXT:
      return "context";
    case VLM_FINISH_CANCELLED:
      return "cancelled";
    case VLM_FINISH_REPETITION:
      return "repetition";
  }
  return NULL;
}

void
vlm_result_clear (VlmResult *result)
{
  g_free (result->text);
  g_free (result->ids);
  memset (result, 0, sizeof (*result));
}
