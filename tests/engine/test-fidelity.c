/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What integer products change: fast against exact precision on the same quantised weights, for the
 * built-in model and for random checkpoints some of whose activations are thirty times as large as
 * the rest. Judged by the tower's features and by the distributions that the logits stand for, over
 * a text that both are made to read.
 */

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "engine/model/decoder.h"
#include "golden.h"
#include "test-image-draw.h"
#include "tools/demo-model/scene.h"
#include "tools/synth.h"

#define MOST_TOWER 0.03 /* relative L2 */
#define MOST_KL 0.01    /* nats, mean over the positions */

/* What attention in integers may add to the divergence over a long text. */
#define MOST_RISE 1.1

/* Of random checkpoints, or small changes of their logits would not be seen. */
#define LEAST_ENTROPY 2

#define LEAST_POSITIONS 200
#define N_OUTLIERS 4

/* Whose answers are compared. */
typedef struct
{
  gboolean builtin;
  guint64 seed;     /* random checkpoints */
  guint n_pictures; /* each with a text of its own */
  guint n_forced;   /* random ids of each text; 0: the model's own answer */
  guint n_judged;   /* positions of each text, the last; 0: all */
} Subject;

/* What a model showed of one picture. */
typedef struct
{
  GArray *ids, *answer;   /* gint32 */
  GArray *tower, *embeds; /* gfloat */
} Seen;

/* Everything that one precision made of a subject. */
typedef struct
{
  GArray *tower;  /* gfloat, all features of all pictures */
  GArray *logits; /* gfloat [n_positions][vocab] */
  guint vocab;
} Run;

typedef struct
{
  gdouble tower, kl, largest_kl, entropy;
  guint n_positions;
} Difference;

/* ---- Running ------------------------------------------------------------------------------ */

static void
on_array (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  Seen *seen = user_data;
  gsize n = shape[0] * (n_dims > 1 ? shape[1] : 1);

  if (strcmp (name, "tower") == 0)
    g_array_append_vals (seen->tower, data, n);
  else if (strcmp (name, "image_embeds") == 0)
    g_array_append_vals (seen->embeds, data, n);
  else if (strcmp (name, "input_ids") == 0)
    g_array_append_vals (seen->ids, data, n);
  else if (strcmp (name, "output_ids") == 0)
    g_array_append_vals (seen->answer, data, n);
}

static void
seen_init (Seen *seen)
{
  seen->ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  seen->answer = g_array_new (FALSE, FALSE, sizeof (gint32));
  seen->tower = g_array_new (FALSE, FALSE, sizeof (gfloat));
  seen->embeds = g_array_new (FALSE, FALSE, sizeof (gfloat));
}

static void
seen_clear (Seen *seen)
{
  g_array_unref (seen->ids);
  g_array_unref (seen->answer);
  g_array_unref (seen->tower);
  g_array_unref (seen->embeds);
}

/* (transfer full) packed RGB */
static guint8 *
draw (const Subject *subject, guint index, guint *width, guint *height)
{
  VlmScene scene;
  guint8 *rgb;

  if (!subject->builtin) {
    *width = 480;
    *height = 320;
    return test_image_draw ("mix", *width, *height, (guint) subject->seed + index);
  }
  vlm_scene_init (&scene, index + 1);
  rgb = g_malloc ((gsize) scene.width * scene.height * 3);
  vlm_scene_draw (&scene, rgb, (gsize) scene.width * 3);
  *width = scene.width;
  *height = scene.height;
  return rgb;
}

static void
look (VlmModel *model, const Subject *subject, guint index, Seen *seen)
{
  VlmSession *session = vlm_session_new (model);
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  VlmWatch watch = { NULL, on_array, seen, NULL };
  VlmImage image = { 0 };
  g_autofree guint8 *rgb = draw (subject, index, &image.width, &image.height);
  GError *error = NULL;

  image.pixels = rgb;
  image.stride = (gsize) image.width * 3;
  request.prompt = "Describe this picture in one sentence.";
  request.images = &image;
  request.n_images = 1;
  request.temperature = 0;
  request.max_tokens = subject->n_forced > 0 ? 1 : 64;
  vlm_session_generate (session, &request, &watch, &result, &error);
  g_assert_no_error (error);
  vlm_result_clear (&result);
  vlm_session_free (session);
}

