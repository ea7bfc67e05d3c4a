/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * vlm: the engine's whole public interface. Pictures and a prompt go in, text comes out.
 *
 *   VlmModel *model = vlm_model_load (vlm_builtin_model (), NULL, NULL, NULL, NULL, &error);
 *   VlmSession *session = vlm_session_new (model);
 *   VlmImage image = { pixels, width * 3, width, height };
 *   VlmRequest request = VLM_REQUEST_INIT;
 *   VlmResult result = { 0 };
 *
 *   request.prompt = "Describe this picture in one sentence.";
 *   request.images = &image;
 *   request.n_images = 1;
 *   if (vlm_session_generate (session, &request, NULL, &result, &error))
 *     g_print ("%s\n", result.text);
 *   vlm_result_clear (&result);
 *   vlm_session_free (session);
 *   vlm_model_unref (model);
 *
 * A VlmModel is immutable and may be used by any number of threads; a VlmSession belongs to one
 * thread at a time. Every function that can fail takes a GError and leaves its outputs untouched
 * when it fails.
 */

#ifndef VLM_H
#define VLM_H

#include <gio/gio.h>

G_BEGIN_DECLS

#define VLM_ERROR (vlm_error_quark ())

typedef enum
{
  VLM_ERROR_NOT_FOUND,   /* no such file or directory, or a needed file is missing in it */
  VLM_ERROR_READ,        /* it exists but cannot be read */
  VLM_ERROR_FORMAT,      /* damaged, or parts that contradict each other */
  VLM_ERROR_UNSUPPORTED, /* well formed, but not something this engine implements */
  VLM_ERROR_IMAGE,       /* a picture that cannot be described */
  VLM_ERROR_CONTEXT,     /* prompt and answer do not fit the context */
  VLM_ERROR_SETTINGS,    /* a setting out of range, or VLM_CPU naming no usable level */
  VLM_ERROR_MEMORY       /* an allocation of a sane size failed */
} VlmError;

GQuark vlm_error_quark (void);

/* ---- Tokenizer ---------------------------------------------------------------------------- */

typedef struct _VlmTokenizer VlmTokenizer;

/* Reads only the tokenizer of a model, or a tokenizer.json. (transfer full) */
VlmTokenizer *vlm_tokenizer_load (const gchar *path, GError **error);
VlmTokenizer *vlm_tokenizer_ref (VlmTokenizer *tokenizer);
void vlm_tokenizer_unref (VlmTokenizer *tokenizer);

/* Number of ids: one more than the largest in vocabulary or added tokens. */
guint vlm_tokenizer_get_size (const VlmTokenizer *tokenizer);

/*
 * Appends the ids (gint32) of text to ids. With added_tokens, spellings of added tokens become
 * those tokens as tokenizer.json says; without, all text is plain text. Invalid UTF-8 is read as
 * U+FFFD. length may be -1 for a terminated string.
 */
void vlm_tokenizer_encode (const VlmTokenizer *tokenizer, const gchar *text, gssize length,
    gboolean added_tokens, GArray *ids);

/* The text of ids; bytes that are no UTF-8 become U+FFFD; unknown ids give nothing. */
gchar *vlm_tokenizer_decode (
    const VlmTokenizer *tokenizer, const gint32 *ids, gsize n_ids, gboolean skip_special);

/* ---- Model -------------------------------------------------------------------------------- */

typedef struct _VlmModel VlmModel;

typedef enum
{
  VLM_PRECISION_AUTO,  /* fast for quantised weights, exact for float ones */
  VLM_PRECISION_EXACT, /* f32 activations; integer weights are brought back to f32 at load */
  VLM_PRECISION_FAST   /* rounded inputs; float weights become 8-bit integers at load */
} VlmPrecision;

typedef enum
{
  VLM_TILING_AUTO, /* as the model's files say */
  VLM_TILING_ON,
  VLM_TILING_OFF
} VlmTiling;

typedef struct
{
  VlmPrecision precision;
  const gchar *mmproj; /* the vision part of a GGUF model; NULL: the one beside it */
  guint n_threads;     /* to load with; 0: the CPUs that this process may use */
} VlmLoadOptions;

/* fraction runs from 0 to 1. Called from the loading thread. */
typedef void (*VlmProgressFunc) (gdouble fraction, gpointer user_data);

/*
 * Loads a model, or finds it again: models are shared by path, size, modification time and
 * precision while anybody holds one. path is a Hugging Face directory, a .slm or .cellm file, a GGUF
 * text file or a directory that holds one, or vlm_builtin_model (); what it is, is recognised by its
 * content.
 * options may be NULL. (transfer full)
 * Errors: NOT_FOUND, READ, FORMAT, UNSUPPORTED, SETTINGS, MEMORY, or G_IO_ERROR_CANCELLED.
 */
VlmModel *vlm_model_load (const gchar *path, const VlmLoadOptions *options,
    VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable, GError **error);

