/// A tokenizer, a model and a logit processor for tests of runners.
#pragma once

#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace executorch::extension::llm::runner_testing {

using aten::Tensor;
using runtime::Error;
using runtime::Result;

/// Letters a to y are tokens 0 to 24; 25 ends a text; 26 to 28 are the bytes of U+20AC.
class Letters final : public tokenizers::Tokenizer {
 public:
  Letters() {
    initialized_ = true;
    vocab_size_ = 29;
    bos_tok_ = eos_tok_ = 25;
  }
  tokenizers::Error load(const std::string&) override { return tokenizers::Error::Ok; }
  tokenizers::Result<std::string> id_to_piece(uint64_t token) const override {
    if (token >= 29) return tokenizers::Error::OutOfRange;
    if (token >= 26) return std::string(1, "\xe2\x82\xac"[token - 26]);
    return token == 25 ? std::string("<end>") : std::string(1, static_cast<char>('a' + token));
  }
  tokenizers::Result<uint64_t> piece_to_id(const std::string&) const override {
    return tokenizers::Error::OutOfRange;
  }
  tokenizers::Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos,
                                                   int8_t eos) const override {
    std::vector<uint64_t> tokens(static_cast<size_t>(bos), 25);
    for (const char c : input) tokens.push_back(static_cast<uint64_t>(c - 'a'));
    tokens.insert(tokens.end(), static_cast<size_t>(eos), 25);
    return tokens;
  }
  tokenizers::Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
};

/// A model that says the letter after the sum of all tokens so far, modulo 29: any error in what it
/// is given shows in all that follows.
class SumModel final : public TextDecoderRunner {
 public:
  explicit SumModel(bool has_caches, bool all_positions = false, bool incremental = false,
                    int64_t max_tokens = 64)
      : TextDecoderRunner(nullptr, nullptr) {
    form_.position = has_caches ? ProgramForm::Position::Start : ProgramForm::Position::None;
    form_.max_tokens = max_tokens;
    form_.vocabulary_size = 29;
    form_.is_incremental = incremental;
    form_.gives_all_positions = all_positions;
  }
  Error load() override { return Error::Ok; }
  bool is_method_loaded() override { return true; }

  Result<Tensor> step(TensorPtr& input, int64_t start_pos) override {
    if (fails) return Error::Internal;
    const auto n = static_cast<size_t>(input->numel());
    n_tokens.push_back(n);
    const bool has_caches = form_.position != ProgramForm::Position::None;
    seen.resize(has_caches ? static_cast<size_t>(start_pos) : 0);
    std::vector<float> logits;
    for (size_t i = 0; i < n; ++i) {
      seen.push_back(static_cast<uint64_t>(input->const_data_ptr<int64_t>()[i]));
      std::vector<float> row(29, 0.0f);
      row[next(seen)] = 10;
      if (!form_.gives_all_positions) logits.clear();
      logits.insert(logits.end(), row.begin(), row.end());
    }
    const int n_rows = static_cast<int>(logits.size() / 29);
    output = make_tensor_ptr({1, n_rows, 29}, std::move(logits));
    return Tensor(*output);
  }

  static uint64_t next(const std::vector<uint64_t>& text) {
    return std::accumulate(text.begin(), text.end(), uint64_t{1}) % 29;
  }

  bool fails = false;
  std::vector<uint64_t> seen;
  std::vector<size_t> n_tokens;
  TensorPtr output;
};

/// Removes all but one token.
class Only final : public LogitProcessor {
 public:
  explicit Only(uint64_t token, size_t most) : token_(token), most_(most) {}
  Error process(Tensor logits) override {
    float* const values = logits.mutable_data_ptr<float>();
    const auto n = logits.size(logits.dim() - 1);
    float* const last = values + logits.numel() - n;
    for (int64_t i = 0; i < n; ++i) {
      if (static_cast<uint64_t>(i) != token_) last[i] = -std::numeric_limits<float>::infinity();
    }
    return Error::Ok;
  }
  Error accept(uint64_t token) override {
    accepted.push_back(token);
    return Error::Ok;
  }
  bool is_complete() const override { return accepted.size() >= most_; }
  std::vector<uint64_t> accepted;

 private:
  uint64_t token_;
  size_t most_;
};

}  // namespace executorch::extension::llm::runner_testing
