#include <executorch/cpu/nn/attention.h>

#include <executorch/cpu/threadpool.h>
#include <executorch/cpu/workspace.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/attention.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/attention-inl.h>

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(RunAttention);

void Attention::run() const {
  HWY_DYNAMIC_DISPATCH(RunAttention)(*this);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