/*
 * Looks whether path could be loaded without reading the weights: existence, readability and the
 * presence of the files that a model cannot do without, and a VLM_CPU that names a usable level.
 * mmproj as in VlmLoadOptions. Errors: NOT_FOUND, READ, SETTINGS; FORMAT, UNSUPPORTED for containers.
 */
gboolean vlm_model_check_path (const gchar *path, const gchar *mmproj, GError **error);

VlmModel *vlm_model_ref (VlmModel *model);
void vlm_model_unref (VlmModel *model);

/* The path of the small model that is built in: it only knows shapes and test patterns. */
const gchar *vlm_builtin_model (void);

typedef struct
{
  const gchar *path;
  gboolean builtin;
  gboolean has_vision;
  const gchar *family; /* "lfm2_vl" or "lfm2" */
  guint64 n_parameters;
  guint64 weight_bytes; /* memory held by the packed weights */
  guint64 token_bytes;  /* of matrices that are read for each generated token */
  guint64 head_bytes;   /* of them, what makes logits of a row */
  guint64 crop_bytes;   /* of matrices that are read for each crop of a picture */
  gboolean fast;        /* the decoder's products are of integers */
  gboolean fast_vision; /* those of the tower are */
  const gchar *level;   /* of instructions: what VLM_CPU names, or the best there is */
  guint hidden_size, n_layers, vocab_size, max_context;
  guint vision_hidden_size, n_vision_layers;
} VlmModelInfo;

/* Fills info; its strings live as long as the model. */
void vlm_model_get_info (const VlmModel *model, VlmModelInfo *info);

/* (transfer none) */
const VlmTokenizer *vlm_model_get_tokenizer (const VlmModel *model);

/*
 * How many CPUs this process may use, by its affinity and its control group: what n_threads = 0
 * stands for.
 */
guint vlm_count_cpus (void);

/* ---- Session ------------------------------------------------------------------------------ */

typedef struct _VlmSession VlmSession;

/* An 8-bit RGB picture; borrowed for the duration of the call. */
typedef struct
{
  const guint8 *pixels;
  gsize stride; /* bytes a row, >= 3 * width */
  guint width, height;
} VlmImage;

typedef enum
{
  VLM_FINISH_STOP,    /* the model ended its answer */
  VLM_FINISH_LENGTH,  /* max_tokens reached */
  VLM_FINISH_CONTEXT, /* the model's context is full */
  VLM_FINISH_CANCELLED,
  VLM_FINISH_REPETITION /* the answer went round in a loop; the text has one round of it */
} VlmFinishReason;

/* "stop", "length", "context", "cancelled", "repetition" */
const gchar *vlm_finish_reason_name (VlmFinishReason reason);

/* Which of the reference's two ways of resampling 8-bit pictures is taken. */
typedef enum
{
  VLM_RESAMPLE_DEFAULT, /* int16 weights, 8 bits between the passes: what most hosts do */
  VLM_RESAMPLE_FLOAT32  /* float32 throughout, rounded once; for the bilinear filter only */
} VlmResample;

/* How one answer is made. In every numeric field -1 means: as the model's files say. */
typedef struct
{
  const gchar *prompt;
  const gchar *system_prompt;
  const VlmImage *images;
  guint n_images;

  gint max_tokens;            /* most tokens to generate, > 0; -1: 64 */
  gdouble temperature;        /* 0: greedy */
  gint top_k;                 /* 0: off */
  gdouble top_p;              /* 1: off */
  gdouble min_p;              /* 0: off */
  gdouble repetition_penalty; /* 1: off */
  guint64 seed;               /* of the sampler */

  gint min_image_tokens, max_image_tokens;
  VlmTiling tiling;
  gint min_tiles, max_tiles;
  gint use_thumbnail; /* FALSE or TRUE */
  VlmResample resample;

  guint n_threads;     /* 0: the CPUs that this process may use */
  guint prefill_chunk; /* tokens handed through the decoder at once, at most 4096; 0: 288 */

  gboolean end_loops; /* ends an answer that repeats itself, see VLM_FINISH_REPETITION */
  gint nice;          /* least niceness, 0 to 19, of the calling thread and of those of the pool */
} VlmRequest;

#define VLM_REQUEST_INIT                                                                           \
  {                                                                                                \
    NULL, NULL, NULL, 0, -1, -1, -1, -1, -1, -1, 0, -1, -1, VLM_TILING_AUTO, -1, -1, -1,           \
        VLM_RESAMPLE_DEFAULT, 0, 0, FALSE, 0                                                       \
  }

typedef struct
{
  gdouble image;  /* sizes, resample, patches */
  gdouble vision; /* tower and projector */
  gdouble prefill;
  gdouble decode;
  gdouble total;
} VlmTimings; /* seconds */

typedef struct
{
  gchar *text; /* valid UTF-8, special tokens left out, blanks at the ends too */
  gint32 *ids; /* what was generated, the end token included */
  gsize n_ids;
  guint n_prompt_tokens; /* images included */
  guint n_image_tokens;
  guint n_kept_tokens; /* of the prompt, in front: known from the session's request before */
  VlmFinishReason finish_reason;
  VlmTimings timings;
} VlmResult;

void vlm_result_clear (VlmResult *result);

