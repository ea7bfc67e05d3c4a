/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "signals.h"

#include <signal.h>

#include <glib-unix.h>

static const gint numbers[] = { SIGINT, SIGTERM, SIGHUP };

typedef struct
{
  VlmSignals *signals;
  gint number;
  GSource *source;
} Handler;

struct _VlmSignals
{
  VlmSignalFunc func;
  gpointer user_data;
  Handler handlers[G_N_ELEMENTS (numbers)];
};

static gboolean
handle (gpointer data)
{
  const Handler *handler = data;

  handler->signals->func (handler->number, handler->signals->user_data);
  return G_SOURCE_REMOVE;
}

VlmSignals *
vlm_signals_new (VlmSignalFunc func, gpointer user_data)
{
  VlmSignals *signals = g_new0 (VlmSignals, 1);
  guint i;

  signals->func = func;
  signals->user_data = user_data;
  for (i = 0; i < G_N_ELEMENTS (numbers); i++) {
    Handler *handler = &signals->handlers[i];

    handler->signals = signals;
    handler->number = numbers[i];
    handler->source = g_unix_signal_source_new (numbers[i]);
    g_source_set_callback (handler->source, handle, handler, NULL);
    g_source_attach (handler->source, NULL);
  }
  return signals;
}

void
vlm_signals_free (VlmSignals *signals)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (numbers); i++) {
    g_source_destroy (signals->handlers[i].source);
    g_source_unref (signals->handlers[i].source);
  }
  g_free (signals);
}
