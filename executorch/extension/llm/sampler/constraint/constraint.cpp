#include <executorch/extension/llm/sampler/constraint/constraint.h>

#include <executorch/extension/llm/sampler/constraint/json_schema.h>
#include <executorch/extension/llm/sampler/constraint/regex.h>
#include <executorch/extension/llm/sampler/constraint/token_masks.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>
#include <mutex>

namespace executorch::extension::llm {

using runtime::Error;

namespace {

constraint::Nfa automaton_of(const std::string& type, const std::string& text) {
  if (type == "json_schema") return constraint::json_schema_automaton(text);
  if (type != "regex") {
    throw constraint::Unusable("'" + type + "' is no kind of constraint: regex, json_schema");
  }
  constraint::NfaBuilder builder;
  const uint32_t rule = builder.add_rule();
  constraint::Regex(text).add_whole(builder, builder.start(rule), builder.end(rule),
                                    constraint::add_utf8);
  return builder.finish(rule);
}

/// Calls a function; a constraint that needs too many states or too much memory becomes an error.
template <typename Function>
Error run_bounded(const Function& function) {
  try {
    return function();
  } catch (const constraint::Unusable& error) {
    ET_LOG(Error, "constraint: %s", error.what());
    return Error::OutOfResources;
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

}  // namespace

struct Constraint::State {
  State(constraint::Nfa nfa, std::shared_ptr<const Vocabulary> vocabulary)
      : automaton(std::move(nfa)), masks(automaton, std::move(vocabulary)) {}

  std::mutex mutex;  // of all that follows
  constraint::Automaton automaton;
  constraint::TokenMasks masks;
  std::vector<uint64_t> end_tokens;
};

Constraint::Constraint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Constraint::~Constraint() = default;

std::shared_ptr<Constraint> Constraint::compile(const std::string& type, const std::string& text,
                                                std::shared_ptr<const Vocabulary> vocabulary,
                                                const std::unordered_set<uint64_t>& end_tokens,
                                                std::string& cause) {
  try {
    auto state = std::make_unique<State>(automaton_of(type, text), std::move(vocabulary));
    for (const uint64_t token : end_tokens) {
      if (token < state->masks.vocabulary().size()) state->end_tokens.push_back(token);
    }
    return std::shared_ptr<Constraint>(new Constraint(std::move(state)));
  } catch (const std::exception& error) {
    cause = error.what();
    return nullptr;
  }
}

struct ConstrainedText::State {
  struct Step {
    constraint::Positions positions;
    bool may_end, can_go_on, ended;
  };

  Step step_at(constraint::Positions positions) {
    auto& automaton = constraint->state_->automaton;
    Step step{positions, false, false, false};
    step.may_end = automaton.close(positions, frames);
    step.can_go_on = automaton.can_go_on(positions);
    return step;
  }

  std::shared_ptr<Constraint> constraint;
  constraint::Frames frames;
  /// One entry after each accepted token; the first one is for the empty text.
  std::vector<Step> steps;
};

ConstrainedText::ConstrainedText(std::shared_ptr<Constraint> constraint)
    : state_(std::make_unique<State>()) {
  state_->constraint = std::move(constraint);
  auto& shared = *state_->constraint->state_;
  const std::lock_guard<std::mutex> lock(shared.mutex);
  const Error error = run_bounded([&] {
    state_->steps.push_back(state_->step_at(shared.automaton.start()));
    return Error::Ok;
  });
  if (error != Error::Ok) state_->steps.push_back({{}, false, false, true});
}

ConstrainedText::~ConstrainedText() = default;

Error ConstrainedText::allowed(std::vector<uint64_t>& mask) {
  auto& shared = *state_->constraint->state_;
  const State::Step& step = state_->steps.back();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  mask.assign((shared.masks.vocabulary().size() + 63) / 64, 0);
  if (step.ended) return Error::InvalidState;
  const Error error = run_bounded([&] {
    shared.masks.add(step.positions, state_->frames, mask);
    return Error::Ok;
  });
  if (error != Error::Ok) return error;
  if (step.may_end) {
    for (const uint64_t token : shared.end_tokens) mask[token / 64] |= uint64_t{1} << token % 64;
    return Error::Ok;
  }
  const bool any = std::any_of(mask.begin(), mask.end(), [](uint64_t bits) { return bits != 0; });
  if (!any) ET_LOG(Error, "constraint: no token of the vocabulary continues the text");
  return any ? Error::Ok : Error::InvalidState;
}

Error ConstrainedText::accept(uint64_t token) {
  auto& shared = *state_->constraint->state_;
  const Vocabulary& vocabulary = shared.masks.vocabulary();
  if (token >= vocabulary.size()) return Error::InvalidArgument;
  const auto& ends = shared.end_tokens;
  const State::Step& last = state_->steps.back();
  if (last.may_end && !last.ended && std::find(ends.begin(), ends.end(), token) != ends.end()) {
    state_->steps.push_back({{}, true, false, true});
    return Error::Ok;
  }
  if (vocabulary.bytes(token).empty()) return Error::InvalidArgument;
  return accept_bytes(vocabulary.bytes(token));
}

Error ConstrainedText::accept_bytes(const std::string& bytes) {
  auto& automaton = state_->constraint->state_->automaton;
  const std::lock_guard<std::mutex> lock(state_->constraint->state_->mutex);
  return run_bounded([&] {
    constraint::Positions positions = state_->steps.back().positions;
    for (const char byte : bytes) {
      automaton.close(positions, state_->frames);
      positions = automaton.step(positions, automaton.class_of(static_cast<uint8_t>(byte)));
      if (positions.empty()) return Error::InvalidArgument;
    }
    state_->steps.push_back(state_->step_at(std::move(positions)));
    return Error::Ok;
  });
}

Error ConstrainedText::rollback(size_t n) {
  if (n >= state_->steps.size()) return Error::InvalidArgument;
  state_->steps.resize(state_->steps.size() - n);
  return Error::Ok;
}

bool ConstrainedText::may_end() const {
  return state_->steps.back().may_end;
}

bool ConstrainedText::is_complete() const {
  return state_->steps.back().may_end && !state_->steps.back().can_go_on;
}

Error ConstraintProcessor::process(aten::Tensor logits) {
  ET_CHECK_OR_RETURN_ERROR(logits.scalar_type() == aten::ScalarType::Float && logits.dim() != 0,
                           InvalidArgument, "constraint: logits of type float are expected");
  ET_CHECK_OK_OR_RETURN_ERROR(text_.allowed(mask_));
  const size_t n = static_cast<size_t>(logits.size(logits.dim() - 1));
  ET_ASSIGN_OR_RETURN(const auto values, runtime::internal::writable_data(logits));
  if (logits.numel() == 0) return Error::InvalidArgument;
  float* row = static_cast<float*>(values) + (static_cast<size_t>(logits.numel()) - n);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < n; i += 64) {
    const uint64_t bits = i / 64 < mask_.size() ? mask_[i / 64] : 0;
    const size_t end = std::min(n, i + 64);
    if (bits == 0) {
      std::fill(row + i, row + end, kNever);
    } else if (bits != ~uint64_t{0}) {
      for (size_t k = i; k < end; ++k) row[k] = bits >> (k - i) & 1 ? row[k] : kNever;
    }
  }
  return Error::Ok;
}

}  // namespace executorch::extension::llm