/* (transfer full) the embeddings of the ids that seen has, pictures in their places */
static gfloat *
embed (VlmModel *model, const Seen *seen)
{
  gsize hidden = model->config.text.hidden_size, next = 0, i;
  gfloat *rows = g_new (gfloat, seen->ids->len * hidden);

  for (i = 0; i < seen->ids->len; i++) {
    gint32 id = g_array_index (seen->ids, gint32, i);

    if (id == model->chat_tokens.image)
      memcpy (rows + i * hidden, (gfloat *) seen->embeds->data + next++ * hidden,
          hidden * sizeof (gfloat));
    else
      vlm_matrix_get_row (
          model->weights->embedding, &model->kernels, (guint) id, rows + i * hidden);
  }
  g_assert_cmpuint (next * hidden, ==, seen->embeds->len);
  return rows;
}

/* Appends the logits of the last n of the ids. */
static void
read_text (VlmModel *model, const Seen *seen, gsize n, GArray *logits)
{
  gsize hidden = model->config.text.hidden_size, vocab = model->config.text.vocab_size;
  gsize n_tokens = seen->ids->len, i;
  g_autofree gfloat *rows = embed (model, seen);
  VlmTeam *team = vlm_team_new (0, NULL);
  VlmArena arena = { 0 };
  VlmCache cache;
  GError *error = NULL;

  vlm_cache_init (&cache, &model->config.text);
  vlm_cache_reset (&cache, n_tokens, &error);
  g_assert_no_error (error);
  g_assert_true (vlm_team_begin_turn (team));
  vlm_decoder_forward (model, team, &arena, &cache, rows, n_tokens, n, &error);
  g_assert_no_error (error);
  for (i = n_tokens - n; i < n_tokens; i++) {
    g_array_set_size (logits, logits->len + vocab);
    vlm_decoder_logits (model, team, &arena, rows + i * hidden,
        (gfloat *) logits->data + logits->len - vocab, &error);
    g_assert_no_error (error);
  }
  vlm_team_end_turn (team);
  vlm_cache_clear (&cache);
  vlm_arena_clear (&arena);
  vlm_team_free (team);
}

/*
 * texts, one for each picture, is what all models read after the prompt; where it is not there yet,
 * it is made.
 */
static void
run_model (VlmModel *model, const Subject *subject, GPtrArray *texts, Run *run)
{
  guint vocab = model->config.text.vocab_size;
  guint index, i;

  run->tower = g_array_new (FALSE, FALSE, sizeof (gfloat));
  run->logits = g_array_new (FALSE, FALSE, sizeof (gfloat));
  run->vocab = vocab;
  for (index = 0; index < subject->n_pictures; index++) {
    g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) subject->seed + index);
    GArray *text;
    Seen seen;

    seen_init (&seen);
    look (model, subject, index, &seen);
    if (index == texts->len) {
      for (i = 0; i < subject->n_forced; i++) {
        gint32 id = g_rand_int_range (random, 0, vocab);

        if (i == 0)
          g_array_set_size (seen.answer, 0);
        if (id == model->chat_tokens.image)
          id++;
        g_array_append_val (seen.answer, id);
      }
      g_ptr_array_add (texts, g_array_ref (seen.answer));
    }
    text = texts->pdata[index];
    /* The last token of the prompt foretells the first of the text, and so on. */
    g_array_append_vals (seen.ids, text->data, text->len - 1);
    read_text (model, &seen, subject->n_judged > 0 ? subject->n_judged : text->len, run->logits);
    g_array_append_vals (run->tower, seen.tower->data, seen.tower->len);
    seen_clear (&seen);
  }
}

static void
run_clear (Run *run)
{
  g_array_unref (run->tower);
  g_array_unref (run->logits);
}

/* ---- Comparing ---------------------------------------------------------------------------- */

/* log (sum (exp (x))) */
static gdouble
log_sum (const gfloat *x, gsize n)
{
  gdouble most = -INFINITY, sum = 0;
  gsize i;

  for (i = 0; i < n; i++)
    most = MAX (most, x[i]);
  for (i = 0; i < n; i++)
    sum += exp (x[i] - most);
  return most + log (sum);
}

static void
compare_logits (const gfloat *exact, const gfloat *fast, gsize n, Difference *difference)
{
  gdouble exact_sum = log_sum (exact, n), fast_sum = log_sum (fast, n), kl = 0;
  gsize i;

  for (i = 0; i < n; i++) {
    gdouble log_p = exact[i] - exact_sum;

    kl += exp (log_p) * (log_p - (fast[i] - fast_sum));
    difference->entropy -= exp (log_p) * log_p;
  }
  difference->kl += kl;
  difference->largest_kl = MAX (difference->largest_kl, kl);
}

