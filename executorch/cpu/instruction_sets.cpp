#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/instruction_sets.h>
#include <hwy/targets.h>

#include <cstdint>
#include <cstring>

namespace executorch::cpu {

bool use_instruction_set(const char* name) {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  int64_t chosen = 0;
  if (*name != '\0') {
    for (int64_t left = targets; left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      if (std::strcmp(hwy::TargetName(target), name) == 0) chosen = target;
    }
    if (chosen == 0) return false;
  }
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  int8::use_target(chosen);
  return true;
}

}  // namespace executorch::cpu
