#include <executorch/devtools/etdump/etdump_filter.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>

namespace executorch::etdump {

using runtime::Error;

Result<bool> ETDumpFilter::add_regex(string_view pattern) {
  try {
    const string_view written = pattern.empty() ? string_view("[^]*") : pattern;
    patterns_.emplace_back(written.begin(), written.end());
  } catch (const std::regex_error& error) {
    ET_LOG(Error, "\"%.*s\" is no regular expression: %s", static_cast<int>(pattern.size()),
           pattern.data(), error.what());
    return Error::InvalidArgument;
  }
  return true;
}

Result<bool> ETDumpFilter::set_debug_handle_range(size_t start, size_t end) {
  ET_CHECK_OR_RETURN_ERROR(start < end, InvalidArgument,
                           "the range from %zu up to %zu holds no debug handle", start, end);
  start_ = start;
  end_ = end;
  return true;
}

Result<bool> ETDumpFilter::filter(const char* name,
                                  runtime::DelegateDebugIntId delegate_debug_index) {
  const bool has_number = delegate_debug_index != runtime::kUnsetDelegateDebugIntId;
  ET_CHECK_OR_RETURN_ERROR((name != nullptr) != has_number, InvalidArgument,
                           "an operation of a delegate has a name or a number, not %s",
                           has_number ? "both" : "neither");
  if (has_number) {
    const auto number = static_cast<size_t>(delegate_debug_index);
    return end_ == 0 || (start_ <= number && number < end_);
  }
  return patterns_.empty() ||
         std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::regex& pattern) { return std::regex_match(name, pattern); });
}

}  // namespace executorch::etdump
