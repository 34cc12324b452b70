#pragma once

#include <cstddef>
#include <regex>
#include <string_view>
#include <vector>

#include <executorch/runtime/core/event_tracer.h>

namespace executorch::etdump {

using runtime::Result;
using std::string_view;

/// Names the operations of delegates whose outputs are left out of a dump: by name, where a pattern
/// matches the whole of it, by number, where it is in the range. Without patterns every name is left
/// out, without a range every number.
class ETDumpFilter : public runtime::EventTracerFilterBase {
 public:
  ETDumpFilter() = default;
  ~ETDumpFilter() override = default;

  /// A regular expression in ECMAScript's syntax; an empty one matches every name. InvalidArgument
  /// where it is none.
  Result<bool> add_regex(string_view pattern);

  /// Numbers from `start` up to, but without, `end`. InvalidArgument unless start < end.
  Result<bool> set_debug_handle_range(size_t start, size_t end);

  /// Whether the operation is left out. InvalidArgument unless exactly one of name and number is
  /// given.
  Result<bool> filter(const char* name, runtime::DelegateDebugIntId delegate_debug_index) override;

  size_t get_n_regex() const { return patterns_.size(); }

 private:
  std::vector<std::regex> patterns_;
  size_t start_ = 0;
  size_t end_ = 0;
};

}  // namespace executorch::etdump