typedef enum
{
  VLM_ARRAY_U8,
  VLM_ARRAY_I32,
  VLM_ARRAY_F32
} VlmArrayType;

/*
 * What a caller may watch while an answer is made. Every function may be NULL; all are called from
 * the calling thread.
 * text: the answer so far grew by delta (whole UTF-8 characters). The result's text may be shorter
 * in the end: without blanks at its ends, and without a loop's further rounds.
 * array: one stage's output; name is "crop", "patches" or "tower" with the crop's index, or
 * "image_embeds", "input_ids", "logits", "output_ids" with index 0. data is borrowed.
 */
typedef struct
{
  void (*text) (const gchar *delta, gpointer user_data);
  void (*array) (const gchar *name, guint index, VlmArrayType type, const gsize *shape,
      guint n_dims, gconstpointer data, gpointer user_data);
  gpointer user_data;
  GCancellable *cancellable;
} VlmWatch;

/* Holds a reference on the model. (transfer full) */
VlmSession *vlm_session_new (VlmModel *model);
void vlm_session_free (VlmSession *session);

/*
 * Answers one request. What was asked before makes no difference to the answer; what a prompt has
 * before its first picture is computed once for requests that share it.
 * watch may be NULL. result must be zero-filled or cleared; it is filled on success and belongs to
 * the caller.
 * A cancelled request fails with G_IO_ERROR_CANCELLED.
 * Errors: IMAGE, CONTEXT, SETTINGS, UNSUPPORTED (pictures for a text model), FORMAT (the vocabulary
 * lacks a marker that the picture's layout needs), MEMORY.
 */
gboolean vlm_session_generate (VlmSession *session, const VlmRequest *request,
    const VlmWatch *watch, VlmResult *result, GError **error);

/* ---- Files -------------------------------------------------------------------------------- */

/* How weights are stored in a .slm file. */
typedef enum
{
  VLM_WEIGHT_AUTO, /* text: KEEP where the source has integers; vision: KEEP beside KEEP, F16 beside
                    * F16, else INT8 */
  VLM_WEIGHT_F16,
  VLM_WEIGHT_INT8, /* symmetric, one scale a row */
  VLM_WEIGHT_INT4, /* symmetric, one scale for each 64 values of a row; text only */
  VLM_WEIGHT_KEEP  /* integers as they are, whatever their format; floats as F16 */
} VlmWeightType;

typedef struct
{
  VlmWeightType text_type;   /* of the decoder's matrices, embedding and head included */
  VlmWeightType vision_type; /* of those of tower and projector */
  gboolean requantise;       /* integers may be rounded a second time */
  guint n_threads;           /* 0: the CPUs that this process may use */
  const gchar *mmproj;       /* of the source, as in VlmLoadOptions */
} VlmConvertOptions;

/*
 * Writes the model at source, anything that vlm_model_load () takes, to one file in the .slm
 * format. destination comes into being, or is replaced, in one step once all is on the disk; on
 * failure nothing is left behind. Equal input gives equal bytes, whatever the number of threads.
 * Matrices get the types of options; patch and position embedding, taps, norms and biases are F16.
 * Integers of the wanted type are copied; others are refused unless requantise is set.
 * Errors: those of vlm_model_load (); VLM_ERROR_SETTINGS for types that do not go together, none
 * for the text of a source without integers, or a destination that is a part of source;
 * VLM_ERROR_FORMAT for a value that F16 cannot hold, with tensor and position;
 * VLM_ERROR_UNSUPPORTED for integers that would be rounded again; those of writing (G_FILE_ERROR);
 * G_IO_ERROR_CANCELLED. progress may be NULL.
 */
gboolean vlm_model_convert (const gchar *source, const gchar *destination,
    const VlmConvertOptions *options, VlmProgressFunc progress, gpointer user_data,
    GCancellable *cancellable, GError **error);

/*
 * What the model at path is, without reading its weights: a JSON object, whose keys docs/formats.md
 * lists. Errors: those of vlm_model_load (). (transfer full)
 */
gchar *vlm_model_describe (const gchar *path, const gchar *mmproj, GError **error);

typedef enum
{
  VLM_FINDING_NOTE,   /* worth knowing: a deviation from a published size */
  VLM_FINDING_PROBLEM /* the model is damaged */
} VlmFindingKind;

/* text is borrowed; it names the tensor that it is about. Called from the verifying thread. */
typedef void (*VlmFindingFunc) (VlmFindingKind kind, const gchar *text, gpointer user_data);

/*
 * Looks at every byte of the model at path: structure, checksums, values that are no finite
 * numbers, scales. Each finding goes to finding; what is wrong with the structure ends the search.
 * TRUE when the search came to its end, whatever it found. progress may be NULL.
 * Errors: NOT_FOUND, READ, SETTINGS (VLM_CPU), MEMORY, or G_IO_ERROR_CANCELLED.
 */
gboolean vlm_model_verify (const gchar *path, const gchar *mmproj, VlmFindingFunc finding,
    VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable, GError **error);

G_END_DECLS

#endif
