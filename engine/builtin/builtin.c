/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "builtin.h"

#include "builtin-resource.h"
#include "engine/vlm.h"

const gchar *
vlm_builtin_model (void)
{
  return "resource:///org/gst-vlmcaption/model.slm";
}

void
vlm_builtin_register (void)
{
  static gsize registered;

  if (g_once_init_enter (&registered)) {
    vlm_builtin_register_resource ();
    g_once_init_leave (&registered, 1);
  }
}
