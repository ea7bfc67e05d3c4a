/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "mode.h"

gboolean
gst_vlm_mode_is_live (GstPad *sink)
{
  GstQuery *query = gst_query_new_latency ();
  gboolean live = FALSE;

  if (gst_pad_peer_query (sink, query))
    gst_query_parse_latency (query, &live, NULL, NULL);
  gst_query_unref (query);

  return live;
}

static gboolean
is_pacing_kind (GstElement *element)
{
  GstElementFactory *factory = gst_element_get_factory (element);
  const gchar *name = factory != NULL ? GST_OBJECT_NAME (factory) : "";

  if (GST_IS_BIN (element))
    return FALSE; /* what is in it counts */

  return GST_OBJECT_FLAG_IS_SET (element, GST_ELEMENT_FLAG_SINK) || g_str_equal (name, "clocksync")
      || g_str_equal (name, "identity");
}

/* 0 is the verdict that ends gst_iterator_find_custom(). */
static gint
compare_waits_for_clock (gconstpointer item, gconstpointer user_data)
{
  GstElement *element = g_value_get_object (item);
  GParamSpec *spec;
  gboolean sync = FALSE;

  if (!is_pacing_kind (element))
    return 1;

  spec = g_object_class_find_property (G_OBJECT_GET_CLASS (element), "sync");
  if (spec != NULL && G_PARAM_SPEC_VALUE_TYPE (spec) == G_TYPE_BOOLEAN)
    g_object_get (element, "sync", &sync, NULL);

  return sync ? 0 : 1;
}

/* The outermost bin around element, or NULL. (transfer full) */
static GstObject *
get_pipeline (GstElement *element)
{
  GstObject *top = gst_object_get_parent (GST_OBJECT (element));
  GstObject *parent;

  while (top != NULL && (parent = gst_object_get_parent (top)) != NULL) {
    gst_object_unref (top);
    top = parent;
  }
  return top;
}

GstVlmMode
gst_vlm_mode_choose (GstElement *element, gboolean live)
{
  GstObject *top;
  gboolean waits = FALSE;

  if (live)
    return GST_VLM_MODE_ASYNC;

  top = get_pipeline (element);
  if (top != NULL && GST_IS_BIN (top)) {
    GstIterator *elements = gst_bin_iterate_recurse (GST_BIN (top));
    GValue found = G_VALUE_INIT;

    waits = gst_iterator_find_custom (elements, compare_waits_for_clock, &found, NULL);
    if (waits)
      g_value_unset (&found);
    gst_iterator_free (elements);
  }
  gst_clear_object (&top);

  return waits ? GST_VLM_MODE_ASYNC : GST_VLM_MODE_SYNC;
}
