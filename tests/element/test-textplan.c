/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the text pad sends, as a plain function of frames and captions. */

#include "gst-plugin/textplan.h"

#define MS GST_MSECOND
#define NONE GST_CLOCK_TIME_NONE

/* What lies in the plan's queue as "gap 0+100 text 100+900:words", in ms; sub-ms gaps as "tick". */
static gchar *
take_plan (GstVlmTextPlan *plan)
{
  GString *s = g_string_new (NULL);
  GstMiniObject *item;

  while ((item = g_queue_pop_head (&plan->out)) != NULL) {
    GstClockTime start, duration;

    if (s->len > 0)
      g_string_append_c (s, ' ');
    if (GST_IS_EVENT (item)) {
      gst_event_parse_gap (GST_EVENT_CAST (item), &start, &duration);
      if (duration < MS)
        g_string_append_printf (s, "tick %u", (guint) (start / MS));
      else
        g_string_append_printf (s, "gap %u+%u", (guint) (start / MS), (guint) (duration / MS));
    } else {
      GstBuffer *buffer = GST_BUFFER_CAST (item);
      GstMapInfo map;

      gst_buffer_map (buffer, &map, GST_MAP_READ);
      g_string_append_printf (s, "text %u+%" G_GUINT64_FORMAT ":%.*s",
          (guint) (GST_BUFFER_PTS (buffer) / MS), GST_BUFFER_DURATION (buffer) / MS,
          (gint) map.size, (const gchar *) map.data);
      gst_buffer_unmap (buffer, &map);
    }
    gst_mini_object_unref (item);
  }
  return g_string_free (s, FALSE);
}

#define check_plan(plan, expected)                                                                 \
  G_STMT_START                                                                                     \
  {                                                                                                \
    g_autofree gchar *check_plan_found = take_plan (plan);                                         \
    g_assert_cmpstr (check_plan_found, ==, expected);                                              \
  }                                                                                                \
  G_STMT_END

static GstVlmAnswer *
make_answer (GstClockTime pts, const gchar *text)
{
  GstVlmAnswer *answer = gst_vlm_answer_new ();

  answer->times.pts = pts;
  answer->text = g_strdup (text);
  return answer;
}

/* limit and longest are in ms; limit 0 is none. */
static void
init_plan (GstVlmTextPlan *plan, GstVlmTextStyle style, GstVlmTextPeer peer, guint64 longest,
    guint64 limit)
{
  GstVlmTextRules rules = { style, peer, longest * MS, limit > 0 ? limit * MS : NONE };

  gst_vlm_text_plan_init (plan, &rules);
}

#define init_cues(plan) init_plan (plan, GST_VLM_TEXT_CUES, GST_VLM_TEXT_PEER_SINK, 10000, 0)
#define init_drawn_slices(plan)                                                                    \
  init_plan (plan, GST_VLM_TEXT_SLICES, GST_VLM_TEXT_PEER_OVERLAY, 250, 0)
#define init_kept(plan)                                                                            \
  init_plan (plan, GST_VLM_TEXT_HELD, GST_VLM_TEXT_PEER_BESIDE, 315360000000, 0)

/* A frame of 100 ms. */
static void
plan_frame (GstVlmTextPlan *plan, GstClockTime start, GstClockTime due, GstClockTime settled,
    GstVlmAnswer *answer)
{
  GstVlmTextFrame frame = {
    .start = start, .end = start + 100 * MS, .due = due, .settled = settled, .answer = answer
  };

  gst_vlm_text_plan_frame (plan, &frame);
}

