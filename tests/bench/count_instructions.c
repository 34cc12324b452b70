/* A plugin of QEMU's user mode: the instructions that a program executes, printed at its end.
 *   qemu-aarch64 -plugin count_instructions.so -d plugin -D FILE PROGRAM
 * The interface (version 1, of QEMU 4.2 and later) is declared here, for Debian packages no header. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t Id;
typedef struct qemu_info_t Info;
struct qemu_plugin_tb;
enum { ADD_U64 = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(Id, void (*)(Id, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int, void*, uint64_t);
void qemu_plugin_register_atexit_cb(Id, void (*)(Id, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
void qemu_plugin_outs(const char*);

int qemu_plugin_version = 1;
static uint64_t count; /* of one thread: several would lose additions */

static void translate(Id id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &count, qemu_plugin_tb_n_insns(block));
}

static void end(Id id, void* data) {
  (void)id, (void)data;
  char text[32];
  snprintf(text, sizeof(text), "%" PRIu64 "\n", count);
  qemu_plugin_outs(text);
}

int qemu_plugin_install(Id id, const Info* info, int argc, char** argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, end, NULL);
  return 0;
}
