/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "autooverlay.h"
#include "downstream.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vlm_caption_debug);
#define GST_CAT_DEFAULT gst_vlm_caption_debug

struct _GstVlmAutoOverlay
{
  GstElement *element;
  GstPad *text;      /* of element */
  GPtrArray *ghosts; /* of GstPad: those that were added, owned */
};

/* ---- Finding ------------------------------------------------------------------------------ */

/* FALSE also for an overlay that is silent: it never takes the text that it is given. */
static gboolean
wants_text (GstElement *overlay)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (overlay);
  GParamSpec *text = g_object_class_find_property (klass, "text");
  GParamSpec *silent = g_object_class_find_property (klass, "silent");
  GstControlBinding *binding = gst_object_get_control_binding (GST_OBJECT (overlay), "text");
  g_autofree gchar *words = NULL;
  gboolean is_silent = FALSE;
  gboolean controlled = binding != NULL;

  gst_clear_object (&binding);
  if (text == NULL || !G_IS_PARAM_SPEC_STRING (text) || controlled)
    return FALSE;

  g_object_get (overlay, "text", &words, NULL);
  if (silent != NULL && G_IS_PARAM_SPEC_BOOLEAN (silent))
    g_object_get (overlay, "silent", &is_silent, NULL);

  return (words == NULL || *words == '\0') && !is_silent;
}

/* The pad itself, or the outermost ghost pad that shows it outside; NULL if either is linked. */
static GstPad *
get_free_side (GstPad *pad)
{
  GstPad *side = gst_object_ref (pad);
  guint hops;

  for (hops = 0; hops < GST_VLM_MOST_HOPS; hops++) {
    GstPad *peer = gst_pad_get_peer (side);
    GstProxyPad *ghost;

    if (peer == NULL)
      return side;
    ghost = GST_IS_PROXY_PAD (peer) ? gst_proxy_pad_get_internal (GST_PROXY_PAD (peer)) : NULL;
    gst_object_unref (peer);
    gst_object_unref (side);
    if (ghost == NULL)
      return NULL;
    side = GST_PAD (ghost);
  }
  gst_object_unref (side);
  return NULL;
}

/* Where captions for this overlay can be linked, or NULL. (transfer full) */
static GstPad *
get_free_text_sink (GstElement *overlay)
{
  GstPad *sink = gst_element_get_static_pad (overlay, "text_sink");
  GstPad *side = NULL;

  if (sink != NULL && GST_PAD_IS_SINK (sink) && wants_text (overlay))
    side = get_free_side (sink);
  gst_clear_object (&sink);

  return side;
}

/* Past an element that video goes through, or NULL. (transfer full) */
static GstPad *
get_next_src (GstElement *element)
{
  GstPad *src;
  GstPadTemplate *template;

  /* An overlay that has its text is passed like any other filter. */
  if (gst_vlm_downstream_is_overlay (element))
    return gst_element_get_static_pad (element, "src");

  src = gst_vlm_downstream_get_way_on (element);
  template = src != NULL ? gst_pad_get_pad_template (src) : NULL;
  /* A tee with one branch may get others, which the captions are not for. */
  if (template != NULL && GST_PAD_TEMPLATE_PRESENCE (template) == GST_PAD_REQUEST)
    gst_clear_object (&src);
  gst_clear_object (&template);

  return src;
}

GstPad *
gst_vlm_auto_overlay_find (GstPad *video)
{
  GstPad *src = gst_object_ref (video);
  GstPad *found = NULL;
  guint hops;

  for (hops = 0; src != NULL && found == NULL && hops < GST_VLM_MOST_HOPS; hops++) {
    GstPad *peer = gst_vlm_downstream_get_peer (src);
    GstElement *element = peer != NULL ? gst_pad_get_parent_element (peer) : NULL;

    gst_clear_object (&src);
    if (element != NULL) {
      if (gst_vlm_downstream_is_overlay (element))
        found = get_free_text_sink (element);
      if (found == NULL)
        src = get_next_src (element);
    }
    gst_clear_object (&element);
    gst_clear_object (&peer);
  }
  gst_clear_object (&src);

  return found;
}

/* ---- Linking ------------------------------------------------------------------------------ */

static gboolean
is_running (GstElement *element)
{
  gboolean running;

  GST_OBJECT_LOCK (element);
  running = GST_STATE (element) > GST_STATE_READY || GST_STATE_NEXT (element) >= GST_STATE_PAUSED;
  GST_OBJECT_UNLOCK (element);

  return running;
}

