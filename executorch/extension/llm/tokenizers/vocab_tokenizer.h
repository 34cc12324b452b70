#pragma once

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>

#include <string>

namespace tokenizers {

/// The vocab.json of a byte-level BPE model such as GPT-2. With the text of merges.txt, its merges
/// behind GPT-2's pattern; without, words between spaces and punctuation, cut into the longest
/// tokens that they start with, as the tutorials' basic tokenizer does.
class VocabTokenizer : public detail::BPETokenizerBase {
 public:
  explicit VocabTokenizer(std::string merges = "") : merges_(std::move(merges)) {}

 protected:
  Error parse(std::string_view bytes) override;
  bool encode_text(std::string_view text, std::vector<uint64_t>& tokens) const override;

 private:
  Error read_merges();
  std::string merges_;
};

}  // namespace tokenizers
