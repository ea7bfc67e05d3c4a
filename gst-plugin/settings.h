/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The element's properties as one struct, and their GObject side. The element keeps one of these
 * under its object lock and copies it into each request, so a change never touches a caption that
 * is being made.
 */

#ifndef GST_VLM_SETTINGS_H
#define GST_VLM_SETTINGS_H

#include <gst/gst.h>

#include "engine/vlm.h"
#include "region.h"

G_BEGIN_DECLS

typedef enum
{
  GST_VLM_MODE_AUTO,
  GST_VLM_MODE_ASYNC,
  GST_VLM_MODE_SYNC
} GstVlmMode;

typedef enum
{
  GST_VLM_POST_NONE,
  GST_VLM_POST_ALL,
  GST_VLM_POST_CHANGED
} GstVlmPost;

typedef enum
{
  GST_VLM_TEXT_TIMING_AUTO,
  GST_VLM_TEXT_TIMING_FRAME,
  GST_VLM_TEXT_TIMING_DISPLAY
} GstVlmTextTiming;

GType gst_vlm_mode_get_type (void);
GType gst_vlm_post_get_type (void);

/* "auto", "async", "sync" */
const gchar *gst_vlm_mode_name (GstVlmMode mode);

typedef struct
{
  gchar *model;  /* NULL: VLMCAPTION_MODEL, else the built-in one */
  gchar *mmproj; /* NULL: the one beside the model */
  gchar *prompt;
  gchar *system_prompt;    /* NULL: none */
  GstClockTime interval;   /* NONE: only frames that are asked for */
  gdouble scene_threshold; /* 0: off */
  gchar *roi;              /* as it was set; NULL: the whole picture */
  GstVlmRegion region;     /* what roi says */
  GstVlmMode mode;
  GstVlmPost post_messages;
  gboolean partial_captions;
  guint max_load;           /* percent */
  GstClockTime idle_unload; /* 0: never */
  gint nice;
  guint threads; /* 0: all that the process may use */
  VlmPrecision precision;
  VlmTiling tiling;
  gboolean auto_overlay;
  GstVlmTextTiming text_timing;
  GstClockTime text_max_duration;

  /* -1: as the model's files say */
  gint max_tokens;
  gdouble temperature;
  gint top_k;
  gdouble top_p;
  gdouble min_p;
  gdouble repetition_penalty;
  gint64 seed;
  gint min_image_tokens;
  gint max_image_tokens;
} GstVlmSettings;

/* The defaults. (transfer full) */
GstVlmSettings *gst_vlm_settings_new (void);
GstVlmSettings *gst_vlm_settings_copy (const GstVlmSettings *settings);
void gst_vlm_settings_free (GstVlmSettings *settings);

/* The path to load: the property, else the environment's, else the built-in model's. */
const gchar *gst_vlm_settings_get_model (const GstVlmSettings *settings);

/* The vision part that goes with it; NULL: what the engine finds beside it. */
const gchar *gst_vlm_settings_get_mmproj (const GstVlmSettings *settings);

/* Fills the fields of request that settings decide; its strings stay the settings'. */
void gst_vlm_settings_fill_request (const GstVlmSettings *settings, VlmRequest *request);

/* Installs one property for each field above; ids run from 1 to the returned number. */
guint gst_vlm_settings_install (GObjectClass *klass);

/*
 * Sets or reads one of those properties; FALSE if id is none of them, or if the value is one that
 * the property does not allow although its range does (then nothing changes and *refused says why).
 */
gboolean gst_vlm_settings_set (
    GstVlmSettings *settings, guint id, const GValue *value, const gchar **refused);
gboolean gst_vlm_settings_get (const GstVlmSettings *settings, guint id, GValue *value);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstVlmSettings, gst_vlm_settings_free)

G_END_DECLS

#endif