static void
test_plan_cues (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  g_autoptr (GstVlmAnswer) b = make_answer (1000 * MS, "b");
  g_autoptr (GstVlmAnswer) empty = make_answer (2000 * MS, "");
  g_autoptr (GstVlmAnswer) c = make_answer (3000 * MS, "c");
  GstVlmTextPlan plan;
  guint i;

  init_cues (&plan);

  /* A sink can preroll at once, although the first caption is not there. */
  plan_frame (&plan, 0, NONE, 0, NULL);
  check_plan (&plan, "tick 0");
  plan_frame (&plan, 100 * MS, NONE, 0, NULL);
  check_plan (&plan, "");

  /* A cue is sent when the next one is known, and starts at its own frame. */
  gst_vlm_text_plan_answer (&plan, a);
  check_plan (&plan, "");
  gst_vlm_text_plan_answer (&plan, b);
  check_plan (&plan, "text 0+1000:a");

  /* An empty caption ends the one before and is a gap. */
  gst_vlm_text_plan_answer (&plan, empty);
  check_plan (&plan, "text 1000+1000:b");
  for (i = 20; i < 30; i++)
    plan_frame (&plan, i * 100 * MS, NONE, (i + 1) * 100 * MS, NULL);
  check_plan (&plan, "gap 2000+1000");

  /* No cue is longer than ten seconds. */
  gst_vlm_text_plan_answer (&plan, c);
  plan_frame (&plan, 12900 * MS, NONE, 13000 * MS, NULL);
  check_plan (&plan, "");
  plan_frame (&plan, 13000 * MS, NONE, 13100 * MS, NULL);
  check_plan (&plan, "text 3000+10000:c gap 13000+100");

  gst_vlm_text_plan_clear (&plan);
}

static void
test_plan_cues_end (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  GstVlmTextPlan plan;

  init_cues (&plan);
  gst_vlm_text_plan_answer (&plan, a);
  plan_frame (&plan, 0, NONE, 100 * MS, NULL);
  plan_frame (&plan, 400 * MS, NONE, 500 * MS, NULL);
  gst_vlm_text_plan_finish (&plan);
  check_plan (&plan, "tick 0 text 0+500:a");

  gst_vlm_text_plan_clear (&plan);
}

/* A gap never covers the place of a caption that is being made. */
static void
test_plan_cues_settled (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (200 * MS, "a");
  GstVlmTextPlan plan;

  init_cues (&plan);
  plan_frame (&plan, 0, NONE, 100 * MS, NULL);
  plan_frame (&plan, 100 * MS, NONE, 200 * MS, NULL);
  plan_frame (&plan, 200 * MS, NONE, 200 * MS, NULL);
  plan_frame (&plan, 300 * MS, NONE, 200 * MS, NULL);
  check_plan (&plan, "tick 0 gap 0+200");
  gst_vlm_text_plan_answer (&plan, a);
  gst_vlm_text_plan_finish (&plan);
  check_plan (&plan, "text 200+200:a");

  gst_vlm_text_plan_clear (&plan);
}

static void
test_plan_slices (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  g_autoptr (GstVlmAnswer) b = make_answer (600 * MS, "b");
  GstVlmTextPlan plan;
  guint i;

  init_drawn_slices (&plan);
  plan_frame (&plan, 0, 600 * MS, 100 * MS, a);
  check_plan (&plan, "text 0+250:a");
  for (i = 1; i < 6; i++)
    plan_frame (&plan, i * 100 * MS, 600 * MS, NONE, a);
  /* Each frame starts inside a slice; none reaches beyond the next selection. */
  check_plan (&plan, "gap 250+50 text 300+250:a");
  plan_frame (&plan, 600 * MS, 1200 * MS, NONE, b);
  check_plan (&plan, "gap 550+50 text 600+250:b");

  /* Without a caption there is a gap for each frame. */
  plan_frame (&plan, 900 * MS, NONE, NONE, NULL);
  check_plan (&plan, "gap 850+150");

  gst_vlm_text_plan_clear (&plan);
}

