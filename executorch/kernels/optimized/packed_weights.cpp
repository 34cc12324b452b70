#include <executorch/cpu/gemm/panels.h>
#include <executorch/cpu/huge_pages.h>
#include <executorch/kernels/optimized/packed_weights.h>

#include <algorithm>
#include <new>

namespace executorch::optimized {

using runtime::DerivedData;
using runtime::KernelRuntimeContext;

namespace {

// The number of rows after which a weight is packed. Packing takes as long as panels save in
// products of about twice as many rows, whether few rows at a time or many; first use of new memory
// takes more of that time than the copy. A program that has multiplied so many rows is likely to go
// on.
constexpr int64_t kPayingRows = 256;
constexpr int64_t kLeastFloats = 32 << 10;

}  // namespace

struct PackedWeights::Entry : DerivedData::Entry {
  int64_t k = 0, n = 0, row_stride = 0;
  cpu::HugeArray<float> memory{nullptr, &std::free};
  cpu::Panels<float> panels;

  bool is_of(const Entry& other) const {
    return k == other.k && n == other.n && row_stride == other.row_stride;
  }
  static void destroy(DerivedData::Entry* entry) { delete static_cast<Entry*>(entry); }
};

bool PackedWeights::is_worth(int64_t count) {
  return count >= kLeastFloats;
}

cpu::Panels<float> PackedWeights::panels(KernelRuntimeContext& context,
                                         const cpu::Matrix<const float>& weights, int64_t k,
                                         int64_t n, int64_t m) {
  if (state_ != State::Waiting) return panels_;
  DerivedData* const derived = context.derived_data();
  if (derived == nullptr || weights.col_stride != 1 || !is_worth((cpu::Size(k) * n).value_or(0)) ||
      !derived->release(weights.data, 0)) {
    state_ = State::Never;
    return {};
  }
  Entry sizes;
  sizes.source = weights.data;
  sizes.k = k, sizes.n = n, sizes.row_stride = weights.row_stride;
  if (!find(*derived, sizes)) {
    rows_ += std::min(m, kPayingRows);
    if (rows_ >= kPayingRows) pack(*derived, weights, sizes);
  }
  return panels_;
}

// Looks for panels that another call or method has made of the same weights, or is making.
bool PackedWeights::find(const DerivedData& derived, const Entry& sizes) {
  const auto* const entry = static_cast<const Entry*>(derived.find(sizes.source));
  if (entry == nullptr) return false;
  if (!entry->ready.load(std::memory_order_acquire)) return true;
  state_ = entry->is_of(sizes) ? State::Packed : State::Never;
  if (state_ == State::Packed) panels_ = entry->panels;
  return true;
}

void PackedWeights::pack(DerivedData& derived, const cpu::Matrix<const float>& weights,
                         const Entry& sizes) {
  state_ = State::Never;
  auto* const entry = new (std::nothrow) Entry;
  const cpu::Size count = cpu::count_panel_elements(sizes.k, sizes.n);
  if (entry == nullptr || !count.ok()) return delete entry;
  entry->source = sizes.source;
  entry->k = sizes.k, entry->n = sizes.n, entry->row_stride = sizes.row_stride;
  entry->free = &Entry::destroy;
  entry->memory = cpu::huge_array<float>(static_cast<size_t>(count.value()));
  if (entry->memory == nullptr) return delete entry;
  if (derived.add(entry) != entry) {  // somebody was faster: find() tells when that is ready
    state_ = State::Waiting;
    return delete entry;
  }
  entry->panels = cpu::pack_panels(weights, sizes.k, sizes.n, entry->memory.get());
  panels_ = entry->panels;
  state_ = State::Packed;
  entry->ready.store(true, std::memory_order_release);
  const int64_t elements = (sizes.k - 1) * sizes.row_stride + sizes.n;
  (void)derived.release(weights.data, static_cast<size_t>(elements) * sizeof(float));
}

}  // namespace executorch::optimized
