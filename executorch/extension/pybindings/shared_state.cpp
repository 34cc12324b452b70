#include <executorch/extension/pybindings/shared_state.h>

#include <executorch/extension/pybindings/log_capture.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace executorch::extension::pybindings {
using runtime::EValue;
using runtime::Method;
using runtime::MethodMeta;

namespace {

internal::ArenaBuffer make_arena(size_t size) {
  LogCapture log;
  auto arena = internal::ArenaBuffer::create(size);
  log.check(arena.error(), "allocating planned memory");
  return std::move(*arena);
}

}  // namespace

SharedState::SharedState(size_t size) : memory_(make_arena(size)) {}

std::vector<uint8_t> SharedState::copy() const {
  const runtime::Span<uint8_t> all = span();
  return used_.empty() ? std::vector<uint8_t>() : std::vector<uint8_t>(all.begin(), all.end());
}

void SharedState::put_back(const std::vector<uint8_t>& copied) {
  for (const Range& range : used_) {
    std::copy_n(copied.begin() + range.begin, range.n_bytes, span().begin() + range.begin);
  }
}

void SharedState::use(const Method& method) {
  const auto* const begin = reinterpret_cast<const std::byte*>(span().data());
  for (const EValue& value : method.values()) {
    if (!value.isTensor()) continue;
    const auto* const at = static_cast<const std::byte*>(value.toTensor().const_data_ptr());
    if (std::less<>()(at, begin) || !std::less<>()(at, begin + span().size())) continue;
    used_.push_back({static_cast<size_t>(at - begin), value.toTensor().nbytes()});
  }
}

ArenasWithState::ArenasWithState(SharedState& state, const MethodMeta& meta) : state_(state) {
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    if (i == kStateArena) {
      spans_.push_back(state.span());
    } else {
      own_.push_back(make_arena(static_cast<size_t>(*meta.memory_planned_buffer_size(i))));
      spans_.push_back(own_.back().span());
    }
  }
  allocator_.emplace(runtime::Span<runtime::Span<uint8_t>>(spans_.data(), spans_.size()));
}

}  // namespace executorch::extension::pybindings
