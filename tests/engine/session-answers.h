/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What tests of sessions ask, and what they keep of the answers. */

#ifndef VLM_TEST_SESSION_ANSWERS_H
#define VLM_TEST_SESSION_ANSWERS_H

#include "engine/vlm.h"

#define SESSION_VL_MODEL "models/lfm2-first"
#define SESSION_TEXT_MODEL "models/text-only"

#define SESSION_SENTENCE "You are a helpful assistant who looks closely and answers briefly. "
#define SESSION_THREE_SENTENCES SESSION_SENTENCE SESSION_SENTENCE SESSION_SENTENCE
#define SESSION_LONG_SYSTEM_PROMPT SESSION_THREE_SENTENCES SESSION_THREE_SENTENCES

/* A model of tests/golden, in the precision that VLM_TEST_PRECISION says: "fast", or converted to
 * "int4". (transfer full) */
VlmModel *session_load (const gchar *name);

/* A picture to describe; its pixels are the caller's to free. */
void session_image_init (VlmImage *image, guint width, guint height, guint64 seed);

/* Asks for 20 tokens about the picture; image may be NULL. */
void session_request_init (VlmRequest *request, const VlmImage *image);

/* An answer with the first logits kept. */
typedef struct
{
  VlmResult result;
  gfloat *logits;
  gsize n_logits;
} SessionAnswer;

void session_ask (VlmSession *session, const VlmRequest *request, SessionAnswer *answer);
void session_answer_clear (SessionAnswer *answer);

/* To the last bit. */
void session_assert_equal (const SessionAnswer *a, const SessionAnswer *b);

#endif