/* A frame that reaches past its slice takes the slice along, though the next frame is inside. */
static void
test_plan_slices_overlap (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  GstVlmTextFrame frame = { .start = 0, .end = 200 * MS, .due = 900 * MS, .answer = a };
  GstVlmTextPlan plan;

  init_drawn_slices (&plan);
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "text 0+250:a");
  frame.start = 40 * MS;
  frame.end = 300 * MS;
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "");
  frame.start = 80 * MS;
  frame.end = NONE - 2;
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "text 250+250:a");
  /* One that lies wholly in what the overlay has let go of. */
  frame.start = 120 * MS;
  frame.end = 160 * MS;
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "text 120+250:a");
  gst_vlm_text_plan_clear (&plan);

  /* A camera's frame that begins before its time: text goes on where it was, and is drawn on it. */
  init_drawn_slices (&plan);
  plan_frame (&plan, 0, 200 * MS, NONE, a);
  check_plan (&plan, "text 0+200:a");
  plan_frame (&plan, 100 * MS, 200 * MS, NONE, a);
  check_plan (&plan, "");
  plan_frame (&plan, 190 * MS, 200 * MS, NONE, a);
  check_plan (&plan, "text 200+90:a");
  plan_frame (&plan, 290 * MS, 400 * MS, NONE, a);
  check_plan (&plan, "text 290+110:a");
  gst_vlm_text_plan_clear (&plan);

  /* A muxer keeps what it has. */
  init_plan (&plan, GST_VLM_TEXT_SLICES, GST_VLM_TEXT_PEER_OTHER, 250, 0);
  frame.start = 0;
  frame.end = 400 * MS;
  frame.due = 300 * MS;
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "text 0+250:a tick 250");
  frame.start = 40 * MS;
  gst_vlm_text_plan_frame (&plan, &frame);
  check_plan (&plan, "");
  gst_vlm_text_plan_clear (&plan);
}

/* On a frame that the segment's start cuts, an overlay draws nothing and loses its text. */
static void
test_plan_cut (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  GstVlmTextFrame first = {
    .start = 50 * MS, .end = 100 * MS, .cut_start = TRUE, .due = NONE, .answer = a
  };
  GstVlmTextFrame last = {
    .start = 200 * MS, .end = 250 * MS, .cut_end = TRUE, .due = NONE, .answer = a
  };
  GstVlmTextPlan plan;

  init_drawn_slices (&plan);
  gst_vlm_text_plan_frame (&plan, &first);
  check_plan (&plan, "gap 50+50");
  plan_frame (&plan, 100 * MS, NONE, NONE, a);
  check_plan (&plan, "text 100+250:a");
  gst_vlm_text_plan_frame (&plan, &last);
  check_plan (&plan, "");
  plan_frame (&plan, 210 * MS, NONE, NONE, a);
  check_plan (&plan, "text 210+250:a");
  gst_vlm_text_plan_clear (&plan);

  init_kept (&plan);
  gst_vlm_text_plan_frame (&plan, &first);
  check_plan (&plan, "gap 50+50");
  plan_frame (&plan, 100 * MS, NONE, NONE, a);
  check_plan (&plan, "text 100+315360000000:a");
  gst_vlm_text_plan_frame (&plan, &last);
  check_plan (&plan, "");
  plan_frame (&plan, 210 * MS, NONE, NONE, a);
  check_plan (&plan, "text 210+315360000000:a");
  gst_vlm_text_plan_clear (&plan);

  /* A cue begins with the part that is seen. */
  init_cues (&plan);
  gst_vlm_text_plan_answer (&plan, a);
  gst_vlm_text_plan_frame (&plan, &first);
  gst_vlm_text_plan_finish (&plan);
  check_plan (&plan, "tick 50 text 50+50:a");
  gst_vlm_text_plan_clear (&plan);
}

static void
test_plan_held (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  g_autoptr (GstVlmAnswer) b = make_answer (100 * MS, "b");
  GstVlmTextPlan plan;

  init_kept (&plan);
  plan_frame (&plan, 0, NONE, NONE, NULL);
  plan_frame (&plan, 100 * MS, NONE, NONE, NULL);
  check_plan (&plan, "gap 0+200");
  /* From the frame on that passes when it arrives, and practically for ever. */
  plan_frame (&plan, 200 * MS, NONE, NONE, a);
  plan_frame (&plan, 300 * MS, NONE, NONE, a);
  check_plan (&plan, "text 200+315360000000:a");
  plan_frame (&plan, 400 * MS, NONE, NONE, b);
  check_plan (&plan, "text 400+315360000000:b");

  gst_vlm_text_plan_clear (&plan);
}

/* A muxer that waits for text gets what there is, and slices from then on. */
static void
test_plan_hurry (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  GstVlmTextPlan plan;

  init_plan (&plan, GST_VLM_TEXT_CUES, GST_VLM_TEXT_PEER_OTHER, 10000, 0);
  plan_frame (&plan, 0, NONE, 0, NULL);
  gst_vlm_text_plan_hurry (&plan);
  check_plan (&plan, "tick 0 gap 0+100");
  plan_frame (&plan, 100 * MS, NONE, NONE, a);
  check_plan (&plan, "text 100+1000:a tick 1100");
  plan_frame (&plan, 200 * MS, NONE, NONE, a);
  check_plan (&plan, "");

  gst_vlm_text_plan_clear (&plan);
}

