/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* .cellm files that were cut, or whose header has another digit in it. */

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "cellm-models.h"
#include "engine/formats/inventory.h"
#include "engine/formats/model-files.h"
#include "fixture.h"
#include "heap-watch.h"
#include "tests/engine/test-text-toy.h"

#define PREFIX 10

/* Of which a refusal may take no more. */
#define MAX_MICROSECONDS 10000
#define MAX_BYTES (1u << 20)

/* A machine does other things too: that often a slow refusal is tried again. */
#define N_TRIALS 5

typedef struct
{
  gchar *directory, *path;
  guint8 *bytes;
  gsize size, header_end;
  int fd;
} Victim;

static void
victim_free (Victim *victim)
{
  close (victim->fd);
  fixture_directory_remove (victim->directory);
  g_free (victim->path);
  g_free (victim->bytes);
  g_free (victim);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Victim, victim_free)

/* tokenizer: NULL for a file without one. */
static Victim *
victim_new (CellmFixture *fixture, const json_t *tokenizer)
{
  Victim *victim = g_new0 (Victim, 1);
  guint32 length;

  victim->directory = fixture_directory_new ();
  victim->path = cellm_fixture_save_in (victim->directory, fixture);
  if (tokenizer != NULL)
    fixture_write_json (victim->directory, "tokenizer.json", tokenizer);
  g_assert_true (
      g_file_get_contents (victim->path, (gchar **) &victim->bytes, &victim->size, NULL));
  memcpy (&length, victim->bytes + 6, sizeof (length));
  victim->header_end = PREFIX + GUINT32_FROM_LE (length);
  victim->fd = g_open (victim->path, O_WRONLY | O_CLOEXEC, 0);
  g_assert_cmpint (victim->fd, >=, 0);
  return victim;
}

/* ---- Cut files ---------------------------------------------------------------------------- */

/* Microseconds that the refusal took; its memory is checked. */
static gint64
refuse (const Victim *victim, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmModelFiles) files = NULL;
  gint64 begin;
  gsize most;

  heap_watch_begin ();
  begin = g_get_monotonic_time ();
  files = vlm_model_files_open (victim->path, NULL, &error);
  begin = g_get_monotonic_time () - begin;
  most = heap_watch_end ();
  if (files != NULL)
    g_error ("a file of %" G_GSIZE_FORMAT " bytes went through", size);
  g_assert_nonnull (strstr (error->message, "victim.cellm"));
  g_assert_cmpuint (most, >, 0);
  g_assert_cmpuint (most, <=, MAX_BYTES + size);
  return begin;
}

static void
test_every_prefix (void)
{
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
  g_autoptr (Victim) victim = victim_new (fixture, NULL);
  gsize size;

  g_assert_cmpuint (victim->size, <, 8192);
  for (size = victim->size; size-- > 0;) {
    gint64 spent = G_MAXINT64;
    guint trial;

    g_assert_cmpint (ftruncate (victim->fd, size), ==, 0);
    for (trial = 0; trial < N_TRIALS && spent > MAX_MICROSECONDS; trial++)
      spent = MIN (spent, refuse (victim, size));
    g_assert_cmpint (spent, <=, MAX_MICROSECONDS);
  }
}

/* A header that asks for much is no reason to take it. */
static void
test_large_claims (void)
{
  static const gchar *const claims[] = {
    "{\"name\": \"a\", \"offset_bytes\": 448, \"nbytes\": 4611686018427387904, "
    "\"shape\": [2305843009213693952], \"dtype\": \"f16\"}",
    "{\"name\": \"a\", \"offset_bytes\": 448, \"nbytes\": 2147483648, "
    "\"shape\": [1073741824], \"dtype\": \"f16\"}",
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (claims); i++) {
    g_autoptr (CellmFixture) fixture = cellm_fixture_new ();
    g_autoptr (Victim) victim = NULL;

    fixture->index = json_array ();
    json_array_append_new (fixture->index, json_loads (claims[i], 0, NULL));
    victim = victim_new (fixture, NULL);
    refuse (victim, victim->size);
  }
}

/* ---- Digits ------------------------------------------------------------------------------- */