static Difference
compare (const Run *exact, const Run *fast)
{
  const gfloat *a = (const gfloat *) exact->tower->data, *b = (const gfloat *) fast->tower->data;
  Difference difference = { 0 };
  gdouble error = 0, size = 0;
  guint i;

  g_assert_cmpuint (exact->tower->len, ==, fast->tower->len);
  for (i = 0; i < exact->tower->len; i++) {
    error += ((gdouble) b[i] - a[i]) * ((gdouble) b[i] - a[i]);
    size += (gdouble) a[i] * a[i];
  }
  difference.tower = sqrt (error / size);

  g_assert_cmpuint (exact->logits->len, ==, fast->logits->len);
  difference.n_positions = exact->logits->len / exact->vocab;
  for (i = 0; i < difference.n_positions; i++)
    compare_logits ((const gfloat *) exact->logits->data + (gsize) i * exact->vocab,
        (const gfloat *) fast->logits->data + (gsize) i * exact->vocab, exact->vocab, &difference);
  difference.kl /= difference.n_positions;
  difference.entropy /= difference.n_positions;
  return difference;
}

/* ---- Groups of inputs --------------------------------------------------------------------- */

static void
set_group (VlmMatrix *matrix, gsize group)
{
  guint i;

  for (i = 0; matrix != NULL && i < matrix->n_parts; i++) {
    VlmMatrixPart *part = &matrix->parts[i];

    if (part->dtype == VLM_DTYPE_QUANTISED && part->format.scale == VLM_SCALE_ROW)
      part->input_group = group > 0 ? group : vlm_padded_k (matrix->cols);
  }
}

/* Lets group values of a row of inputs share a scale where weights leave the choice; 0: all. */
static void
set_groups (VlmModel *model, gsize group)
{
  VlmWeights *weights = model->weights;
  guint i;

  for (i = 0; i < model->config.text.n_layers; i++) {
    VlmDecoderLayer *layer = &weights->layers[i];

    set_group (layer->qkv.matrix, group);
    set_group (layer->attention_out.matrix, group);
    set_group (layer->conv_in.matrix, group);
    set_group (layer->conv_out.matrix, group);
    set_group (layer->gate_up, group);
    set_group (layer->down, group);
  }
  for (i = 0; i < model->config.vision.n_layers; i++) {
    VlmVisionLayer *layer = &weights->vision_layers[i];

    set_group (layer->qkv.matrix, group);
    set_group (layer->out.matrix, group);
    set_group (layer->fc1.matrix, group);
    set_group (layer->fc2.matrix, group);
  }
  set_group (weights->projector1.matrix, group);
  set_group (weights->projector2.matrix, group);
  set_group (weights->head, group);
}

/* ---- The test ----------------------------------------------------------------------------- */

static VlmModel *
load (const gchar *path, VlmPrecision precision)
{
  VlmLoadOptions options = { .precision = precision };
  GError *error = NULL;
  VlmModel *model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return model;
}

/* How far the model is from what exact precision made; group as above, or -1 to leave it. */
static Difference
measure (VlmModel *model, const Subject *subject, GPtrArray *texts, const Run *exact, gint group)
{
  Difference difference;
  Run run;

  if (group >= 0)
    set_groups (model, group);
  run_model (model, subject, texts, &run);
  difference = compare (exact, &run);
  run_clear (&run);
  g_test_message ("group %4d: tower %.4f, KL mean %.5f, largest %.4f, entropy %.2f, %u positions",
      group, difference.tower, difference.kl, difference.largest_kl, difference.entropy,
      difference.n_positions);
  return difference;
}

/* Products with rounded inputs err far more than attention with rounded keys may add. */
static void
judge_attention (VlmModel *model, const Subject *subject, GPtrArray *texts, const Run *exact,
    const Difference *rounded)
{
  const VlmHeadForm form = model->kernels.head_form;
  Difference floats;

  model->kernels.head_form = VLM_HEAD_NONE;
  g_test_message ("with attention in floats:");
  floats = measure (model, subject, texts, exact, -1);
  model->kernels.head_form = form;
  g_assert_cmpfloat (rounded->kl, <=, MOST_RISE * floats.kl);
}

/* Groups make no difference to products in bfloat16: from here on those of integers are measured, which
 * err more. */
