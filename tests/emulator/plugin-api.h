/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What stages.c uses of the interface that QEMU 7.2 has for plugins, version 1. Debian has no header
 * for it. */

#ifndef VLM_TESTS_PLUGIN_API_H
#define VLM_TESTS_PLUGIN_API_H

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_API_VERSION 1
#define PLUGIN_EXPORT __attribute__ ((visibility ("default")))

/* What QEMU tells about itself; nothing of it is looked at. */
struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef uint64_t PluginId;
typedef void (*PluginTranslated) (PluginId id, struct qemu_plugin_tb *block);
typedef void (*PluginExecuted) (unsigned cpu, void *user_data);
typedef void (*PluginEnd) (PluginId id, void *user_data);

/* 0: the callback looks at no register. */
#define PLUGIN_NO_REGISTERS 0

size_t qemu_plugin_tb_n_insns (const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr (const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn (const struct qemu_plugin_tb *block, size_t i);
const void *qemu_plugin_insn_data (const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb (PluginId id, PluginTranslated callback);
void qemu_plugin_register_vcpu_tb_exec_cb (
    struct qemu_plugin_tb *block, PluginExecuted callback, int flags, void *user_data);
void qemu_plugin_register_atexit_cb (PluginId id, PluginEnd callback, void *user_data);

#endif
