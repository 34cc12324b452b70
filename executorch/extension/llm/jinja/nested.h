#pragma once

#include <executorch/extension/llm/jinja/evaluator.h>

namespace executorch::extension::llm::jinja {

/// Lives as long as one evaluation inside of others. The deepest tree of a template fits several
/// times, for macros that call each other; the stack of a thread fits this often.
class Evaluator::Nested {
 public:
  explicit Nested(Evaluator& evaluator) : depth_(evaluator.depth_) {
    if (depth_ == kMost) fail("macros and expressions run too deep in each other");
    ++depth_;
  }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  static constexpr uint32_t kMost = 500;
  uint32_t& depth_;
};

}  // namespace executorch::extension::llm::jinja