/* A cue of a muxer whose end is foreseen is sent at once, and no longer than is allowed. */
static void
test_plan_slices_limit (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (100 * MS, "a");
  GstVlmTextPlan plan;
  guint i;

  init_plan (&plan, GST_VLM_TEXT_SLICES, GST_VLM_TEXT_PEER_OTHER, 300, 300);
  plan_frame (&plan, 0, NONE, 100 * MS, NULL);
  check_plan (&plan, "gap 0+100");
  plan_frame (&plan, 100 * MS, 1000 * MS, NONE, a);
  check_plan (&plan, "text 100+300:a tick 400");
  for (i = 2; i < 6; i++)
    plan_frame (&plan, i * 100 * MS, 1000 * MS, NONE, a);
  check_plan (&plan, "gap 400+200");
  gst_vlm_text_plan_clear (&plan);
}

/* Somebody who takes captions as they come gets each once, and nothing for an empty one. */
static void
test_plan_held_by_sink (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  g_autoptr (GstVlmAnswer) empty = make_answer (300 * MS, "");
  g_autoptr (GstVlmAnswer) b = make_answer (600 * MS, "b");
  GstVlmTextPlan plan;
  guint i;

  init_plan (&plan, GST_VLM_TEXT_HELD, GST_VLM_TEXT_PEER_SINK, 200, 0);
  plan_frame (&plan, 0, NONE, NONE, NULL);
  for (i = 1; i < 4; i++)
    plan_frame (&plan, i * 100 * MS, NONE, NONE, a);
  check_plan (&plan, "gap 0+100 text 100+200:a");
  plan_frame (&plan, 400 * MS, NONE, NONE, empty);
  check_plan (&plan, "gap 300+200");
  plan_frame (&plan, 500 * MS, NONE, NONE, b);
  plan_frame (&plan, 600 * MS, NONE, NONE, b);
  check_plan (&plan, "text 500+200:b");
  gst_vlm_text_plan_clear (&plan);
}

/* New rules close the open cue where video is, and nothing is said twice. */
static void
test_plan_change (void)
{
  g_autoptr (GstVlmAnswer) a = make_answer (0, "a");
  const GstVlmTextRules slices = { GST_VLM_TEXT_SLICES, GST_VLM_TEXT_PEER_OTHER, 10000 * MS,
    10000 * MS };
  GstVlmTextPlan plan;

  init_plan (&plan, GST_VLM_TEXT_CUES, GST_VLM_TEXT_PEER_OTHER, 10000, 0);
  gst_vlm_text_plan_answer (&plan, a);
  plan_frame (&plan, 0, NONE, NONE, a);
  plan_frame (&plan, 100 * MS, NONE, NONE, a);
  check_plan (&plan, "tick 0");
  gst_vlm_text_plan_change (&plan, &slices);
  check_plan (&plan, "text 0+200:a");
  plan_frame (&plan, 200 * MS, 500 * MS, NONE, a);
  check_plan (&plan, "text 200+300:a tick 500");
  gst_vlm_text_plan_clear (&plan);
}

