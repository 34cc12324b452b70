#include <executorch/cpu/gemm/panels.h>
#include <executorch/cpu/huge_pages.h>
#include <executorch/kernels/optimized/packed_weights.h>

#include <algorithm>
#include <new>

namespace executorch::optimized {

using runtime::DerivedData;
using runtime::KernelRuntimeContext;

namespace {

// The number of rows after which a weight is packed; products that panels do not speed up do not
// count. Packing takes as long as panels save in products of some thousand rows: the first use of
// new memory takes most of that time, a second for some hundred MB where a hypervisor has to find
// the memory. A program that has multiplied so many rows is likely to go on.
constexpr int64_t kPayingRows = 1024;
constexpr int64_t kLeastFloats = 32 << 10;

}  // namespace

struct PackedWeights::Entry : DerivedData::Entry {
  int64_t k = 0, n = 0, row_stride = 0;
  cpu::Panels<float> panels;

  bool is_of(const Entry& other) const {
    return k == other.k && n == other.n && row_stride == other.row_stride;
  }
  static void destroy(DerivedData::Entry* entry) { delete static_cast<Entry*>(entry); }
};

// The memory of all packed weights of a program. They replace constants, so they need no more memory
// than these, apart from panels' padding.
struct PackedWeights::Memory : DerivedData::Entry {
  explicit Memory(size_t capacity) : arena(capacity) {}
  cpu::HugePageArena arena;

  static Memory* of(DerivedData& derived) {
    static constexpr char kKey = 0;
    if (auto* const found = derived.find(&kKey)) return static_cast<Memory*>(found);
    auto* const memory = new (std::nothrow) Memory(derived.constants_size());
    if (memory == nullptr) return nullptr;
    memory->source = &kKey;
    memory->free = [](DerivedData::Entry* entry) { delete static_cast<Memory*>(entry); };
    auto* const added = static_cast<Memory*>(derived.add(memory));
    if (added != memory) delete memory;
    return added;
  }
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
  if (!find(*derived, sizes) && cpu::panels_pay(m)) {
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
  auto* const memory = Memory::of(derived);
  auto* const entry = new (std::nothrow) Entry;
  const cpu::Size bytes = cpu::count_panel_elements(sizes.k, sizes.n) * sizeof(float);
  if (memory == nullptr || entry == nullptr || !bytes.fits<size_t>()) return delete entry;
  entry->source = sizes.source;
  entry->k = sizes.k, entry->n = sizes.n, entry->row_stride = sizes.row_stride;
  entry->free = &Entry::destroy;
  if (derived.add(entry) != entry) {  // somebody was faster: find() tells when that is ready
    state_ = State::Waiting;
    return delete entry;
  }
  void* const to = memory->arena.allocate(static_cast<size_t>(bytes.value()));
  if (to == nullptr) return;  // the entry stays, and nobody tries again
  entry->panels = cpu::pack_panels(weights, sizes.k, sizes.n, static_cast<float*>(to));
  panels_ = entry->panels;
  state_ = State::Packed;
  entry->ready.store(true, std::memory_order_release);
  const int64_t elements = (sizes.k - 1) * sizes.row_stride + sizes.n;
  (void)derived.release(weights.data, static_cast<size_t>(elements) * sizeof(float));
}

}  // namespace executorch::optimized
