#pragma once

#include <executorch/extension/llm/tokenizers/byte_pairs.h>
#include <executorch/extension/llm/tokenizers/charsmap.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/llm/tokenizers/trie.h>

#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// A SentencePiece model: byte pair encoding, unigram, words or characters.
class SPTokenizer : public Tokenizer {
 public:
  explicit SPTokenizer();
  ~SPTokenizer() override;

  Error load(const std::string& tokenizer_path) override;
  Error load_from_bytes(std::string_view bytes) override;
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<uint64_t> piece_to_id(const std::string& text) const override;
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos,
                                       int8_t eos) const override;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;
  Result<std::string> decode_bytes(const std::vector<uint64_t>& tokens,
                                   bool skip_special_tokens = false) const override;
  Result<std::string> token_bytes(uint64_t token) const override;
  bool is_special(uint64_t token) const override;
  std::vector<uint64_t> end_tokens() const override;

 private:
  enum class Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  enum class Model { kUnigram = 1, kBpe, kWord, kChar };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };

  Error parse(std::string_view bytes);
  Error read_piece(std::string_view message);
  Error read_trainer(std::string_view message);
  Error read_normalizer(std::string_view message);
  /// What encoding looks up, made of the pieces.
  Error index();
  /// Pieces by text and by type; those that may stand in a text, and those of the user among them.
  Error index_pieces(std::vector<std::pair<std::string, uint32_t>>& entries,
                     std::vector<std::pair<std::string, uint32_t>>& user);
  /// The token of either name, or 0 and false.
  bool find_reserved(std::string_view name, std::string_view other, uint64_t& token) const;

  std::string normalize(std::string_view text) const;
  size_t normalize_front(std::string_view text, std::string_view& replacement) const;
  void encode_unigram(std::string_view text, std::vector<uint64_t>& tokens) const;
  void encode_bpe(std::string_view text, std::vector<uint64_t>& tokens) const;
  void encode_bpe_part(std::string_view text, std::vector<uint64_t>& tokens) const;
  void add_unused(std::string_view text, uint32_t token, std::vector<uint64_t>& tokens,
                  int depth) const;
  void encode_units(std::string_view text, std::vector<uint64_t>& tokens) const;
  void append_text(const Piece& piece, bool skip_special_tokens, bool& at_start,
                   std::string& text) const;
  /// A piece's token, or where it has none its bytes, or the unknown token.
  void add(std::string_view piece, uint32_t token, std::vector<uint64_t>& tokens) const;

  std::vector<Piece> pieces_;
  BytesMap normal_;
  BytesMap reserved_;
  Trie trie_;
  Trie user_defined_;
  Charsmap charsmap_;
  std::vector<uint32_t> rank_;
  uint32_t bytes_[256];
  Model model_ = Model::kUnigram;
  bool byte_fallback_ = false;
  bool suffix_space_ = false;
  bool dummy_prefix_ = true;
  bool remove_spaces_ = true;
  bool escape_spaces_ = true;
  // No piece has a space behind other text, so that no merge reaches across the start of a space.
  bool cuts_before_space_ = false;
  bool has_bos_ = false;
  bool has_eos_ = false;
  uint32_t unknown_ = 0;
  std::string unknown_text_;
  float lowest_ = 0;
  float highest_ = 0;
  mutable WordCaches caches_;
};

}  // namespace tokenizers