static void
test_rules (void)
{
  enum
  {
    SINK = GST_VLM_TEXT_PEER_SINK,
    BESIDE = GST_VLM_TEXT_PEER_BESIDE,
    OVERLAY = GST_VLM_TEXT_PEER_OVERLAY,
    MUXER = GST_VLM_TEXT_PEER_MUXER,
    OTHER = GST_VLM_TEXT_PEER_OTHER
  };
  enum
  {
    AUTO = GST_VLM_TEXT_TIMING_AUTO,
    FRAME = GST_VLM_TEXT_TIMING_FRAME,
    DISPLAY = GST_VLM_TEXT_TIMING_DISPLAY
  };
  const struct
  {
    gint peer, timing;
    gboolean sync, foreseen;
    GstVlmTextStyle style;
    guint64 longest, limit; /* ms; longest 0 is longer than any stream, limit 0 is none */
    gboolean may_stall;
  } cases[] = {
    { SINK, AUTO, FALSE, TRUE, GST_VLM_TEXT_CUES, 7000, 0, FALSE },
    { SINK, AUTO, TRUE, TRUE, GST_VLM_TEXT_CUES, 7000, 0, FALSE },
    { SINK, DISPLAY, FALSE, TRUE, GST_VLM_TEXT_HELD, 7000, 0, FALSE },
    { SINK, DISPLAY, TRUE, FALSE, GST_VLM_TEXT_HELD, 7000, 0, FALSE },
    { BESIDE, AUTO, FALSE, TRUE, GST_VLM_TEXT_HELD, 0, 0, FALSE },
    { BESIDE, AUTO, TRUE, TRUE, GST_VLM_TEXT_SLICES, 250, 0, FALSE },
    { BESIDE, FRAME, FALSE, TRUE, GST_VLM_TEXT_CUES, 7000, 0, TRUE },
    { OVERLAY, AUTO, FALSE, TRUE, GST_VLM_TEXT_SLICES, 250, 0, FALSE },
    { OVERLAY, DISPLAY, FALSE, FALSE, GST_VLM_TEXT_SLICES, 250, 0, FALSE },
    { OVERLAY, AUTO, TRUE, FALSE, GST_VLM_TEXT_SLICES, 250, 0, FALSE },
    { OVERLAY, FRAME, TRUE, TRUE, GST_VLM_TEXT_SLICES, 250, 0, FALSE },
    { OVERLAY, FRAME, FALSE, TRUE, GST_VLM_TEXT_CUES, 7000, 0, TRUE },
    { OTHER, AUTO, FALSE, TRUE, GST_VLM_TEXT_CUES, 7000, 0, TRUE },
    { OTHER, AUTO, TRUE, FALSE, GST_VLM_TEXT_CUES, 7000, 0, TRUE },
    { MUXER, AUTO, TRUE, FALSE, GST_VLM_TEXT_CUES, 7000, 0, TRUE },
    { MUXER, AUTO, TRUE, TRUE, GST_VLM_TEXT_SLICES, 7000, 7000, FALSE },
    { MUXER, DISPLAY, TRUE, TRUE, GST_VLM_TEXT_SLICES, 1000, 0, FALSE },
    { OTHER, FRAME, TRUE, TRUE, GST_VLM_TEXT_SLICES, 7000, 7000, FALSE },
    { OTHER, DISPLAY, FALSE, TRUE, GST_VLM_TEXT_SLICES, 1000, 0, FALSE },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstVlmTextWishes wishes = { cases[i].sync, cases[i].foreseen, cases[i].timing, 7000 * MS };
    GstVlmTextRules rules = gst_vlm_text_rules_choose (cases[i].peer, &wishes);

    g_test_message ("case %u", i);
    g_assert_cmpint (rules.style, ==, cases[i].style);
    g_assert_cmpint (rules.peer, ==, cases[i].peer);
    if (cases[i].longest == 0)
      g_assert_cmpuint (rules.longest, >, 365 * 24 * 3600 * GST_SECOND);
    else
      g_assert_cmpuint (rules.longest, ==, cases[i].longest * MS);
    g_assert_cmpuint (rules.limit, ==, cases[i].limit > 0 ? cases[i].limit * MS : NONE);
    g_assert_cmpint (gst_vlm_text_rules_may_stall (&rules), ==, cases[i].may_stall);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);

  g_test_add_func ("/textplan/cues", test_plan_cues);
  g_test_add_func ("/textplan/cues-end", test_plan_cues_end);
  g_test_add_func ("/textplan/cues-settled", test_plan_cues_settled);
  g_test_add_func ("/textplan/slices", test_plan_slices);
  g_test_add_func ("/textplan/slices-overlap", test_plan_slices_overlap);
  g_test_add_func ("/textplan/slices-limit", test_plan_slices_limit);
  g_test_add_func ("/textplan/held-by-sink", test_plan_held_by_sink);
  g_test_add_func ("/textplan/change", test_plan_change);
  g_test_add_func ("/textplan/rules", test_rules);
  g_test_add_func ("/textplan/cut", test_plan_cut);
  g_test_add_func ("/textplan/held", test_plan_held);
  g_test_add_func ("/textplan/hurry", test_plan_hurry);

  return g_test_run ();
}
