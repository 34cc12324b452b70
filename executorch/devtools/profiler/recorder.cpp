#include <executorch/devtools/profiler/recorder.h>
#include <executorch/runtime/platform/platform.h>

#include <algorithm>
#include <cstring>

namespace executorch::devtools {
namespace {

using runtime::EventTracerEntry;

// What an entry is, in event_id: a node by its number, or one of these.
constexpr int64_t kMethod = -1;
constexpr int64_t kInstruction = -2;
constexpr int64_t kInner = -3;
constexpr int64_t kLost = -4;

}  // namespace

void Recorder::reserve(size_t steps, size_t nodes) {
  run_.steps.reserve(steps);
  run_.nodes.reserve(nodes);
}

void Recorder::start_run() {
  if (run_.n_lost > 0) {
    reserve(std::max<size_t>(2 * run_.steps.capacity(), 256),
            std::max<size_t>(2 * run_.nodes.capacity(), 256));
  }
  run_.steps.clear();
  run_.nodes.clear();
  run_.n_lost = 0;
  run_.start = run_.end = 0;
  depth_ = 0;
}

EventTracerEntry Recorder::start_profiling(const char*, runtime::ChainID, runtime::DebugHandle) {
  EventTracerEntry entry{};
  if (current_chain_id() < 0) {
    entry.event_id = kMethod;
    run_.start = runtime::pal_current_ticks();
    return entry;
  }
  if (depth_++ > 0) {
    entry.event_id = kInner;
  } else if (surveys_ || run_.steps.size() < run_.steps.capacity()) {
    entry.event_id = kInstruction;
    run_.steps.push_back({static_cast<uint32_t>(current_chain_id()), current_debug_handle(),
                          runtime::pal_current_ticks()});
  } else {
    entry.event_id = kLost;
    ++run_.n_lost;
  }
  return entry;
}

void Recorder::end_profiling(EventTracerEntry entry) {
  if (entry.event_id == kMethod) {
    run_.end = runtime::pal_current_ticks();
  } else {
    --depth_;
  }
}

int64_t Recorder::add_node(const char* name, runtime::DelegateDebugIntId id, et_timestamp_t start,
                           et_timestamp_t end, const void* metadata, size_t metadata_len) {
  if (run_.steps.empty() || (run_.nodes.size() == run_.nodes.capacity() && !surveys_)) {
    ++run_.n_lost;
    return kLost;
  }
  Run::Node& node = run_.nodes.emplace_back();
  node.step = run_.steps.size() - 1;
  node.id = name == nullptr ? id : -1;
  node.start = start;
  node.end = end;
  std::strncpy(node.name, name == nullptr ? "" : name, sizeof(node.name) - 1);
  if (surveys_ && metadata != nullptr) {
    node.metadata.assign(static_cast<const char*>(metadata), metadata_len);
  }
  return static_cast<int64_t>(run_.nodes.size()) - 1;
}

EventTracerEntry Recorder::start_profiling_delegate(const char* name,
                                                    runtime::DelegateDebugIntId id) {
  EventTracerEntry entry{};
  const auto now = runtime::pal_current_ticks();
  entry.event_id = add_node(name, id, now, now, nullptr, 0);
  return entry;
}

void Recorder::end_profiling_delegate(EventTracerEntry entry, const void* metadata,
                                      size_t metadata_len) {
  if (entry.event_id < 0) return;
  Run::Node& node = run_.nodes[static_cast<size_t>(entry.event_id)];
  node.end = runtime::pal_current_ticks();
  if (surveys_ && metadata != nullptr) {
    node.metadata.assign(static_cast<const char*>(metadata), metadata_len);
  }
}

void Recorder::log_profiling_delegate(const char* name, runtime::DelegateDebugIntId id,
                                      et_timestamp_t start, et_timestamp_t end,
                                      const void* metadata, size_t metadata_len) {
  add_node(name, id, start, end, metadata, metadata_len);
}

}  // namespace executorch::devtools
