/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The reference collects its candidates in a Python set and sorts them by product, a stable sort:
 * inside one product the order is that of CPython's hash table. It decides between grids that are
 * equally close in shape, so the table is replayed here: the hash of a pair of small integers, the
 * probing sequence and the growth rule. All of it is plain arithmetic, the same on every machine.
 */

#include "grid.h"

#include <math.h>

#define LINEAR_PROBES 9
#define MIN_SLOTS 8

typedef struct
{
  VlmGrid *slots; /* columns is 0 in an empty slot */
  gsize mask, used;
} PairTable;

static guint64
pair_hash (VlmGrid pair)
{
  const guint64 prime_1 = G_GUINT64_CONSTANT (11400714785074694791);
  const guint64 prime_2 = G_GUINT64_CONSTANT (14029467366897019727);
  const guint64 prime_5 = G_GUINT64_CONSTANT (2870177450012600261);
  const guint64 lanes[2] = { pair.columns, pair.rows };
  guint64 acc = prime_5;
  guint i;

  for (i = 0; i < 2; i++) {
    acc += lanes[i] * prime_2;
    acc = (acc << 31) | (acc >> 33);
    acc *= prime_1;
  }
  return acc + (2 ^ (prime_5 ^ 3527539));
}

/* The slot that holds the pair, or the empty one where it belongs. */
static VlmGrid *
pair_table_find (const PairTable *table, VlmGrid pair)
{
  guint64 perturb = pair_hash (pair);
  gsize i = perturb & table->mask;

  for (;;) {
    gsize last = i + LINEAR_PROBES <= table->mask ? i + LINEAR_PROBES : i;
    gsize j;

    for (j = i; j <= last; j++) {
      VlmGrid *slot = &table->slots[j];

      if (slot->columns == 0 || (slot->columns == pair.columns && slot->rows == pair.rows))
        return slot;
    }
    perturb >>= 5;
    i = (i * 5 + 1 + perturb) & table->mask;
  }
}

static void
pair_table_grow (PairTable *table)
{
  PairTable old = *table;
  gsize n_slots = MIN_SLOTS;
  gsize i;

  while (n_slots <= old.used * 4)
    n_slots *= 2;
  table->slots = g_new0 (VlmGrid, n_slots);
  table->mask = n_slots - 1;
  for (i = 0; i <= old.mask; i++) {
    if (old.slots[i].columns != 0)
      *pair_table_find (table, old.slots[i]) = old.slots[i];
  }
  g_free (old.slots);
}

static void
pair_table_add (PairTable *table, VlmGrid pair)
{
  VlmGrid *slot = pair_table_find (table, pair);

  if (slot->columns != 0)
    return;
  *slot = pair;
  table->used++;
  if (table->used * 5 >= table->mask * 3)
    pair_table_grow (table);
}

GArray *
vlm_grid_candidates (guint min_tiles, guint max_tiles)
{
  GArray *grids = g_array_new (FALSE, FALSE, sizeof (VlmGrid));
  PairTable table = { g_new0 (VlmGrid, MIN_SLOTS), MIN_SLOTS - 1, 0 };
  guint n, product;
  gsize i;

  for (n = min_tiles; n <= max_tiles; n++) {
    VlmGrid pair;

    for (pair.columns = 1; pair.columns <= n; pair.columns++) {
      for (pair.rows = 1; pair.rows <= n; pair.rows++) {
        product = pair.columns * pair.rows;
        if (product >= min_tiles && product <= max_tiles)
          pair_table_add (&table, pair);
      }
    }
  }

  for (product = min_tiles; product <= max_tiles; product++) {
    for (i = 0; i <= table.mask; i++) {
      if (table.slots[i].columns != 0 && table.slots[i].columns * table.slots[i].rows == product)
        g_array_append_val (grids, table.slots[i]);
    }
  }
  g_free (table.slots);
  return grids;
}

VlmGrid
vlm_grid_choose (guint width, guint height, guint min_tiles, guint max_tiles, guint tile_size)
{
  GArray *grids = vlm_grid_candidates (min_tiles, max_tiles);
  VlmGrid best = { 1, 1 };
  gdouble best_difference = INFINITY;
  gdouble aspect = (gdouble) width / height;
  gdouble area = (gdouble) width * height;
  guint i;

  for (i = 0; i < grids->len; i++) {
    VlmGrid grid = g_array_index (grids, VlmGrid, i);
    gdouble difference = fabs (aspect - (gdouble) grid.columns / grid.rows);
    gdouble grid_area = (gdouble) tile_size * tile_size * grid.columns * grid.rows;

    if (difference < best_difference) {
      best_difference = difference;
      best = grid;
    } else if (difference == best_difference && area > 0.5 * grid_area) {
      best = grid;
    }
  }
  g_array_unref (grids);
  return best;
}
