/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Panels of integer weights: the one place that knows their tile order, which each level sets by
 * three numbers.
 *
 * A run of len values of every row of the panel (a group, or the whole row where there are none)
 * lies as [len / inner][int_panel][inner] bytes: inner consecutive values of a row side by side,
 * as many as one instruction adds up (4, or 8). int_flip is exclusive-ored to 8-bit weights: 0x80
 * makes them unsigned for instructions that want that, with a bias of 128 that the sums of
 * activations take out again.
 *
 * 4-bit weights are stored as q + 8, a nibble each, in bytes that lie as
 * [len / (2 inner)][int_panel][inner]: low nibbles hold one piece of inner values, high nibbles the
 * next. Both halves of a loaded register so meet activations in their natural order.
 *
 * Scales of groups stand before the values of their group, [int_panel] halves, so that a panel is
 * read from its first byte to its last. Those of rows stand before everything, [int_panel] floats.
 *
 * Plain C has an inner of 0, which means the whole run: its rows are contiguous.
 */

#include "kernels.h"
#include "scalar/half.h"

typedef struct
{
  size_t panel, inner;
  uint8_t flip;
  int nibbles;
} Order;

static Order
order_of (const VlmKernels *kernels, VlmIntFormat format, size_t len)
{
  int nibbles = format == VLM_INT_I4_GROUPS;

  return (Order){ kernels->int_panel,
    kernels->int_inner != 0 ? kernels->int_inner : len / (nibbles ? 2 : 1),
    nibbles ? 0 : kernels->int_flip, nibbles };
}

/* The byte of value l of row j, in a run. */
static size_t
byte_of (const Order *order, size_t l, size_t j)
{
  size_t inner = order->inner;

  return (l / (order->nibbles ? 2 * inner : inner) * order->panel + j) * inner + l % inner;
}

/* Whether value l is in the high half of its byte. */
static int
is_high (const Order *order, size_t l)
{
  return order->nibbles && l / order->inner % 2 != 0;
}

static size_t
run_bytes (const Order *order, size_t len)
{
  return len * order->panel / (order->nibbles ? 2 : 1);
}

static size_t
min_size (size_t a, size_t b)
{
  return a < b ? a : b;
}

size_t
vlm_int_panel_bytes (const VlmKernels *kernels, VlmIntFormat format, size_t k, size_t group)
{
  size_t panel = kernels->int_panel, padded = vlm_padded_k (k);

  if (format == VLM_INT_I8)
    return panel * (sizeof (float) + padded);

  return panel * (padded / (format == VLM_INT_I4_GROUPS ? 2 : 1))
      + panel * sizeof (uint16_t) * vlm_n_groups (padded, group);
}

/* len values of row j, of which w has n; without w they are zeros. */
static void
pack_run (const Order *order, uint8_t *run, const int8_t *w, size_t n, size_t j, size_t len)
{
  size_t l;

  for (l = 0; l < len; l++) {
    uint8_t *byte = run + byte_of (order, l, j);
    int8_t value = w != NULL && l < n ? w[l] : 0;

    if (!order->nibbles)
      *byte = (uint8_t) value ^ order->flip;
    else if (is_high (order, l))
      *byte = (uint8_t) ((*byte & 15) | (value + 8) << 4);
    else
      *byte = (uint8_t) (value + 8);
  }
}

void
vlm_int_pack (const VlmKernels *kernels, VlmIntFormat format, void *panel, const int8_t *w,
    size_t ldw, const void *scale, size_t lds, size_t k, size_t n, size_t group)
{
  size_t padded = vlm_padded_k (k), run_len = format == VLM_INT_I8 ? padded : group, at, g, j;
  uint8_t *out = panel;

  for (j = 0; format == VLM_INT_I8 && j < kernels->int_panel; j++)
    ((float *) panel)[j] = j < n ? ((const float *) scale)[j] : 0;
  if (format == VLM_INT_I8)
    out += kernels->int_panel * sizeof (float);

  for (at = 0, g = 0; at < padded; at += run_len, g++) {
    size_t len = min_size (run_len, padded - at);
    Order order = order_of (kernels, format, len);

    if (format != VLM_INT_I8) {
      for (j = 0; j < order.panel; j++)
        ((uint16_t *) out)[j] = j < n ? ((const uint16_t *) scale)[j * lds + g] : 0;
      out += order.panel * sizeof (uint16_t);
    }
    for (j = 0; j < order.panel; j++)
      pack_run (&order, out, j < n ? w + j * ldw + at : NULL, at < k ? k - at : 0, j, len);
    out += run_bytes (&order, len);
  }
}

static int
value_of (const Order *order, const uint8_t *run, size_t l, size_t j)
{
  uint8_t byte = run[byte_of (order, l, j)];

  if (!order->nibbles)
    return (int8_t) (byte ^ order->flip);

  return (is_high (order, l) ? byte >> 4 : byte & 15) - 8;
}

void
vlm_int_unpack_row (const VlmKernels *kernels, VlmIntFormat format, float *y, const void *panel,
    size_t j, size_t k, size_t group)
{
  size_t padded = vlm_padded_k (k), run_len = format == VLM_INT_I8 ? padded : group, at, l;
  const uint8_t *in = panel;
  float scale = 0;

  if (format == VLM_INT_I8) {
    scale = ((const float *) panel)[j];
    in += kernels->int_panel * sizeof (float);
  }

  for (at = 0; at < k; at += run_len) {
    size_t len = min_size (run_len, padded - at);
    Order order = order_of (kernels, format, len);

    if (format != VLM_INT_I8) {
      scale = f16_value (((const uint16_t *) in)[j]);
      in += order.panel * sizeof (uint16_t);
    }
    for (l = 0; l < min_size (len, k - at); l++)
      y[at + l] = (float) value_of (&order, in, l, j) * scale;
    in += run_bytes (&order, len);
  }
}
