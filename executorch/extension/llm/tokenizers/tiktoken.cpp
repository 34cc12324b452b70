#include <executorch/extension/llm/tokenizers/tiktoken.h>

#include <executorch/extension/llm/tokenizers/base64.h>
#include <executorch/extension/llm/tokenizers/known_patterns.h>

#include <charconv>

namespace tokenizers {
namespace {

// Ranks of the published vocabularies, by which they are known.
constexpr size_t kGpt2Ranks = 50256;
constexpr size_t kCl100kRanks = 100256;
constexpr size_t kO200kRanks = 199998;

std::vector<std::string> llama3_tokens() {
  std::vector<std::string> tokens{"<|begin_of_text|>",
                                  "<|end_of_text|>",
                                  "<|reserved_special_token_0|>",
                                  "<|reserved_special_token_1|>",
                                  "<|finetune_right_pad_id|>",
                                  "<|step_id|>",
                                  "<|start_header_id|>",
                                  "<|end_header_id|>",
                                  "<|eom_id|>",
                                  "<|eot_id|>",
                                  "<|python_tag|>"};
  for (int i = 2; tokens.size() < kSpecialTokensSize; ++i) {
    tokens.push_back("<|reserved_special_token_" + std::to_string(i) + "|>");
  }
  return tokens;
}

}  // namespace

Error Tiktoken::parse(std::string_view bytes) {
  size_t line = 0;
  size_t largest = 0;
  while (!bytes.empty()) {
    ++line;
    std::string_view text = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), text.size() + 1));
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty()) continue;
    const std::string where = "line " + std::to_string(line) + ": ";
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return fail(Error::ParseFailure, where + "no space between base64 and rank");
    }
    const Result<std::string> token = base64::decode(text.substr(0, space));
    if (!token.ok()) return fail(Error::Base64DecodeFailure, where + "not base64");
    uint64_t rank = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + space + 1, end, rank);
    if (error != std::errc() || stop != end) {
      return fail(Error::EncodeFailure, where + "the rank is not a number");
    }
    if (!add_token(*token, rank)) {
      return fail(Error::ParseFailure, where + "token or rank for the second time, or too large");
    }
    largest = std::max<size_t>(largest, rank);
  }
  if (vocabulary_.size() == 0) return fail(Error::ParseFailure, "no tokens");
  return add_special_tokens(largest);
}

Error Tiktoken::add_special_tokens(size_t largest) {
  std::string pattern = pattern_;
  std::vector<std::pair<std::string, uint64_t>> special;
  const size_t ranks = vocabulary_.size();
  const bool known = ranks == largest + 1 &&
                     (ranks == kGpt2Ranks || ranks == kCl100kRanks || ranks == kO200kRanks);
  if (pattern.empty()) {
    pattern = !known || given_        ? patterns::kLlama3
              : ranks == kGpt2Ranks   ? patterns::kGpt2
              : ranks == kCl100kRanks ? patterns::kCl100k
                                      : patterns::kO200k;
  }
  if (given_ || !known) {
    uint64_t token = largest + 1;
    for (const std::string& text : given_ ? special_tokens_ : llama3_tokens()) {
      special.emplace_back(text, token++);
    }
  } else if (ranks == kGpt2Ranks) {
    special = {{"<|endoftext|>", 50256}};
  } else if (ranks == kCl100kRanks) {
    special = {{"<|endoftext|>", 100257},
               {"<|fim_prefix|>", 100258},
               {"<|fim_middle|>", 100259},
               {"<|fim_suffix|>", 100260},
               {"<|endofprompt|>", 100276}};
  } else {
    special = {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
  }
  for (const auto& [text, token] : special) {
    if (!add_special(text, token)) {
      return fail(Error::ParseFailure, "special token " + text + " is empty or there already");
    }
  }
  if (given_) {
    if (bos_index_ < special.size()) {
      bos_tok_ = special[bos_index_].second;
      has_bos_ = true;
    }
    if (eos_index_ < special.size()) {
      eos_tok_ = special[eos_index_].second;
      has_eos_ = true;
    }
  }
  return set_pattern(pattern);
}

}  // namespace tokenizers
