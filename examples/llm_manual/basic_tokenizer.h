#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// Text to token ids and back, over the vocab.json of a byte-level BPE model such as GPT-2.
///
/// The keys of vocab.json spell bytes in an alphabet of printable characters: printable Latin-1
/// characters stand for their own byte, the other 68 bytes are the characters from U+0100 on
/// (so U+0120 is a space). Each prompt is cut into words; a word that is no token is cut into
/// the longest tokens that it starts with. The merge ranks of BPE are not needed for that, and the
/// result can differ from theirs.
class BasicTokenizer {
 public:
  /// Ends the process when the file is missing (exit code 9) or is not a JSON object from strings
  /// to token ids (exit code 1), after a message on stderr.
  explicit BasicTokenizer(const std::string& vocab_json_path) {
    std::ifstream file(vocab_json_path, std::ios::binary);
    if (!file) {
      std::cerr << "BasicTokenizer: cannot open vocabulary file " << vocab_json_path << std::endl;
      std::exit(9);
    }
    try {
      load(nlohmann::json::parse(file));
    } catch (const std::exception& e) {
      std::cerr << "BasicTokenizer: " << vocab_json_path
                << " is not a JSON object of token ids: " << e.what() << std::endl;
      std::exit(1);
    }
  }

  std::vector<int64_t> encode(const std::string& prompt) const {
    std::vector<int64_t> tokens;
    for (const std::string& word : split(prompt)) encode_word(word, tokens);
    return tokens;
  }

  /// Ids that are not in the vocabulary are left out.
  std::string decode(const std::vector<int64_t>& tokens) const {
    std::string text;
    for (const int64_t token : tokens) {
      const auto found = text_of_.find(token);
      if (found != text_of_.end()) text += found->second;
    }
    return text;
  }

 private:
  void load(const nlohmann::json& vocabulary) {
    for (const auto& entry : vocabulary.get_ref<const nlohmann::json::object_t&>()) {
      const auto token =
          static_cast<int64_t>(entry.second.get_ref<const nlohmann::json::number_unsigned_t&>());
      const std::string text = bytes_of(entry.first);
      longest_ = std::max(longest_, text.size());
      token_of_.emplace(text, token);
      text_of_.emplace(token, text);
    }
  }

  /// Cuts before every space, which stays with the word behind it, and around punctuation.
  static std::vector<std::string> split(const std::string& prompt) {
    std::vector<std::string> words;
    std::string word;
    const auto finish_word = [&] {
      if (!word.empty()) {
        words.push_back(std::move(word));
        word.clear();
      }
    };
    for (const char c : prompt) {
      const bool punctuation = std::ispunct(static_cast<unsigned char>(c)) != 0;
      if (c == ' ' || punctuation) finish_word();
      word += c;
      if (punctuation) finish_word();
    }
    finish_word();
    return words;
  }

  void encode_word(const std::string& word, std::vector<int64_t>& tokens) const {
    for (size_t begin = 0; begin < word.size();) {
      size_t length = std::min(longest_, word.size() - begin);
      auto found = token_of_.end();
      for (; length > 0; --length) {
        found = token_of_.find(word.substr(begin, length));
        if (found != token_of_.end()) break;
      }
      if (found != token_of_.end()) {
        tokens.push_back(found->second);
      } else {
        std::cerr << "BasicTokenizer: byte " << static_cast<int>(static_cast<uint8_t>(word[begin]))
                  << " is not in the vocabulary, left out" << std::endl;
      }
      begin += std::max<size_t>(length, 1);
    }
  }

  static bool stands_for_itself(uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
           (byte >= 0xae && byte <= 0xff);
  }

  /// The byte that a character of the alphabet stands for, or -1.
  static int byte_of(uint32_t character) {
    if (character < 0x100) return stands_for_itself(character) ? static_cast<int>(character) : -1;
    uint32_t next = 0x100;
    for (int byte = 0; byte < 0x100; ++byte) {
      if (!stands_for_itself(static_cast<uint32_t>(byte)) && next++ == character) return byte;
    }
    return -1;
  }

  /// The bytes that a key spells; the key itself when a character is not of the alphabet.
  static std::string bytes_of(const std::string& key) {
    std::string bytes;
    for (size_t i = 0; i < key.size(); ++i) {
      // The alphabet ends below U+0800, where UTF-8 begins to need more than two bytes.
      uint32_t character = static_cast<uint8_t>(key[i]);
      if ((character & 0xe0) == 0xc0 && i + 1 < key.size()) {
        character = (character & 0x1f) << 6 | (static_cast<uint8_t>(key[++i]) & 0x3f);
      } else if (character >= 0x80) {
        return key;
      }
      const int byte = byte_of(character);
      if (byte < 0) return key;
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }

  std::unordered_map<std::string, int64_t> token_of_;
  std::unordered_map<int64_t, std::string> text_of_;
  size_t longest_ = 0;
};
