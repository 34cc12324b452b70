#include <executorch/cpu/nn/attention.h>

#include <executorch/cpu/threadpool.h>

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

bool Attention::run(Scratch& scratch) const {
  if (batch <= 0 || heads <= 0 || queries <= 0 || value_dim <= 0) return true;
  if (!is_countable(batch, heads, queries, value_dim) || !is_countable(keys, dim, value_dim)) {
    return false;
  }
  scratch.add_products(Size(batch) * heads * queries * keys * (Size(dim) + value_dim));
  if (kept.has_value() && *kept != type && type != Type::F32) return false;
  Attention a = *this;
  a.causal_offset = std::clamp(causal_offset, -queries, keys);  // larger ones mean the same
  return HWY_DYNAMIC_DISPATCH(RunAttention)(a, scratch);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
