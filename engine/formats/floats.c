/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "floats.h"

#include <string.h>

/* Values that are counted before the first of them is searched for: the count has no exit. */
#define COUNT_AT_ONCE 4096

/* All bits of the exponent: a value that has them is no finite number. */
#define F32_EXPONENT 0x7f800000u
#define F16_EXPONENT 0x7c00u
#define BF16_EXPONENT 0x7f80u

void
vlm_floats_widen (
    const VlmKernels *kernels, VlmDType dtype, gconstpointer raw, gfloat *values, gsize n)
{
  if (dtype == VLM_DTYPE_F16)
    kernels->f16_to_f32 (values, raw, n);
  else if (dtype == VLM_DTYPE_BF16)
    kernels->bf16_to_f32 (values, raw, n);
  else
    memcpy (values, raw, n * sizeof (gfloat));
}

static gsize
count_32 (const guint32 *x, gsize n)
{
  gsize count = 0, i;

  for (i = 0; i < n; i++)
    count += (x[i] & F32_EXPONENT) == F32_EXPONENT;
  return count;
}

static gsize
count_16 (const guint16 *x, gsize n, guint16 exponent)
{
  gsize count = 0, i;

  for (i = 0; i < n; i++)
    count += (x[i] & exponent) == exponent;
  return count;
}

gsize
vlm_floats_count_special (VlmDType dtype, gconstpointer raw, gsize n)
{
  if (dtype == VLM_DTYPE_F32)
    return count_32 (raw, n);
  return count_16 (raw, n, dtype == VLM_DTYPE_F16 ? F16_EXPONENT : BF16_EXPONENT);
}

gsize
vlm_floats_find_special (VlmDType dtype, gconstpointer raw, gsize n)
{
  const guint8 *bytes = raw;
  gsize size = vlm_dtype_size (dtype), i = 0;

  while (i < n && !vlm_floats_count_special (dtype, bytes + i * size, MIN (COUNT_AT_ONCE, n - i)))
    i += MIN (COUNT_AT_ONCE, n - i);
  while (i < n && !vlm_floats_count_special (dtype, bytes + i * size, 1))
    i++;
  return i;
}

const gchar *
vlm_floats_special_name (VlmDType dtype, gconstpointer raw, gsize index)
{
  guint32 bits, exponent;

  if (dtype == VLM_DTYPE_F32) {
    bits = ((const guint32 *) raw)[index];
    exponent = F32_EXPONENT;
  } else {
    bits = (guint32) ((const guint16 *) raw)[index] << 16;
    exponent = (dtype == VLM_DTYPE_F16 ? F16_EXPONENT : BF16_EXPONENT) << 16;
  }
  if (bits & ~exponent & G_MAXINT32)
    return "NaN";
  return bits & ~(guint32) G_MAXINT32 ? "-Inf" : "Inf";
}

gchar *
vlm_floats_position (const VlmTensorInfo *info, guint64 index)
{
  guint64 position[VLM_MAX_RANK];
  guint i;

  for (i = info->rank; i-- > 0;) {
    position[i] = index % info->shape[i];
    index /= info->shape[i];
  }
  return vlm_tensor_shape_to_string (position, info->rank);
}
