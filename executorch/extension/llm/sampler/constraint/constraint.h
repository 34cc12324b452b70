/// Texts that a regular expression or a JSON schema describes, and no others.
///
///   auto vocabulary = std::make_shared<const Vocabulary>(token_bytes);
///   auto constraint = Constraint::compile("json_schema", schema, vocabulary, eos_ids, cause);
///   options.processors.push_back(std::make_shared<ConstraintProcessor>(constraint));
#pragma once

#include <executorch/extension/llm/sampler/constraint/vocabulary.h>
#include <executorch/extension/llm/sampler/logit_processor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm {

/// A compiled constraint. Thread-safe; any number of texts may share it.
class Constraint {
 public:
  /// `type` is "regex", which the whole text has to match, or "json_schema"; regex.h and
  /// json_schema.h say what is supported. `end_tokens` are allowed where a text may end. Null if
  /// `text` cannot be used; `cause` then says why and where. Time and memory are bounded for any
  /// input.
  static std::shared_ptr<Constraint> compile(const std::string& type, const std::string& text,
                                             std::shared_ptr<const Vocabulary> vocabulary,
                                             const std::unordered_set<uint64_t>& end_tokens,
                                             std::string& cause);
  ~Constraint();

 private:
  friend class ConstrainedText;
  struct State;
  explicit Constraint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A text that grows token by token. Not thread-safe.
class ConstrainedText {
 public:
  explicit ConstrainedText(std::shared_ptr<Constraint> constraint);
  ~ConstrainedText();

  /// For each token one bit, the first in the lowest bit of the first element, that says whether
  /// the token may follow. InvalidState if none may although the text is not complete, because no
  /// token has the bytes that are needed. OutOfResources if the constraint has too many states.
  runtime::Error allowed(std::vector<uint64_t>& mask);
  /// Appends a token. InvalidArgument, and nothing is changed, for one that is not allowed.
  runtime::Error accept(uint64_t token);
  /// Appends bytes.
  runtime::Error accept_bytes(const std::string& bytes);
  /// Takes back the last `n` calls of accept and accept_bytes.
  runtime::Error rollback(size_t n);

  /// Whether the text may end here.
  bool may_end() const;
  /// Whether the text must end here.
  bool is_complete() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Excludes tokens that are not allowed next.
class ConstraintProcessor : public LogitProcessor {
 public:
  explicit ConstraintProcessor(std::shared_ptr<Constraint> constraint)
      : text_(std::move(constraint)) {}
  runtime::Error process(aten::Tensor logits) override;
  runtime::Error accept(uint64_t token) override { return text_.accept(token); }
  bool is_complete() const override { return text_.is_complete(); }

 private:
  ConstrainedText text_;
  std::vector<uint64_t> mask_;
};

}  // namespace executorch::extension::llm