/* What nothing in the file can contradict: with another number it is another model. */
static const gchar *const free_keys[] = { "rms_norm_eps", "norm_eps", "rope_theta", "eos_token_id",
  "bos_token_id", "max_position_embeddings", "num_attention_heads", "tile_size", "max_image_tokens",
  "min_image_tokens", NULL };

/* The key whose value has the byte at this place. (transfer full) */
static gchar *
find_key (const Victim *victim, gsize at)
{
  const gchar *text = (const gchar *) victim->bytes;
  gsize end = at, begin;

  while (strncmp (text + end, "\":", 2) != 0 && end > PREFIX)
    end--;
  for (begin = end; text[begin - 1] != '"'; begin--)
    continue;
  return g_strndup (text + begin, end - begin);
}

/* The same tensors with the same numbers, and the same network. */
static gboolean
same_model (const VlmInventory *a, const VlmInventory *b)
{
  guint i;

  if (a->n_items != b->n_items
      || memcmp (&a->checkpoint->config, &b->checkpoint->config, sizeof (VlmConfig)) != 0)
    return FALSE;
  for (i = 0; i < a->n_items; i++) {
    const VlmTensorInfo *x = a->items[i].info, *y = b->items[i].info;
    g_autofree gfloat *one = NULL, *other = NULL;

    if (strcmp (x->name, y->name) != 0 || memcmp (x->shape, y->shape, sizeof (x->shape)) != 0)
      return FALSE;
    one = cellm_models_read (a->checkpoint->tensors, x);
    other = cellm_models_read (b->checkpoint->tensors, y);
    if (memcmp (one, other, vlm_tensor_count_values (x) * sizeof (*one)) != 0)
      return FALSE;
  }
  return TRUE;
}

/* Returns whether the file was refused. */
static gboolean
check_digit (const Victim *victim, const VlmInventory *original, gsize at, guint by)
{
  guint8 digit = '0' + (victim->bytes[at] - '0' + by) % 10;
  g_autofree gchar *key = find_key (victim, at);
  g_autoptr (VlmInventory) inventory = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (pwrite (victim->fd, &digit, 1, at), ==, 1);
  inventory = vlm_inventory_new (victim->path, NULL, NULL, &error);
  g_assert_cmpint (pwrite (victim->fd, &victim->bytes[at], 1, at), ==, 1);
  if (inventory == NULL) {
    g_assert_nonnull (strstr (error->message, "victim.cellm"));
    return TRUE;
  }
  if (!g_strv_contains (free_keys, key) && !same_model (original, inventory))
    g_error ("%c for %c at byte %" G_GSIZE_FORMAT ", in %s, makes another model", digit,
        victim->bytes[at], at, key);
  return FALSE;
}

static void
test_every_digit (void)
{
  static const guint steps[] = { 1, 4, 8 };
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (CellmFixture) fixture = NULL;
  g_autoptr (Victim) victim = NULL;
  g_autoptr (VlmInventory) original = NULL;
  g_autoptr (GError) error = NULL;
  guint n_refused = 0, n = 0, i;
  gsize at;

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  fixture_save (model);
  source = cellm_models_open (model->directory);
  fixture = cellm_models_convert (model->directory, source, CELLM_PUBLISHED, CELLM_N_KINDS, NULL);
  json_object_update (json_object_get (fixture->header, "source_projector_config"), model->image);
  victim = victim_new (fixture, model->tokenizer);
  original = vlm_inventory_new (victim->path, NULL, NULL, &error);
  g_assert_no_error (error);
  for (at = PREFIX; at < victim->header_end; at++) {
    for (i = 0; g_ascii_isdigit (victim->bytes[at]) && i < G_N_ELEMENTS (steps); i++) {
      n_refused += check_digit (victim, original, at, steps[i]);
      n++;
    }
  }
  g_test_message ("%u of %u refused", n_refused, n);
  g_assert_cmpuint (n_refused, >, n / 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cellm/damage/every-prefix", test_every_prefix);
  g_test_add_func ("/cellm/damage/large-claims", test_large_claims);
  g_test_add_func ("/cellm/damage/every-digit", test_every_digit);
  return g_test_run ();
}
