/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "captionmeta.h"
#include "vlmcaption.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  gst_vlm_caption_meta_register ();

  return GST_ELEMENT_REGISTER (vlmcaption, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, vlmcaption,
    "Describes video in words with a small vision-language model", plugin_init, VERSION, "LGPL",
    GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
