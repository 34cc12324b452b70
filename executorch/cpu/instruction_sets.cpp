#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/instruction_sets.h>
#include <hwy/targets.h>

#include <cstring>
#include <vector>

namespace executorch::cpu {

bool use_instruction_set(const char* name) {
  static const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  int64_t chosen = 0;
  if (*name != '\0') {
    for (const int64_t target : targets) {
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
