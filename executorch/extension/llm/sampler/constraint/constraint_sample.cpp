// Makes texts at random under constraints, and measures masks.
//
//   constraint_sample VOCABULARY    tokens in hexadecimal, one in a line
//
// Reads jobs from stdin, a JSON object in each line, and answers each with one:
//   type, text      the constraint
//   n_texts         texts to make, of at most max_tokens tokens chosen by `seed`; after half of
//                   them, tokens that lead to the end are preferred
//   documents       texts of which every token must be allowed, tokenized greedily and byte by byte
// Answer: error, or texts, complete, refused (documents), microseconds of masks (mean, most,
// first).

#include <executorch/extension/llm/sampler/constraint/constraint.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <random>

using executorch::extension::llm::ConstrainedText;
using executorch::extension::llm::Constraint;
using executorch::extension::llm::Vocabulary;
using executorch::runtime::Error;
using Json = nlohmann::json;

namespace {

struct Made {
  std::string text;
  bool complete = false;
};

struct Timing {
  std::vector<double> microseconds;
  double total = 0, most = 0;
  void add(double value) {
    microseconds.push_back(value);
    total += value;
    most = std::max(most, value);
  }
};

std::vector<uint32_t> allowed_tokens(const std::vector<uint64_t>& mask) {
  std::vector<uint32_t> tokens;
  for (size_t i = 0; i < mask.size() * 64; ++i) {
    if (mask[i / 64] >> i % 64 & 1) tokens.push_back(static_cast<uint32_t>(i));
  }
  return tokens;
}

Made make(const std::shared_ptr<Constraint>& constraint, const Vocabulary& vocabulary,
          uint32_t end_token, size_t max_tokens, std::mt19937& random, Timing& timing) {
  ConstrainedText text(constraint);
  Made made;
  std::vector<uint64_t> mask;
  for (size_t i = 0; i < max_tokens; ++i) {
    if (text.is_complete()) break;
    const auto start = std::chrono::steady_clock::now();
    const Error error = text.allowed(mask);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    timing.add(took.count());
    if (error != Error::Ok) throw std::runtime_error("no mask after: " + made.text);
    const auto tokens = allowed_tokens(mask);
    const bool may_end = std::binary_search(tokens.begin(), tokens.end(), end_token);
    if (may_end != text.may_end()) throw std::runtime_error("the end of a text is not allowed");
    if (may_end && random() % 8 == 0) break;
    uint32_t token = tokens[random() % tokens.size()];
    // A token that closes something, where there is one; else random texts never end.
    for (int k = 0; i > max_tokens / 2 && k < 64; ++k) {
      const uint32_t other = tokens[random() % tokens.size()];
      const std::string& bytes = vocabulary.bytes(other);
      if (bytes.size() == 1 && std::string("\"]}").find(bytes) != std::string::npos) token = other;
    }
    if (token == end_token) break;
    if (text.accept(token) != Error::Ok) throw std::runtime_error("an allowed token is refused");
    // Taken back and appended again, nothing changes.
    if (random() % 4 == 0 && (text.rollback(1) != Error::Ok || text.accept(token) != Error::Ok)) {
      throw std::runtime_error("a token that was taken back is refused");
    }
    made.text += vocabulary.bytes(token);
  }
  made.complete = text.may_end();
  return made;
}

/// Whether each token of `document` is allowed: the longest one, if `greedy`, else one byte.
bool allows(const std::shared_ptr<Constraint>& constraint, const Vocabulary& vocabulary,
            const std::unordered_map<std::string, uint32_t>& ids, const std::string& document,
            bool greedy) {
  ConstrainedText text(constraint);
  std::vector<uint64_t> mask;
  for (size_t at = 0; at < document.size();) {
    size_t length = greedy ? std::min<size_t>(document.size() - at, 64) : 1;
    while (length > 1 && ids.count(document.substr(at, length)) == 0) --length;
    const uint32_t token = ids.at(document.substr(at, length));
    if (text.allowed(mask) != Error::Ok || !(mask[token / 64] >> token % 64 & 1)) return false;
    if (text.accept(token) != Error::Ok) return false;
    at += vocabulary.bytes(token).size();
  }
  return text.may_end();
}

std::shared_ptr<const Vocabulary> read_vocabulary(const char* path) {
  std::vector<std::string> tokens;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    tokens.emplace_back();
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      tokens.back() += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
  }
  return std::make_shared<const Vocabulary>(std::move(tokens));
}

Json answer(const Json& job, const std::shared_ptr<const Vocabulary>& vocabulary,
            const std::unordered_map<std::string, uint32_t>& ids, uint32_t end_token) {
  std::string cause;
  const auto constraint =
      Constraint::compile(job["type"], job["text"], vocabulary, {end_token}, cause);
  if (constraint == nullptr) return {{"error", cause}};
  Json texts = Json::array(), complete = Json::array(), refused = Json::array();
  std::mt19937 random(job.value("seed", 0u));
  Timing timing;
  for (size_t i = 0; i < job.value("n_texts", size_t{0}); ++i) {
    const Made made = make(constraint, *vocabulary, end_token, job.value("max_tokens", size_t{100}),
                           random, timing);
    texts.push_back(made.text);
    complete.push_back(made.complete);
  }
  for (const std::string document : job.value("documents", Json::array())) {
    for (const bool greedy : {true, false}) {
      if (!allows(constraint, *vocabulary, ids, document, greedy)) refused.push_back(document);
    }
  }
  std::sort(timing.microseconds.begin(), timing.microseconds.end());
  const size_t n = timing.microseconds.size();
  return {{"texts", texts},
          {"complete", complete},
          {"refused", refused},
          {"n_masks", n},
          {"mean_microseconds", n == 0 ? 0 : timing.total / static_cast<double>(n)},
          {"median_microseconds", n == 0 ? 0 : timing.microseconds[n / 2]},
          {"most_microseconds", timing.most}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto vocabulary = read_vocabulary(argv[1]);
  std::unordered_map<std::string, uint32_t> ids;
  uint32_t end_token = 0;  // the one without bytes
  for (uint32_t i = 0; i < vocabulary->size(); ++i) {
    if (vocabulary->bytes(i).empty()) end_token = i;
    ids.emplace(vocabulary->bytes(i), i);
  }
  for (std::string line; std::getline(std::cin, line);) {
    Json result;
    try {
      result = answer(Json::parse(line), vocabulary, ids, end_token);
    } catch (const std::exception& error) {
      result = {{"failure", error.what()}};
    }
    std::cout << result.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
}