/* Shows pad outside of bin; NULL if that fails. The new pad is remembered. (transfer none) */
static GstPad *
add_ghost (GstVlmAutoOverlay *self, GstElement *bin, GstPad *pad)
{
  GstPad *ghost = gst_ghost_pad_new (NULL, pad);

  if (ghost == NULL)
    return NULL;

  gst_object_ref_sink (ghost);
  if (is_running (bin))
    gst_pad_set_active (ghost, TRUE);
  if (!gst_element_add_pad (bin, ghost)) {
    gst_object_unref (ghost);
    return NULL;
  }
  g_ptr_array_add (self->ghosts, ghost);

  return ghost;
}

/* The bin around the element that pad belongs to, or NULL. (transfer full) */
static GstObject *
get_bin (GstPad *pad)
{
  GstElement *element = gst_pad_get_parent_element (pad);
  GstObject *bin = element != NULL ? gst_object_get_parent (GST_OBJECT (element)) : NULL;

  gst_clear_object (&element);
  return bin;
}

/* The pad that stands for pad directly inside of ancestor, through new ghost pads; NULL: failed. */
static GstPad *
bring_up (GstVlmAutoOverlay *self, GstPad *pad, GstObject *ancestor)
{
  GstObject *bin = get_bin (pad);

  while (pad != NULL && bin != NULL && bin != ancestor) {
    GstObject *above = gst_object_get_parent (bin);

    pad = add_ghost (self, GST_ELEMENT (bin), pad);
    gst_object_unref (bin);
    bin = above;
  }
  gst_clear_object (&bin);

  return pad;
}

/* The innermost bin that both pads are in, or NULL. (transfer full) */
static GstObject *
find_common_bin (GstPad *a, GstPad *b)
{
  GstObject *bin = get_bin (a);
  GstObject *other = get_bin (b);

  while (bin != NULL && (other == NULL || !gst_object_has_as_ancestor (other, bin))) {
    GstObject *above = gst_object_get_parent (bin);

    gst_object_unref (bin);
    bin = above;
  }
  gst_clear_object (&other);

  return bin;
}

static gboolean
link (GstVlmAutoOverlay *self, GstPad *target)
{
  GstObject *bin = find_common_bin (self->text, target);
  GstPad *from, *to;
  gboolean linked;

  if (bin == NULL)
    return FALSE;

  from = bring_up (self, self->text, bin);
  to = from != NULL ? bring_up (self, target, bin) : NULL;
  linked = to != NULL && gst_pad_link (from, to) == GST_PAD_LINK_OK;
  gst_object_unref (bin);

  return linked;
}

static void
remove_ghost (gpointer data)
{
  GstPad *ghost = data;
  GstElement *bin = gst_pad_get_parent_element (ghost);

  gst_pad_set_active (ghost, FALSE);
  if (bin != NULL)
    gst_element_remove_pad (bin, ghost);
  gst_clear_object (&bin);
  gst_object_unref (ghost);
}

GstVlmAutoOverlay *
gst_vlm_auto_overlay_new (GstElement *element, GstPad *text, GstPad *target)
{
  GstVlmAutoOverlay *self = g_new0 (GstVlmAutoOverlay, 1);

  self->element = element;
  self->text = gst_object_ref (text);
  self->ghosts = g_ptr_array_new_with_free_func (remove_ghost);
  if (!link (self, target)) {
    GST_WARNING_OBJECT (element, "captions cannot be linked to %s:%s", GST_DEBUG_PAD_NAME (target));
    gst_vlm_auto_overlay_free (self);
    return NULL;
  }

  GST_INFO_OBJECT (element,
      "captions go to %s:%s, which nobody fed; auto-overlay=false leaves it alone",
      GST_DEBUG_PAD_NAME (target));
  return self;
}

void
gst_vlm_auto_overlay_free (GstVlmAutoOverlay *self)
{
  /* Released first, while an overlay that blocks text can still be told to let go. */
  if (gst_object_has_as_parent (GST_OBJECT (self->text), GST_OBJECT (self->element)))
    gst_element_release_request_pad (self->element, self->text);
  g_ptr_array_unref (self->ghosts);
  gst_object_unref (self->text);
  g_free (self);
}
