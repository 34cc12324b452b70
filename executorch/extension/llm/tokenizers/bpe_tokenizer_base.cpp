#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace tokenizers {

Result<std::string> read_file(const std::string& path, std::string& message) {
  constexpr size_t kMost = size_t{1} << 30;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    message = path + ": " + std::strerror(errno);
    return Error::LoadFailure;
  }
  std::string bytes;
  char buffer[65536];
  size_t count;
  while (bytes.size() <= kMost && (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
    bytes.append(buffer, count);
  }
  const bool failed = std::ferror(file) != 0;
  if (failed || bytes.size() > kMost) {
    message = path + ": " + (failed ? std::strerror(errno) : "larger than 1 GiB");
  }
  std::fclose(file);
  if (failed || bytes.size() > kMost) return Error::LoadFailure;
  return bytes;
}

namespace detail {

Error BPETokenizerBase::load(const std::string& tokenizer_path) {
  std::string message;
  Result<std::string> bytes = read_file(tokenizer_path, message);
  if (!bytes.ok()) return fail(bytes.error(), message);
  const Error error = load_from_bytes(*bytes);
  if (error != Error::Ok) error_message_ = tokenizer_path + ": " + error_message_;
  return error;
}

Error BPETokenizerBase::load_from_bytes(std::string_view bytes) {
  try {
    clear();
    const Error error = parse(bytes);
    if (error != Error::Ok) {
      initialized_ = false;
      return error;
    }
    finish();
    initialized_ = true;
    error_message_.clear();
    return Error::Ok;
  } catch (const std::exception& e) {
    return fail(Error::ParseFailure, e.what());
  }
}

void BPETokenizerBase::clear() {
  initialized_ = false;
  vocabulary_ = {};
  special_.clear();
  special_entries_.clear();
  special_trie_ = {};
  bpe_ = {};
  has_bos_ = has_eos_ = false;
  bos_tok_ = eos_tok_ = 0;
  end_tokens_.clear();
  scanned_.reset();
  caches_.clear();
}

Error BPETokenizerBase::set_pattern(const std::string& pattern) {
  scanned_ = known_pattern(pattern);
  if (!scanned_ && regex_.compile(pattern) != Error::Ok) {
    return fail(Error::RegexFailure, "pattern: " + regex_.message());
  }
  return Error::Ok;
}

bool BPETokenizerBase::add_token(std::string_view bytes, uint64_t token) {
  return vocabulary_.add(bytes, token) && bpe_.add(bytes, static_cast<uint32_t>(token));
}

bool BPETokenizerBase::add_special(std::string_view text, uint64_t token) {
  if (text.empty() || (vocabulary_.find(text) != token && !vocabulary_.add(text, token))) {
    return false;
  }
  if (token >= special_.size()) special_.resize(token + 1);
  special_[token] = true;
  special_entries_.emplace_back(text, static_cast<uint32_t>(token));
  return true;
}

void BPETokenizerBase::finish() {
  vocab_size_ = static_cast<int32_t>(vocabulary_.limit());
  special_trie_.build(special_entries_);
  const auto find = [&](std::initializer_list<const char*> names, uint64_t& token, bool& known) {
    for (const char* name : names) {
      const uint32_t found = vocabulary_.find(name);
      if (!known && found != kNoToken && is_special(found)) {
        token = found;
        known = true;
      }
    }
  };
  find({"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>", "[CLS]", "<|endoftext|>"}, bos_tok_,
       has_bos_);
  find({"<|end_of_text|>", "</s>", "<eos>", "<|endoftext|>", "[SEP]", "<|im_end|>", "<|eot_id|>"},
       eos_tok_, has_eos_);
  if (has_eos_) end_tokens_.push_back(eos_tok_);
  for (const char* name : {"<|eot_id|>", "<|im_end|>", "<|eom_id|>", "<end_of_turn>", "<|end|>",
                           "<|return|>", "<|endoftext|>", "<|end_of_text|>"}) {
    const uint32_t found = vocabulary_.find(name);
    if (found != kNoToken && is_special(found) && found != eos_tok_) end_tokens_.push_back(found);
  }
}

bool BPETokenizerBase::encode_text(std::string_view text, std::vector<uint64_t>& tokens) const {
  WordCaches::Lease lease(caches_);
  WordCache& cache = *lease;
  const char* const limit = text.data() + text.size();
  const auto encode = [&](std::string_view word, std::vector<uint64_t>& out) {
    bpe_.encode(word, out);
  };
  if (scanned_) {
    scan_words(*scanned_, text,
               [&](std::string_view word) { cache.append(word, limit, tokens, encode); });
    return true;
  }
  std::vector<Match> matches;
  if (!regex_.find_all(text, matches)) return false;
  for (const Match& match : matches) {
    cache.append(text.substr(match.start, match.end - match.start), limit, tokens, encode);
  }
  return true;
}

Result<std::vector<uint64_t>> BPETokenizerBase::encode(const std::string& input, int8_t bos,
                                                       int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  try {
    std::string replaced;
    const std::string_view text = utf8::valid(input, replaced);
    if (text.size() >= kNoToken) return Error::EncodeFailure;
    std::vector<uint64_t> tokens;
    tokens.reserve(text.size() / 3 + 8);
    tokens.insert(tokens.end(), has_bos_ && bos > 0 ? static_cast<size_t>(bos) : 0, bos_tok_);
    size_t start = 0;
    for (size_t at = 0; at < text.size() && !special_trie_.empty(); ++at) {
      size_t length = 0;
      const uint32_t token = special_trie_.child(0, text[at]) == 0
                                 ? kNoToken
                                 : special_trie_.longest(text.substr(at), length);
      if (token == kNoToken) continue;
      if (at > start && !encode_text(text.substr(start, at - start), tokens)) {
        return Error::EncodeFailure;
      }
      tokens.push_back(token);
      start = at + length;
      at = start - 1;
    }
    if (start < text.size() && !encode_text(text.substr(start), tokens)) {
      return Error::EncodeFailure;
    }
    tokens.insert(tokens.end(), has_eos_ && eos > 0 ? static_cast<size_t>(eos) : 0, eos_tok_);
    return tokens;
  } catch (const std::bad_alloc&) {
    return Error::EncodeFailure;
  }
}

Result<std::string> BPETokenizerBase::id_to_piece(uint64_t token) const {
  if (!initialized_) return Error::Uninitialized;
  if (!vocabulary_.has(token)) return Error::OutOfRange;
  return std::string(vocabulary_.piece(token));
}

Result<uint64_t> BPETokenizerBase::piece_to_id(const std::string& text) const {
  if (!initialized_) return Error::Uninitialized;
  const uint32_t token = vocabulary_.find(text);
  if (token == kNoToken) return Error::OutOfRange;
  return static_cast<uint64_t>(token);
}

Result<std::string> BPETokenizerBase::decode(uint64_t, uint64_t token,
                                             bool skip_special_tokens) const {
  if (skip_special_tokens && is_special(token)) return std::string();
  if (initialized_ && !vocabulary_.has(token)) return Error::DecodeFailure;
  return id_to_piece(token);
}

Result<std::string> BPETokenizerBase::token_bytes(uint64_t token) const {
  return id_to_piece(token);
}

bool BPETokenizerBase::is_special(uint64_t token) const {
  return token < special_.size() && special_[token];
}

void BPETokenizerBase::set_bos_tok(uint64_t token) {
  bos_tok_ = token;
  has_bos_ = true;
}

void BPETokenizerBase::set_eos_tok(uint64_t token) {
  eos_tok_ = token;
  has_eos_ = true;
  if (std::find(end_tokens_.begin(), end_tokens_.end(), token) == end_tokens_.end()) {
    end_tokens_.insert(end_tokens_.begin(), token);
  }
}

std::vector<uint64_t> BPETokenizerBase::end_tokens() const {
  return end_tokens_;
}

}  // namespace detail
}  // namespace tokenizers
