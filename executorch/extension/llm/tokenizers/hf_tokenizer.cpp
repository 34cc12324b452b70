#include <executorch/extension/llm/tokenizers/hf_tokenizer.h>

#include <executorch/extension/llm/tokenizers/added_tokens.h>
#include <executorch/extension/llm/tokenizers/known_patterns.h>
#include <executorch/extension/llm/tokenizers/normalizer.h>
#include <executorch/extension/llm/tokenizers/pre_tokenizer.h>
#include <executorch/extension/llm/tokenizers/token_decoder.h>
#include <executorch/extension/llm/tokenizers/utf8.h>
#include <executorch/extension/llm/tokenizers/word_models.h>

#include <algorithm>
#include <unordered_map>

namespace tokenizers {

struct HFTokenizer::Parts {
  AddedTokens raw;
  AddedTokens normalized;
  Normalizer::Ptr normalizer;
  PreTokenizer::Ptr pre_tokenizer;
  /// The normalized texts of added tokens that the normalizer changes; decoding gives these.
  std::unordered_map<uint64_t, std::string> changed;
  std::unique_ptr<WordModel> model;
  TokenDecoder::Ptr decoder;
  /// Whether the base class can tokenize the bytes: words of a known pattern, then byte pair
  /// encoding.
  bool byte_level = false;
  bool adds_space = false;
  /// Whether a step of the pre-tokenizer needs to know where the text starts.
  bool asks_for_front = false;
  /// Whether decoding a token depends on its being the last one, or more than one token from an end
  /// of the text.
  bool knows_ends = false;
  /// Whether the text of each token is the text of its bytes.
  bool decodes_bytes = false;
  std::vector<uint64_t> before;
  std::vector<uint64_t> behind;
  mutable WordCaches caches;