static Difference
use_integers (VlmModel *model, const Subject *subject, GPtrArray *texts, const Run *exact,
    const Difference *tiled)
{
  Difference integers;

  if (model->kernels.matmul_tiled == NULL)
    return *tiled;
  model->kernels.matmul_tiled = NULL;
  g_test_message ("with products of integers:");
  integers = measure (model, subject, texts, exact, -1);
  g_assert_cmpfloat (tiled->tower, <, 0.5 * integers.tower);
  if (!subject->builtin)
    g_assert_cmpfloat (tiled->kl, <, 0.5 * integers.kl);
  return integers;
}

static void
judge (const Subject *subject, const gchar *path, gboolean int8)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  VlmModel *model = load (path, VLM_PRECISION_EXACT);
  Difference grouped, whole;
  Run exact;

  run_model (model, subject, texts, &exact);
  vlm_model_unref (model);
  model = load (path, VLM_PRECISION_FAST);
  grouped = measure (model, subject, texts, &exact, -1);
  g_assert_cmpuint (grouped.n_positions, >=, LEAST_POSITIONS);
  g_assert_cmpfloat (grouped.tower, <=, MOST_TOWER);
  g_assert_cmpfloat (grouped.kl, <=, MOST_KL);
  /* Two runs of the same arithmetic would not differ at all. */
  g_assert_cmpfloat (grouped.tower, >, 0);
  g_assert_cmpfloat (grouped.kl, >, 0);
  if (!subject->builtin)
    g_assert_cmpfloat (grouped.entropy, >, LEAST_ENTROPY);

  if (subject->n_judged > 0)
    judge_attention (model, subject, texts, &exact, &grouped);
  grouped = use_integers (model, subject, texts, &exact, &grouped);
  /* For the table in docs/performance.md. */
  measure (model, subject, texts, &exact, 64);
  measure (model, subject, texts, &exact, 256);
  whole = measure (model, subject, texts, &exact, 0);
  g_assert_cmpfloat (grouped.tower, <, whole.tower);
  if (int8 && !subject->builtin)
    g_assert_cmpfloat (grouped.kl, <, whole.kl);
  vlm_model_unref (model);
  run_clear (&exact);
}

static void
convert_and_judge (const Subject *subject, const gchar *source, const gchar *path)
{
  static const VlmWeightType types[] = { VLM_WEIGHT_INT8, VLM_WEIGHT_INT4 };
  GError *error = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    VlmConvertOptions options = { types[i], VLM_WEIGHT_INT8, FALSE, 0, NULL };

    vlm_model_convert (source, path, &options, NULL, NULL, NULL, &error);
    g_assert_no_error (error);
    g_test_message ("%s", types[i] == VLM_WEIGHT_INT8 ? "int8" : "int4");
    judge (subject, path, types[i] == VLM_WEIGHT_INT8);
  }
}

/* Empties and removes a directory without subdirectories. */
static void
remove_folder (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree gchar *path = g_build_filename (folder, name, NULL);

    g_assert_cmpint (g_unlink (path), ==, 0);
  }
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
test_subject (gconstpointer user_data)
{
  const Subject *subject = user_data;
  GError *error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp ("vlm-fidelity-XXXXXX", &error);
  g_autofree gchar *source = g_build_filename (folder, "source", NULL);
  g_autofree gchar *path = g_build_filename (folder, "model.slm", NULL);

  g_assert_no_error (error);
  if (subject->builtin) {
    convert_and_judge (subject, g_getenv ("VLM_DEMO_MODEL"), path);
  } else {
    synth_write ("small", (gint64) subject->seed, N_OUTLIERS, source, &error);
    g_assert_no_error (error);
    convert_and_judge (subject, source, path);
    remove_folder (source);
  }
  remove_folder (folder);
}

int
main (int argc, char **argv)
{
  static const Subject builtin = { TRUE, 0, 20, 0, 0 };
  static const Subject randoms[] = { { FALSE, 1, 1, 256, 0 }, { FALSE, 2, 1, 256, 0 },
    { FALSE, 3, 1, 256, 0 } };
  static const Subject lengthy = { FALSE, 3, 1, 1800, 256 };
  guint i;

  golden_skip_without_level ();
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/fidelity/builtin", &builtin, test_subject);
  for (i = 0; i < G_N_ELEMENTS (randoms); i++) {
    g_autofree gchar *path =
        g_strdup_printf ("/fidelity/random-%" G_GUINT64_FORMAT, randoms[i].seed);

    g_test_add_data_func (path, &randoms[i], test_subject);
  }
  g_test_add_data_func ("/fidelity/long-context", &lengthy, test_subject);
  return g_test_run ();
}
