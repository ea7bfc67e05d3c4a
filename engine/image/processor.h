/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The settings of the image processor, as the model's files give them. */

#ifndef VLM_PROCESSOR_H
#define VLM_PROCESSOR_H

#include <glib.h>

typedef enum
{
  VLM_FILTER_BILINEAR = 2, /* the numbers of "resample" in processor files */
  VLM_FILTER_BICUBIC = 3
} VlmFilter;

typedef enum
{
  VLM_RESAMPLE_INTEGER, /* int16 weights, uint8 between the passes */
  VLM_RESAMPLE_FLOAT    /* float32 throughout, rounded once at the end; bilinear only */
} VlmResamplePath;

typedef struct
{
  guint patch_size;             /* encoder_patch_size, 16 */
  guint downsample_factor;      /* 2 */
  guint tile_size;              /* 512 */
  guint min_tiles;              /* 2 */
  guint max_tiles;              /* 10 */
  guint min_image_tokens;       /* 64 */
  guint max_image_tokens;       /* 256 */
  gdouble max_pixels_tolerance; /* 2.0 */
  gboolean do_image_splitting;
  gboolean use_thumbnail;
  gboolean use_image_special_tokens;
  VlmFilter filter;
  VlmResamplePath path;   /* not in any file; VLM_RESAMPLE_INTEGER */
  gdouble rescale_factor; /* 1 / 255 */
  gfloat mean[3];         /* 0.5 */
  gfloat std[3];          /* 0.5 */
} VlmProcessor;

/* Sets the class defaults of the reference implementation. */
void vlm_processor_init_defaults (VlmProcessor *processor);

/* Refuses settings that would divide by zero or ask for absurd sizes; the error names the field. */
gboolean vlm_processor_validate (const VlmProcessor *processor, GError **error);

#endif
