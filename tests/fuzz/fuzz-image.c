/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sizes of pictures and settings of the processor: layouts, and resampling of what is small. */

#include <string.h>

#include "engine/image/crops.h"
#include "engine/model/level.h"
#include "fuzz.h"

/* Beyond these a picture or a crop is planned only. */
#define MAX_PIXELS (1u << 16)

/* What an input is read as; one that is shorter is zero at its end. */
typedef struct
{
  guint32 width, height;
  guint16 patch, factor, tile, min_tiles, max_tiles, min_tokens, max_tokens;
  guint8 tolerance, flags;
  guint16 out_width, out_height;
} Input;

static VlmKernels kernels;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  VlmCpuLevel level;

  g_assert (vlm_cpu_level_choose (&level, NULL));
  g_assert (vlm_kernels_init (&kernels, level) == 0);
  return 0;
}

static void
init_processor (VlmProcessor *processor, const Input *input)
{
  vlm_processor_init_defaults (processor);
  if (input->flags & 1)
    return;
  processor->patch_size = input->patch;
  processor->downsample_factor = input->factor;
  processor->tile_size = input->tile;
  processor->min_tiles = input->min_tiles;
  processor->max_tiles = input->max_tiles;
  processor->min_image_tokens = input->min_tokens;
  processor->max_image_tokens = input->max_tokens;
  processor->max_pixels_tolerance = input->tolerance / 16.0;
  processor->do_image_splitting = (input->flags & 2) != 0;
  processor->use_thumbnail = (input->flags & 4) != 0;
  processor->filter = input->flags & 8 ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR;
}

/* The tokens of the crops are those of the picture, and every crop is whole patches. */
static void
check_layout (const VlmLayout *layout, const VlmProcessor *processor)
{
  guint side = processor->patch_size * processor->downsample_factor, width, height, i;
  guint64 tokens = 0;

  g_assert (layout->n_crops >= 1 && layout->image_tokens >= 1);
  for (i = 0; i < layout->n_crops; i++) {
    vlm_layout_crop_size (layout, i, &width, &height);
    g_assert (width > 0 && height > 0 && width % side == 0 && height % side == 0);
    tokens += (guint64) (width / side) * (height / side);
  }
  g_assert_cmpuint (tokens, ==, layout->image_tokens);
}

static void
resample (const Input *input, guint width, guint height)
{
  gsize out_width = input->out_width, out_height = input->out_height;
  g_autofree guint8 *pixels = g_malloc0 ((gsize) width * height * 3 + 1);
  g_autofree guint8 *out = g_malloc (out_width * out_height * 3 + 1);
  GError *error = NULL;

  memset (pixels, 200, (gsize) width * height * 3);
  if (!vlm_resample_rgb (&kernels, pixels, (gsize) width * 3, width, height, out, out_width,
          out_height, input->flags & 8 ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR,
          input->flags & 16 ? VLM_RESAMPLE_FLOAT : VLM_RESAMPLE_INTEGER, &error)) {
    fuzz_expect_error (error);
    return;
  }
  g_assert (out_width > 0 && out_height > 0);
  /* One colour stays one colour. */
  g_assert (ABS ((gint) out[0] - 200) <= 1);
  g_assert (ABS ((gint) out[out_width * out_height * 3 - 1] - 200) <= 1);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  Input input = { 0 };
  VlmProcessor processor;
  VlmLayout layout;
  GError *error = NULL;

  memcpy (&input, data, MIN (size, sizeof (input)));
  init_processor (&processor, &input);
  if (!vlm_processor_validate (&processor, &error)) {
    fuzz_expect_error (error);
    return 0;
  }
  if (vlm_layout_plan (&layout, &processor, input.width, input.height, &error))
    check_layout (&layout, &processor);
  else
    fuzz_expect_error (error);
  if ((guint64) input.width * input.height <= MAX_PIXELS
      && (guint64) input.out_width * input.out_height <= MAX_PIXELS)
    resample (&input, input.width, input.height);
  return 0;
}
