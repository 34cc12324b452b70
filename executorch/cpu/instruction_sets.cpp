#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/instruction_sets.h>
#include <hwy/targets.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace executorch::cpu {
namespace {

/// Bits of the sets that the build contains and this machine has.
int64_t usable_targets() {
  static const int64_t targets = HWY_SUPPORTED_TARGETS & HWY_TARGETS;
  return targets;
}

/// Calls f(target) for each usable target, the most able one first.
template <class F>
void for_each_usable(const F& f) {
  for (int64_t left = usable_targets(); left != 0; left &= left - 1) f(left & -left);
}

}  // namespace

bool use_instruction_set(const char* name) {
  // Later calls of SupportedTargets() give what the first one here chooses.
  usable_targets();
  int64_t chosen = 0;
  if (*name != '\0') {
    for_each_usable([&](int64_t target) {
      if (std::strcmp(hwy::TargetName(target), name) == 0) chosen = target;
    });
    if (chosen == 0) return false;
  }
  gemm::use_target(chosen);  // first: it asks Highway once what this machine has
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

bool use_instruction_set_argument(const char* program, const char* name) {
  if (use_instruction_set(name)) return true;
  std::fprintf(stderr,
               "%s: found instruction set %s, expected one that this machine and this build have:",
               program, name);
  for_each_usable([](int64_t target) { std::fprintf(stderr, " %s", hwy::TargetName(target)); });
  std::fprintf(stderr, "\n");
  return false;
}

}  // namespace executorch::cpu
