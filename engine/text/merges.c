/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "merges.h"

typedef struct
{
  guint64 pair;
  guint32 rank;
  gint32 id; /* -1: a free slot */
} Slot;

struct _VlmMerges
{
  Slot *slots;  /* open addressing, at most half full */
  gsize mask;   /* number of slots, a power of two, less one */
  guint64 seed; /* keeps a file from choosing its collisions */
};

/* One element of a list that runs through an array, so that positions stay what they were. */
typedef struct
{
  gint32 id;             /* -1 once it went into its left neighbour */
  gint32 previous, next; /* -1 at the ends */
} Symbol;

typedef struct
{
  guint32 rank;
  gint32 position; /* of the left symbol */
  gint32 id;       /* what the pair was to become */
} Candidate;

VlmMerges *
vlm_merges_new (gsize n)
{
  VlmMerges *merges;
  gsize n_slots = 16, i;

  while (n_slots / 2 < n) {
    if (n_slots > G_MAXSIZE / 2 / sizeof (Slot))
      return NULL;
    n_slots *= 2;
  }
  merges = g_new (VlmMerges, 1);
  merges->slots = g_try_new (Slot, n_slots);
  if (merges->slots == NULL) {
    g_free (merges);
    return NULL;
  }
  for (i = 0; i < n_slots; i++)
    merges->slots[i].id = -1;
  merges->mask = n_slots - 1;
  merges->seed = ((guint64) g_random_int () << 32) | g_random_int ();
  return merges;
}

void
vlm_merges_free (VlmMerges *merges)
{
  if (merges == NULL)
    return;
  g_free (merges->slots);
  g_free (merges);
}

static guint64
pair_of (gint left, gint right)
{
  return ((guint64) (guint32) left << 32) | (guint32) right;
}

/* The slot of a pair, or the free one where it belongs. */
static Slot *
find_slot (const VlmMerges *merges, gint left, gint right)
{
  guint64 pair = pair_of (left, right);
  guint64 hash = pair ^ merges->seed;
  Slot *slot;
  gsize i;

  hash ^= hash >> 33;
  hash *= G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
  hash ^= hash >> 33;
  hash *= G_GUINT64_CONSTANT (0xc4ceb9fe1a85ec53);
  hash ^= hash >> 33;
  for (i = hash & merges->mask;; i = (i + 1) & merges->mask) {
    slot = &merges->slots[i];
    if (slot->id < 0 || slot->pair == pair)
      return slot;
  }
}

void
vlm_merges_add (VlmMerges *merges, gint left, gint right, guint rank, gint id)
{
  Slot *slot = find_slot (merges, left, right);

  slot->pair = pair_of (left, right);
  slot->rank = rank;
  slot->id = id;
}

void
vlm_word_init (VlmWord *word)
{
  word->symbols = g_array_new (FALSE, FALSE, sizeof (Symbol));
  word->queue = g_array_new (FALSE, FALSE, sizeof (Candidate));
}

void
vlm_word_clear (VlmWord *word)
{
  g_array_unref (word->symbols);
  g_array_unref (word->queue);
}

void
vlm_word_reset (VlmWord *word)
{
  g_array_set_size (word->symbols, 0);
}

void
vlm_word_append (VlmWord *word, gint id)
{
  Symbol symbol = { id, (gint32) word->symbols->len - 1, -1 };

  if (symbol.previous >= 0)
    g_array_index (word->symbols, Symbol, symbol.previous).next = symbol.previous + 1;
  g_array_append_val (word->symbols, symbol);
}

/* Lowest rank first, then leftmost. */
static gboolean
goes_before (const Candidate *a, const Candidate *b)
{
  return a->rank != b->rank ? a->rank < b->rank : a->position < b->position;
}

static void
queue_push (GArray *queue, const Candidate *candidate)
{
  Candidate *heap;
  guint i = queue->len, parent;

  g_array_append_vals (queue, candidate, 1);
  heap = (Candidate *) (gpointer) queue->data;
  for (; i > 0; i = parent) {
    parent = (i - 1) / 2;
    if (!goes_before (candidate, &heap[parent]))
      break;
    heap[i] = heap[parent];
  }
  heap[i] = *candidate;
}

static Candidate
queue_pop (GArray *queue)
{
  Candidate *heap = (Candidate *) (gpointer) queue->data;
  Candidate first = heap[0], last = heap[queue->len - 1];
  guint n = queue->len - 1, i = 0, child;

  for (; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && goes_before (&heap[child + 1], &heap[child]))
      child++;
    if (!goes_before (&heap[child], &last))
      break;
    heap[i] = heap[child];
  }
  heap[i] = last;
  g_array_set_size (queue, n);
  return first;
}

static void
push_pair (VlmWord *word, const VlmMerges *merges, gint position)
{
  const Symbol *symbols = (const Symbol *) (gconstpointer) word->symbols->data;
  const Slot *slot;
  Candidate candidate;

  if (position < 0 || symbols[position].next < 0)
    return;
  slot = find_slot (merges, symbols[position].id, symbols[symbols[position].next].id);
  if (slot->id < 0)
    return;
  candidate.rank = slot->rank;
  candidate.position = position;
  candidate.id = slot->id;
  queue_push (word->queue, &candidate);
}

/*
 * A candidate is out of date when its pair no longer makes the same id. That another pair may have
 * come to make it, with another rank, is not asked for: the reference does not either.
 */
static gboolean
is_current (const VlmMerges *merges, const Symbol *symbols, const Candidate *candidate)
{
  const Symbol *left = &symbols[candidate->position];

  return left->id >= 0 && left->next >= 0
      && find_slot (merges, left->id, symbols[left->next].id)->id == candidate->id;
}

void
vlm_word_merge (VlmWord *word, const VlmMerges *merges, GArray *ids)
{
  Symbol *symbols = (Symbol *) (gpointer) word->symbols->data;
  Candidate candidate;
  Symbol *left, *right;
  gint i, n = word->symbols->len;

  g_array_set_size (word->queue, 0);
  for (i = 0; i + 1 < n; i++)
    push_pair (word, merges, i);
  while (word->queue->len > 0) {
    candidate = queue_pop (word->queue);
    if (!is_current (merges, symbols, &candidate))
      continue;
    left = &symbols[candidate.position];
    right = &symbols[left->next];
    left->id = candidate.id;
    right->id = -1;
    left->next = right->next;
    if (left->next >= 0)
      symbols[left->next].previous = candidate.position;
    push_pair (word, merges, left->previous);
    push_pair (word, merges, candidate.position);
  }
  for (i = 0; i < n; i++) {
    if (symbols[i].id >= 0)
      g_array_append_val (ids, symbols[i].id);
  }
}
