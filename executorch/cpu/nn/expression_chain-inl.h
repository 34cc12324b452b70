/// Chains of the cheap steps of an Expression. A chain loads some vectors, runs all of its steps on
/// them, and stores the last result, so that intermediate results stay in vector registers.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#undef EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#else
#define EXECUTORCH_CPU_NN_EXPRESSION_CHAIN_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/expression_plan.h>
#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The vectors that a chain computes side by side: enough to hide the cost of choosing the
/// operation, few enough to stay in registers beside operands and the constants of all operations.
constexpr size_t kSideBySide = 8;

/// The values of the registers, for a tile.
struct Registers {
  const float* data[Expression::kMaxRegisters];
  /// Whether all elements are data[r][0], the only one that is there.
  bool is_single[Expression::kMaxRegisters] = {};
};

/// Runs a chain, whose first step reads register `first`, on kVectors vectors from element `at` on,
/// or if kPartial on the `count` first lanes of one.
template <size_t kVectors, bool kPartial = false>
HWY_INLINE void RunLinks(const Link* links, uint8_t first, const Registers& registers, float* y,
                         size_t at, size_t count = 0) {
  using V = hn::Vec<hn::ScalableTag<float>>;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* p, size_t k) HWY_ATTR {
    if constexpr (kPartial) return LoadFloatsN(d, p, count);
    return hn::LoadU(d, p + k * lanes);
  };
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const auto Holds = [&](auto mask) HWY_ATTR { return hn::IfThenElseZero(mask, one); };
  const auto Fails = [&](auto mask) HWY_ATTR { return hn::IfThenZeroElse(mask, one); };
  V a[kVectors];
  if (registers.is_single[first]) {
    for (size_t k = 0; k < kVectors; ++k) a[k] = hn::Set(d, *registers.data[first]);
  } else {
    for (size_t k = 0; k < kVectors; ++k) a[k] = load(registers.data[first] + at, k);
  }
  for (const Link *l = links, *end = links + links->length; l != end; ++l) {
    const float* const left = registers.data[l->w] + at;
    const float* const right = registers.data[l->x] + at;
#define ET_EACH(w_value, x_value, value)  \
  for (size_t k = 0; k < kVectors; ++k) { \
    const V v = a[k];                     \
    [[maybe_unused]] const V w = w_value; \
    [[maybe_unused]] const V x = x_value; \
    a[k] = value;                         \
  }
#define ET_ONE(name, value)                                             \
  case Link::Code::name: {                                              \
    const V scale = hn::Set(d, l->scale), shift = hn::Set(d, l->shift); \
    ET_EACH(scale, shift, value)                                        \
    break;                                                              \
  }
#define ET_TWO(name, value)                                                         \
  case Link::Code::name:                                                            \
    if (l->is_number || registers.is_single[l->w]) {                                \
      const V number = hn::Set(d, l->is_number ? l->scale : *registers.data[l->w]); \
      ET_EACH(number, v, value)                                                     \
    } else {                                                                        \
      ET_EACH(load(left, k), v, value)                                              \
    }                                                                               \
    break;
#define ET_THREE(name, value)                                                                  \
  case Link::Code::name:                                                                       \
    if (registers.is_single[l->w] || registers.is_single[l->x]) {                              \
      const bool one_left = registers.is_single[l->w], one_right = registers.is_single[l->x];  \
      const V first_left = hn::Set(d, *registers.data[l->w]);                                  \
      const V first_right = hn::Set(d, *registers.data[l->x]);                                 \
      ET_EACH(one_left ? first_left : load(left, k), one_right ? first_right : load(right, k), \
              value)                                                                           \
    } else {                                                                                   \
      ET_EACH(load(left, k), load(right, k), value)                                            \
    }                                                                                          \
    break;
    switch (l->code) {
      ET_LINKS_OF_ONE(ET_ONE)
      ET_LINKS_OF_TWO(ET_TWO)
      ET_LINKS_OF_THREE(ET_THREE)
      case Link::Code::None:
        break;
    }
#undef ET_THREE
#undef ET_TWO
#undef ET_ONE
#undef ET_EACH
  }
  for (size_t k = 0; k < kVectors; ++k) {
    if constexpr (kPartial) {
      StoreFloatsN(a[k], d, y + at, count);
    } else {
      hn::StoreU(a[k], d, y + at + k * lanes);
    }
  }
}

/// Runs the chain that begins at `links`, whose first step reads register `first`, on n elements.
void RunChain(const Link* links, uint8_t first, const Registers& registers, float* y,
              int64_t count) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>()), n = static_cast<size_t>(count);
  size_t i = 0;
  for (; i + kSideBySide * lanes <= n; i += kSideBySide * lanes) {
    RunLinks<kSideBySide>(links, first, registers, y, i);
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes) RunLinks<4>(links, first, registers, y, i);
  for (; i + lanes <= n; i += lanes) RunLinks<1>(links, first, registers, y, i);
  if (i < n) RunLinks<1, true>(links, first, registers, y, i, n - i);
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
