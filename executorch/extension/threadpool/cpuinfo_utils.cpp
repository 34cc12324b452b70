#include <executorch/cpu/machine.h>
#include <executorch/extension/threadpool/cpuinfo_utils.h>

uint32_t executorch::extension::cpuinfo::get_num_performant_cores() {
  return cpu::machine().cores;
}
