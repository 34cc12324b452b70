#pragma once

#include <executorch/extension/llm/sampler/constraint/constraint.h>
#include <executorch/extension/llm/server/api.h>

#include <list>
#include <mutex>

namespace executorch::extension::llm::server {

/// Constraints that were compiled for earlier requests; the ones used last are kept.
class ConstraintCache {
 public:
  explicit ConstraintCache(const ServedModel& model) : model_(model) {}
  /// Throws ApiError for what cannot be used.
  std::shared_ptr<Constraint> get(const ResponseFormat& format);

 private:
  static constexpr size_t kMost = 16;
  struct Entry {
    ResponseFormat format;
    std::shared_ptr<Constraint> constraint;
  };

  const ServedModel& model_;
  std::mutex mutex_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::list<Entry> entries_;  // used last first
};

}  // namespace executorch::extension::llm::server
