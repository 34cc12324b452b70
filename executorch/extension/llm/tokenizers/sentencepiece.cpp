#include <executorch/extension/llm/tokenizers/sentencepiece.h>

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>
#include <executorch/extension/llm/tokenizers/protobuf.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>

namespace tokenizers {
namespace {

constexpr std::string_view kSpace = "\u2581";

// Whether spaces stand at most before the rest of a piece.
bool begins_word(std::string_view piece) {
  while (piece.substr(0, kSpace.size()) == kSpace) piece.remove_prefix(kSpace.size());
  return piece.find(kSpace) == std::string_view::npos;
}

}  // namespace

SPTokenizer::SPTokenizer() = default;
SPTokenizer::~SPTokenizer() = default;

Error SPTokenizer::load(const std::string& tokenizer_path) {
  std::string message;
  Result<std::string> bytes = read_file(tokenizer_path, message);
  return bytes.ok() ? load_from_bytes(*bytes) : fail(bytes.error(), message);
}

Error SPTokenizer::load_from_bytes(std::string_view bytes) {
  try {
    const Error error = parse(bytes);
    initialized_ = error == Error::Ok;
    if (initialized_) error_message_.clear();
    return error;
  } catch (const std::exception& e) {
    return fail(Error::ParseFailure, e.what());
  }
}

// Fields of sentencepiece_model.proto: ModelProto{1 pieces, 2 trainer_spec, 3 normalizer_spec},
// SentencePiece{1 piece, 2 score, 3 type}, TrainerSpec{3 model_type, 24 treat_whitespace_as_suffix,
// 35 byte_fallback, 44 unk_surface, 45 unk_piece, 46 bos_piece, 47 eos_piece},
// NormalizerSpec{2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
// 5 escape_whitespaces}.
Error SPTokenizer::parse(std::string_view bytes) {
  pieces_.clear();
  unknown_text_ = " \u2047 ";
  model_ = Model::kUnigram;
  byte_fallback_ = suffix_space_ = has_bos_ = has_eos_ = false;
  dummy_prefix_ = remove_spaces_ = escape_spaces_ = true;
  charsmap_ = {};
  ProtobufReader reader(bytes);
  while (reader.next()) {
    Error error = Error::Ok;
    if (reader.wire == 2 && reader.field == 1) {
      error = read_piece(reader.bytes);
    } else if (reader.wire == 2 && reader.field == 2) {
      error = read_trainer(reader.bytes);
    } else if (reader.wire == 2 && reader.field == 3) {
      error = read_normalizer(reader.bytes);
    }
    if (error != Error::Ok) return error;
  }
  if (reader.damaged() || pieces_.empty()) {
    return fail(Error::ParseFailure, "not a SentencePiece model: damaged protobuf, or no pieces");
  }
  return index();
}

Error SPTokenizer::read_piece(std::string_view message) {
  Piece piece;
  ProtobufReader reader(message);
  uint64_t type = 1;
  while (reader.next()) {
    if (reader.field == 1 && reader.wire == 2) {
      piece.text = reader.bytes;
    } else if (reader.field == 2 && reader.wire == 5) {
      piece.score = reader.as_float();
    } else if (reader.field == 3 && reader.wire == 0) {
      type = reader.value;
    }
  }
  if (reader.damaged() || piece.text.empty() || !std::isfinite(piece.score) || type < 1 ||
      type > 6) {
    return fail(Error::ParseFailure,
                "piece " + std::to_string(pieces_.size()) +
                    " is damaged, empty, of unknown type, or its score is no number");
  }
  piece.type = static_cast<Type>(type);
  pieces_.push_back(std::move(piece));
  return Error::Ok;
}

Error SPTokenizer::read_trainer(std::string_view message) {
  ProtobufReader reader(message);
  uint64_t model = 1;
  while (reader.next()) {
    if (reader.field == 3 && reader.wire == 0) {
      model = reader.value;
    } else if (reader.field == 24 && reader.wire == 0) {
      suffix_space_ = reader.value != 0;
    } else if (reader.field == 35 && reader.wire == 0) {
      byte_fallback_ = reader.value != 0;
    } else if (reader.field == 44 && reader.wire == 2) {
      unknown_text_ = reader.bytes;
    }
  }
  if (reader.damaged() || model < 1 || model > 4) {
    return fail(Error::ParseFailure, "trainer_spec is damaged or of an unknown model type");
  }
  model_ = static_cast<Model>(model);
  return Error::Ok;
}

Error SPTokenizer::read_normalizer(std::string_view message) {
  ProtobufReader reader(message);
  std::string_view charsmap;
  while (reader.next()) {
    if (reader.field == 2 && reader.wire == 2) {
      charsmap = reader.bytes;
    } else if (reader.field == 3 && reader.wire == 0) {
      dummy_prefix_ = reader.value != 0;
    } else if (reader.field == 4 && reader.wire == 0) {
      remove_spaces_ = reader.value != 0;
    } else if (reader.field == 5 && reader.wire == 0) {
      escape_spaces_ = reader.value != 0;
    }
  }
  if (reader.damaged() || !charsmap_.parse(charsmap)) {
    return fail(Error::ParseFailure, "normalizer_spec or its table of replacements is damaged");
  }
  return Error::Ok;
}

Error SPTokenizer::index() {
  std::vector<std::pair<std::string, uint32_t>> entries;
  std::vector<std::pair<std::string, uint32_t>> user;
  if (const Error error = index_pieces(entries, user); error != Error::Ok) return error;
  cuts_before_space_ = normal_.find(kSpace) != kNoToken && user.empty() &&
                       std::all_of(entries.begin(), entries.end(),
                                   [](const auto& e) { return begins_word(e.first); });
  trie_.build(std::move(entries));
  user_defined_.build(std::move(user));
  // Byte pairs merge in order of scores, equal ones from left to right.
  std::vector<float> scores;
  for (const Piece& piece : pieces_) scores.push_back(piece.score);
  rank_ = ranks_of(scores);
  vocab_size_ = static_cast<int32_t>(pieces_.size());
  has_bos_ = find_reserved("<s>", "<bos>", bos_tok_);
  has_eos_ = find_reserved("</s>", "<eos>", eos_tok_);
  return Error::Ok;
}

Error SPTokenizer::index_pieces(std::vector<std::pair<std::string, uint32_t>>& entries,
                                std::vector<std::pair<std::string, uint32_t>>& user) {
  normal_ = {};
  reserved_ = {};
  caches_.clear();
  std::fill(std::begin(bytes_), std::end(bytes_), kNoToken);
  lowest_ = FLT_MAX;
  highest_ = FLT_MIN;
  bool has_unknown = false;
  for (uint32_t token = 0; token < pieces_.size(); ++token) {
    const Piece& piece = pieces_[token];
    const bool in_text = piece.type == Type::kNormal || piece.type == Type::kUserDefined ||
                         piece.type == Type::kUnused;
    if (!(in_text ? normal_ : reserved_).insert(piece.text, token)) {
      return fail(Error::ParseFailure, "piece " + piece.text + " comes twice");
    }
    if (in_text) entries.emplace_back(piece.text, token);
    if (piece.type == Type::kUserDefined) {
      user.emplace_back(piece.text, token);
    } else if (piece.type == Type::kNormal) {
      lowest_ = std::min(lowest_, piece.score);
      highest_ = std::max(highest_, piece.score);
    } else if (piece.type == Type::kUnknown) {
      unknown_ = token;
      has_unknown = true;
    } else if (piece.type == Type::kByte) {
      unsigned value = 0;
      if (std::sscanf(piece.text.c_str(), "<0x%2X>", &value) != 1 || value > 255) {
        return fail(Error::ParseFailure, "byte piece " + piece.text + " is not <0xNN>");
      }
      bytes_[value] = token;
    }
  }
  if (!has_unknown) return fail(Error::ParseFailure, "no piece is the unknown one");
  if (byte_fallback_ && std::count(std::begin(bytes_), std::end(bytes_), kNoToken) != 0) {
    return fail(Error::ParseFailure, "byte_fallback without all byte pieces");
  }
  return Error::Ok;
}

bool SPTokenizer::find_reserved(std::string_view name, std::string_view other,
                                uint64_t& token) const {
  const uint32_t first = reserved_.find(name);
  const uint32_t found = first != kNoToken ? first : reserved_.find(other);
  token = found != kNoToken ? found : 0;
  return found != kNoToken;
}

Result<std::string> SPTokenizer::id_to_piece(uint64_t token) const {
  if (!initialized_) return Error::Uninitialized;
  if (token >= pieces_.size()) return Error::OutOfRange;
  return pieces_[token].text;
}

Result<uint64_t> SPTokenizer::piece_to_id(const std::string& text) const {
  if (!initialized_) return Error::Uninitialized;
  const uint32_t reserved = reserved_.find(text);
  const uint32_t token = reserved != kNoToken ? reserved : normal_.find(text);
  if (token == kNoToken) return Error::OutOfRange;
  return static_cast<uint64_t>(token);
}

bool SPTokenizer::is_special(uint64_t token) const {
  return token < pieces_.size() &&
         (pieces_[token].type == Type::kControl || pieces_[token].type == Type::kUnknown);
}

std::vector<uint64_t> SPTokenizer::end_tokens() const {
  return has_eos_ ? std::vector<uint64_t>{eos_tok_} : std::vector<uint64_t>();
}

/// Appends what a piece spells. `at_start`: nothing stands in front of it, and it loses a space.
void SPTokenizer::append_text(const Piece& piece, bool skip_special_tokens, bool& at_start,
                              std::string& text) const {
  if (piece.type == Type::kControl) return;
  if (piece.type == Type::kUnknown) {
    text += skip_special_tokens ? "" : unknown_text_;
  } else if (piece.type == Type::kByte) {
    unsigned value = 0;
    std::sscanf(piece.text.c_str(), "<0x%2X>", &value);
    text += static_cast<char>(value);
  } else {
    std::string_view rest = piece.text;
    bool has_space = false;
    if (at_start && (dummy_prefix_ || remove_spaces_) && rest.substr(0, 3) == kSpace) {
      rest.remove_prefix(3);
      has_space = !remove_spaces_;
    }
    at_start &= !has_space;
    for (size_t i = 0; i < rest.size();) {
      const bool space = rest.substr(i, 3) == kSpace;
      text += space ? ' ' : rest[i];
      i += space ? 3 : 1;
    }
  }
  at_start &= text.empty();
}

Result<std::string> SPTokenizer::decode_bytes(const std::vector<uint64_t>& tokens,
                                              bool skip_special_tokens) const {
  if (!initialized_) return Error::Uninitialized;
  std::string text;
  bool at_start = true;
  for (const uint64_t token : tokens) {
    if (token >= pieces_.size()) return Error::OutOfRange;
    append_text(pieces_[token], skip_special_tokens, at_start, text);
  }
  return text;
}

Result<std::string> SPTokenizer::decode(uint64_t prev_token, uint64_t token,
                                        bool skip_special_tokens) const {
  if (!initialized_) return Error::Uninitialized;
  if (prev_token >= pieces_.size() || is_special(prev_token)) {
    return decode_bytes({token}, skip_special_tokens);
  }
  const std::string before = TK_UNWRAP(decode_bytes({prev_token}, skip_special_tokens));
  const std::string both = TK_UNWRAP(decode_bytes({prev_token, token}, skip_special_tokens));
  return both.substr(std::min(before.size(), both.size()));
}

Result<std::string> SPTokenizer::token_bytes(uint64_t token) const {
  if (is_special(token)) return id_to_piece(token);
  if (!initialized_) return Error::Uninitialized;
  if (token >= pieces_.size()) return Error::OutOfRange;
  std::string text;
  bool at_start = false;
  append_text(pieces_[token], false, at_start, text);
  return text;
}

}  // namespace tokenizers
