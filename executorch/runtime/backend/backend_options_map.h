#pragma once

#include <cstddef>

#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

/// Options for loading, by backend. Borrows the options, which must outlive the load.
class LoadBackendOptionsMap final {
 public:
  /// `backend_id` is null when `entry_at` was asked past the end.
  struct EntryView {
    const char* backend_id = nullptr;
    Span<const BackendOption> options;
  };

  LoadBackendOptionsMap() = default;

  /// Sets the options of a backend; earlier ones are replaced. InvalidArgument for a null, empty
  /// or too long name (63 bytes), and for more than 8 backends.
  Error set_options(const char* backend_id, Span<BackendOption> options);
  /// From an object with `backend_id()` and `view()`.
  template <typename Builder>
  Error set_options(Builder& builder) {
    return set_options(builder.backend_id(), builder.view());
  }

  /// Empty for a backend without any.
  Span<const BackendOption> get_options(const char* backend_id) const;
  bool has_options(const char* backend_id) const;
  /// Number of backends.
  size_t size() const { return size_; }
  EntryView entry_at(size_t index) const;

 private:
  static constexpr size_t kMaxBackends = 8;
  static constexpr size_t kMaxBackendIdLength = 64;

  struct Entry {
    char backend_id[kMaxBackendIdLength]{};
    Span<const BackendOption> options;
  };

  const Entry* find(const char* backend_id) const;

  Entry entries_[kMaxBackends];
  size_t size_ = 0;
};

}  // namespace executorch::runtime
