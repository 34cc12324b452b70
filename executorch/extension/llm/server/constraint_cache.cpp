#include <executorch/extension/llm/server/constraint_cache.h>

namespace executorch::extension::llm::server {

std::shared_ptr<Constraint> ConstraintCache::get(const ResponseFormat& format) {
  std::shared_ptr<const Vocabulary> vocabulary;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->format.type != format.type || entry->format.text != format.text) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->constraint;
    }
    if (vocabulary_ == nullptr) {
      vocabulary_ = std::make_shared<const Vocabulary>(model_.token_bytes());
    }
    vocabulary = vocabulary_;
  }
  // Not under the lock: others need not wait for one that takes long.
  std::string cause;
  auto constraint =
      Constraint::compile(format.type, format.text, vocabulary, model_.end_tokens(), cause);
  if (constraint == nullptr) {
    throw ApiError{400, "'" + format.param + "': the format of the answer cannot be used: " + cause,
                   format.param, "invalid_value"};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.push_front({format, constraint});
  if (entries_.size() > kMost) entries_.pop_back();
  return constraint;
}

}  // namespace executorch::extension::llm::server
