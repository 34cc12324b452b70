#include <executorch/cpu/machine.h>
#include <executorch/cpu/nn/stream.h>

#include <atomic>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/stream.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Copies `lines` cache lines to dst, which is on a cache line's boundary, past the caches.
void StreamLines(const uint8_t* HWY_RESTRICT src, uint8_t* HWY_RESTRICT dst, size_t lines) {
  const hn::CappedTag<uint8_t, static_cast<size_t>(kLine)> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  for (size_t i = 0; i < lines * kLine; i += kLine) {
    for (size_t j = 0; j < kLine; j += kLanes) {
      hn::Stream(hn::LoadU(d, src + i + j), d, dst + i + j);
    }
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(StreamLines);

namespace {

std::atomic<int64_t>& cache_bytes() {
  static std::atomic<int64_t> bytes{machine().l3};
  return bytes;
}
}  // namespace

bool overflows_caches(int64_t bytes) {
  return bytes > cache_bytes().load(std::memory_order_relaxed);
}

int64_t internal::set_cache_bytes(int64_t bytes) {
  return cache_bytes().exchange(bytes);
}

void stream(const void* src, void* dst, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(src);
  auto* to = static_cast<uint8_t*>(dst);
  const size_t ahead = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  const size_t head = std::min(bytes, ahead), lines = (bytes - head) / kLine;
  const size_t rest = bytes - head - lines * kLine;
  memmove(to, from, head);
  HWY_DYNAMIC_DISPATCH(StreamLines)(from + head, to + head, lines);
  memmove(to + bytes - rest, from + bytes - rest, rest);
}

void end_stream() {
  hwy::FlushStream();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