  Error read_added_tokens(const Json& json, HFTokenizer& owner,
                          std::vector<std::pair<std::string, bool>>& special);
  bool read_byte_level(const Json& json, HFTokenizer& owner);
  void read_post_processor(const Json& config, const HFTokenizer& owner, int depth);
  bool encode_part(const HFTokenizer& owner, std::string_view text, size_t front,
                   std::vector<uint64_t>& tokens) const;
};

HFTokenizer::HFTokenizer() = default;
HFTokenizer::~HFTokenizer() = default;

Error HFTokenizer::Parts::read_added_tokens(const Json& json, HFTokenizer& owner,
                                            std::vector<std::pair<std::string, bool>>& special) {
  for (const Json& entry : at(json, "added_tokens")) {
    const std::string text = string_at(entry, "content");
    const Json& id = at(entry, "id");
    if (text.empty()) continue;
    if (!id.is_number_unsigned()) {
      return owner.fail(Error::ParseFailure, "added token " + text + " has no number");
    }
    const auto token = id.get<uint64_t>();
    if (owner.vocabulary_.find(text) != token && !owner.vocabulary_.add_beside(text, token)) {
      return owner.fail(Error::ParseFailure, "added token " + text + ": its number is taken");
    }
    const bool is_special = bool_at(entry, "special", false);
    const AddedTokens::Token flags{
        static_cast<uint32_t>(token), bool_at(entry, "single_word", false),
        bool_at(entry, "lstrip", false), bool_at(entry, "rstrip", false)};
    if (bool_at(entry, "normalized", !is_special)) {
      const std::string normal = normalizer == nullptr ? text : normalizer->normalize(text);
      normalized.add(normal, flags);
      if (normal != text) changed[token] = normal;
    } else {
      raw.add(text, flags);
    }
    if (is_special) {
      special.emplace_back(text, true);
      if (token >= owner.special_.size()) owner.special_.resize(token + 1);
      owner.special_[token] = true;
    }
  }
  raw.finish();
  normalized.finish();
  return Error::Ok;
}

/// Reads a byte-level BPE whose pattern scan_words() knows. False for other tokenizers.
bool HFTokenizer::Parts::read_byte_level(const Json& json, HFTokenizer& owner) {
  const Json& model = at(json, "model");
  const Json* level = &at(json, "pre_tokenizer");
  std::string pattern = patterns::kGpt2;
  if (string_at(*level, "type") == "Sequence") {
    const Json& steps = at(*level, "pretokenizers");
    if (!steps.is_array() || steps.size() != 2 || string_at(steps[0], "type") != "Split" ||
        string_at(steps[0], "behavior") != "Isolated" || bool_at(steps[0], "invert", false) ||
        bool_at(steps[1], "use_regex", true) || bool_at(steps[1], "add_prefix_space", true)) {
      return false;
    }
    const TextPattern split = pattern_at(steps[0], "pattern");
    pattern = split.is_regex ? split.text : "";
    level = &steps[1];
  } else if (!bool_at(*level, "use_regex", true)) {
    return false;
  }
  const bool plain = string_at(*level, "type") == "ByteLevel" &&
                     string_at(model, "continuing_subword_prefix").empty() &&
                     string_at(model, "end_of_word_suffix").empty() &&
                     !bool_at(model, "byte_fallback", false) && at(model, "merges").is_array() &&
                     at(model, "vocab").is_object() && string_at(model, "unk_token").empty();
  if (!plain || !known_pattern(pattern, regex::Dialect::kOniguruma) ||
      owner.set_pattern(pattern) != Error::Ok) {
    return false;
  }
  ByteLevelBpe& bpe = owner.bpe_;
  bpe.merges = ByteLevelBpe::Merges::kPairs;
  bpe.whole_words = bool_at(model, "ignore_merges", false);
  std::string bytes;
  for (const auto& entry : at(model, "vocab").get_ref<const Json::object_t&>()) {
    if (byte_alphabet::decode(entry.first, bytes)) bpe.add(bytes, entry.second.get<uint32_t>());
  }
  uint32_t rank = 0;
  for (const Json& merge : at(model, "merges")) {
    std::string left;
    std::string right;
    read_merge(merge, left, right);
    const uint32_t token = owner.vocabulary_.find(left + right);
    bpe.pairs.insert(owner.vocabulary_.find(left), owner.vocabulary_.find(right), {rank++, token});
  }
  adds_space = bool_at(*level, "add_prefix_space", true);
  return true;
}

void HFTokenizer::Parts::read_post_processor(const Json& config, const HFTokenizer& owner,
                                             int depth) {
  const std::string type = string_at(config, "type");
  const auto named = [&](const Json& pair, std::vector<uint64_t>& to) {
    if (pair.is_array() && !pair.empty() && pair[0].is_string()) {
      const uint32_t token = owner.vocabulary_.find(pair[0].get_ref<const std::string&>());
      if (token != kNoToken) to.push_back(token);
    }
  };
  if (type == "Sequence" && depth < 20) {
    for (const Json& step : at(config, "processors")) read_post_processor(step, owner, depth + 1);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    named(at(config, "cls"), before);
    named(at(config, "sep"), behind);
  } else if (type == "TemplateProcessing") {
    bool after_sequence = false;
    for (const Json& item : at(config, "single")) {
      after_sequence |= at(item, "Sequence").is_object();
      const std::string id = string_at(at(item, "SpecialToken"), "id");
      const Json& special = at(at(config, "special_tokens"), id.c_str());
      for (const Json& token : at(special, "ids")) {
        if (token.is_number_unsigned()) {
          (after_sequence ? behind : before).push_back(token.get<uint64_t>());
        }
      }
    }
  }
}

namespace {

/// Whether a pre-tokenizer has a step that needs to know where the text starts. Its nesting was
/// checked when it was made.
bool asks_for_front(const Json& config) {
  if (string_at(config, "type") == "Metaspace") {
    return string_at(config, "prepend_scheme") == "first";
  }
  const Json& steps = at(config, "pretokenizers");
  return std::any_of(steps.begin(), steps.end(), asks_for_front);
}

/// Whether a decoder treats the ends of a text in another way, beyond removing one space in front.
bool knows_ends(const Json& config) {
  const std::string type = string_at(config, "type");
  const auto count = [&](const char* key) {
    return is_count(at(config, key)) ? at(config, key).get<uint64_t>() : 0;
  };
  const Json& steps = at(config, "decoders");
  return type == "BPEDecoder" || (type == "Strip" && (count("start") > 1 || count("stop") > 0)) ||
         std::any_of(steps.begin(), steps.end(), knows_ends);
}

}  // namespace

Error HFTokenizer::parse(std::string_view bytes) {
  parts_ = std::make_unique<Parts>();
  const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  const Json& model = at(json, "model");
  if (!model.is_object()) {
    return fail(Error::ParseFailure, "not JSON with a \"model\"");
  }
  std::string message;
  if (!read_vocabulary(model, vocabulary_, message)) return fail(Error::ParseFailure, message);
  parts_->model = make_word_model(model, vocabulary_, message);
  if (parts_->model == nullptr) return fail(Error::ParseFailure, message);
  const auto read = [&](const char* key, auto& part, const auto& make) {
    const Json& config = at(json, key);
    part = config.is_null() ? nullptr : make(config);
    return config.is_null() || part != nullptr;
  };
  if (!read("normalizer", parts_->normalizer,
            [&](const Json& c) { return make_normalizer(c, message); }) ||
      !read("pre_tokenizer", parts_->pre_tokenizer,
            [&](const Json& c) { return make_pre_tokenizer(c, message); }) ||
      !read("decoder", parts_->decoder, [&](const Json& c) { return make_decoder(c, message); })) {
    return fail(Error::ParseFailure, message);
  }
  std::vector<std::pair<std::string, bool>> special;
  TK_CHECK_OK_OR_RETURN_ERROR(parts_->read_added_tokens(json, *this, special));
  parts_->byte_level = parts_->read_byte_level(json, *this);
  parts_->asks_for_front = asks_for_front(at(json, "pre_tokenizer"));
  parts_->decodes_bytes = string_at(at(json, "decoder"), "type") == "ByteLevel";
  parts_->knows_ends = knows_ends(at(json, "decoder"));
  parts_->read_post_processor(at(json, "post_processor"), *this, 0);
  return Error::Ok;
}

bool HFTokenizer::Parts::encode_part(const HFTokenizer& owner, std::string_view text, size_t front,
                                     std::vector<uint64_t>& tokens) const {
  if (byte_level) {
    return adds_space && text[0] != ' ' ? owner.encode_text(" " + std::string(text), tokens)
                                        : owner.encode_text(text, tokens);
  }
  if (pre_tokenizer == nullptr) {
    model->encode(text, tokens);
    return true;
  }
  std::vector<std::string> pieces{std::string(text)};
  if (!pre_tokenizer->split(pieces, front)) return false;
  WordCaches::Lease lease(caches);
  for (const std::string& piece : pieces) {
    if (!piece.empty()) {
      (*lease).append(
          piece, piece.data() + piece.size(), tokens,
          [&](std::string_view word, std::vector<uint64_t>& out) { model->encode(word, out); });
    }
  }
  return true;
}

Result<std::vector<uint64_t>> HFTokenizer::encode(const std::string& input, int8_t bos,
                                                  int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  try {
    std::string replaced;
    const std::string_view text = utf8::valid(input, replaced);
    if (text.size() >= kNoToken / 4) return Error::EncodeFailure;
    std::vector<uint64_t> tokens;
    tokens.reserve(text.size() / 3 + 8);
    if (bos > 0 && !parts_->before.empty()) {
      tokens = parts_->before;
    } else if (bos > 0 && has_bos_) {
      tokens.assign(static_cast<size_t>(bos), bos_tok_);
    }
    std::vector<AddedTokens::Part> outer;
    std::vector<AddedTokens::Part> inner;
    parts_->raw.split(text, outer);
    for (const AddedTokens::Part& part : outer) {
      if (part.token != kNoToken) {
        tokens.push_back(part.token);
        continue;
      }
      const bool plain = parts_->normalizer == nullptr;
      const std::string normal =
          plain ? std::string() : parts_->normalizer->normalize(std::string(part.text));
      // The number of bytes that come from the text's first character.
      size_t front = 0;
      if (parts_->asks_for_front && part.text.data() == text.data()) {
        front = utf8::decode(text.data(), text.data() + text.size()).length;
        front = plain ? front : parts_->normalizer->front(std::string(part.text), front);
      }
      inner.clear();
      const std::string_view all = plain ? part.text : std::string_view(normal);
      parts_->normalized.split(all, inner);
      for (const AddedTokens::Part& piece : inner) {
        const auto at = static_cast<size_t>(piece.text.data() - all.data());
        if (piece.token != kNoToken) {
          tokens.push_back(piece.token);
        } else if (!parts_->encode_part(*this, piece.text, front - std::min(at, front), tokens)) {
          return Error::EncodeFailure;
        }
      }
    }
    if (eos > 0 && !parts_->behind.empty()) {
      tokens.insert(tokens.end(), parts_->behind.begin(), parts_->behind.end());
    } else if (eos > 0 && has_eos_) {
      tokens.insert(tokens.end(), static_cast<size_t>(eos), eos_tok_);
    }
    return tokens;
  } catch (const std::exception&) {
    return Error::EncodeFailure;
  }
}

Result<std::string> HFTokenizer::id_to_piece(uint64_t token) const {
  return BPETokenizerBase::id_to_piece(token);
}

Result<std::string> HFTokenizer::decode_bytes(const std::vector<uint64_t>& tokens,
                                              bool skip_special_tokens) const {
  if (!initialized_) return Error::Uninitialized;
  try {
    std::vector<std::string> pieces;
    for (const uint64_t token : tokens) {
      if (!vocabulary_.has(token)) return Error::OutOfRange;
      if (!skip_special_tokens || !is_special(token)) {
        const auto changed = parts_->changed.find(token);
        pieces.emplace_back(changed != parts_->changed.end() ? std::string_view(changed->second)
                                                             : vocabulary_.piece(token));
      }
    }
    if (parts_->decoder != nullptr && !pieces.empty()) pieces = parts_->decoder->decode(pieces);
    std::string text;
    for (size_t i = 0; i < pieces.size(); ++i) {
      text += parts_->decoder == nullptr && i > 0 ? " " : "";
      text += pieces[i];
    }
    return text;
  } catch (const std::exception&) {
    return Error::DecodeFailure;
  }
}

Result<std::string> HFTokenizer::decode(const std::vector<uint64_t>& tokens,
                                        bool skip_special_tokens) const {
  return utf8::valid(TK_UNWRAP(decode_bytes(tokens, skip_special_tokens)));
}

Result<std::string> HFTokenizer::decode(uint64_t prev_token, uint64_t token,
                                        bool skip_special_tokens) const {
  if (parts_ != nullptr && parts_->decodes_bytes) return decode_bytes({token}, skip_special_tokens);
  if (!vocabulary_.has(prev_token) || is_special(prev_token)) {
    return decode_bytes({token}, skip_special_tokens);
  }
  const std::string before = TK_UNWRAP(decode_bytes({prev_token}, skip_special_tokens));
  const std::string both = TK_UNWRAP(decode_bytes({prev_token, token}, skip_special_tokens));
  return both.compare(0, before.size(), before) == 0 ? both.substr(before.size())
                                                     : decode_bytes({token}, skip_special_tokens);
}

bool HFTokenizer::decodes_by_pairs() const {
  return parts_ == nullptr || !parts_->knows_ends;
}

Result<std::string> HFTokenizer::token_bytes(uint64_t token) const {
  return is_special(token) ? id_to_piece(token) : decode(token, token);
}

}  // namespace tokenizers
