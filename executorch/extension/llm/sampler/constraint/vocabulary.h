/// The tokens of a model as bytes, arranged so that tokens with a common beginning are tried once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace executorch::extension::llm {

/// Immutable; any number of constraints share one.
class Vocabulary {
 public:
  /// The bytes that each token adds to a text. A token without bytes is allowed by no constraint,
  /// but for the end of a text.
  explicit Vocabulary(std::vector<std::string> tokens);

  /// A node of the trie. Nodes are in depth-first order, each before the longer texts below it.
  /// Node 0 is the empty text.
  struct Node {
    uint8_t byte;
    /// Whether all bytes below it are ASCII characters that JSON strings contain unescaped.
    bool plain_below;
    /// The length of this text, and of the longest text below it.
    uint32_t depth, deepest;
    /// The first node that is not below it.
    uint32_t skip;
    /// Ranges of sorted(): tokens from `first` to `own_end` are this text; those from `own_end` to
    /// `end` begin with it.
    uint32_t first, own_end, end;
  };

  size_t size() const { return tokens_.size(); }
  const std::string& bytes(size_t token) const { return tokens_[token]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<uint32_t>& sorted() const { return sorted_; }

 private:
  void close_nodes(std::vector<uint32_t>& open, size_t depth, uint32_t n_sorted);

  std::vector<std::string> tokens_;
  std::vector<uint32_t> sorted_;
  std::vector<Node> nodes_;
};

}  // namespace executorch::extension::llm
