#include <executorch/cpu/gemm/kernels.h>
#include <hwy/highway.h>

#include <atomic>

namespace executorch::cpu::gemm {
namespace {

// The instruction sets that this machine has, best first: by Highway's targets in the order of
// their bits, and for each target by its sets of integer rows.
struct Sets {
  static constexpr int kMost = 16;
  Kernels list[kMost];
  int64_t targets[kMost] = {};
  int n = 0;

  Sets() {
    for (int64_t left = HWY_SUPPORTED_TARGETS | HWY_STATIC_TARGET; left != 0; left &= left - 1) {
      for (const Source set : {Source::Int8Matmul, Source::Int8Dot, Source::Int8}) {
        add(left & -left, set);
      }
    }
  }

  void add(int64_t target, Source set) {
    if (n < kMost && fill_int8(set, target, list[n]) && fill_tiles(target, list[n]) &&
        fill_storage(target, list[n])) {
      if (set != Source::Int8) fill_split_dots(target, list[n]);
      if (set == Source::Int8Matmul) fill_split(target, list[n]);
      targets[n++] = target;
    }
  }
};

const Sets& sets() {
  static const Sets all;
  return all;
}

std::atomic<const Kernels*>& in_use() {
  static std::atomic<const Kernels*> kernels = &sets().list[0];
  return kernels;
}

}  // namespace

const Kernels& kernels() {
  return *in_use().load(std::memory_order_relaxed);
}

int count_sets() {
  return sets().n;
}

void use_set(int set) {
  in_use() = &sets().list[set];
}

void use_target(int64_t target) {
  int set = 0;
  while (set + 1 < sets().n && sets().targets[set] < target) ++set;
  use_set(set);
}

}  // namespace executorch::cpu::gemm
