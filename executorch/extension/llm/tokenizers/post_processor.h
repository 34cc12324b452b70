#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// Puts tokens around those of one text or of two.
class PostProcessor {
 public:
  using Ptr = std::shared_ptr<PostProcessor>;
  virtual ~PostProcessor() = default;
  /// How many tokens are added to one text, or to a pair.
  virtual size_t added_tokens(bool is_pair) const = 0;
  virtual std::vector<uint64_t> process(const std::vector<uint64_t>& tokens,
                                        bool add_special_tokens = true) const = 0;
  virtual std::vector<uint64_t> process(const std::vector<uint64_t>& tokens_a,
                                        const std::vector<uint64_t>& tokens_b,
                                        bool add_special_tokens = true) const = 0;
};

enum class SequenceId { A, B };

/// One place of a template: a text's tokens ("A" or "B"), or a special token by its name.
struct Piece {
  bool is_special_token;
  std::string id;
  uint64_t type_id;

  static Piece Sequence(SequenceId id, uint64_t type_id) {
    return {false, id == SequenceId::A ? "A" : "B", type_id};
  }
  static Piece SpecialToken(std::string id, uint64_t type_id) {
    return {true, std::move(id), type_id};
  }
};
using Template = std::vector<Piece>;

struct SpecialToken {
  std::string id;
  std::vector<uint64_t> ids;
  std::vector<std::string> tokens;
};

/// Special tokens that `special_tokens` does not name are left out.
class TemplateProcessing : public PostProcessor {
 public:
  TemplateProcessing(Template single, Template pair,
                     std::map<std::string, SpecialToken> special_tokens)
      : single_(std::move(single)), pair_(std::move(pair)), special_(std::move(special_tokens)) {}
  size_t added_tokens(bool is_pair) const override;
  std::vector<uint64_t> process(const std::vector<uint64_t>& tokens,
                                bool add_special_tokens = true) const override;
  std::vector<uint64_t> process(const std::vector<uint64_t>& tokens_a,
                                const std::vector<uint64_t>& tokens_b,
                                bool add_special_tokens = true) const override;

 private:
  std::vector<uint64_t> fill(const Template& pieces, const std::vector<uint64_t>& a,
                             const std::vector<uint64_t>& b, bool add_special_tokens) const;

  Template single_;
  Template pair_;
  std::map<std::string, SpecialToken> special_;
};

/// One after the other; the first one that adds tokens joins a pair. None is null.
class Sequence : public PostProcessor {
 public:
  explicit Sequence(std::vector<PostProcessor::Ptr> processors) : steps_(std::move(processors)) {}
  size_t added_tokens(bool is_pair) const override;
  std::vector<uint64_t> process(const std::vector<uint64_t>& tokens,
                                bool add_special_tokens = true) const override;
  std::vector<uint64_t> process(const std::vector<uint64_t>& tokens_a,
                                const std::vector<uint64_t>& tokens_b,
                                bool add_special_tokens = true) const override;

 private:
  std::vector<PostProcessor::Ptr> steps_;
};

/// A post-processor in the words of a tokenizer.json: TemplateProcessing, BertProcessing,
/// RobertaProcessing, ByteLevel (adds nothing) and Sequence.
class PostProcessorConfig {
 public:
  explicit PostProcessorConfig(std::string type = "") : type(std::move(type)) {}

  std::string type;
  Template single;
  Template pair;
  std::map<std::string, SpecialToken> special_tokens;
  std::pair<std::string, uint64_t> sep;
  std::pair<std::string, uint64_t> cls;
  bool trim_offsets = true;
  bool add_prefix_space = true;
  std::vector<PostProcessorConfig> processors;

  PostProcessorConfig& parse_json(const nlohmann::json& json_config);
  /// Null, with a line in the log, where it is not understood.
  PostProcessor::Ptr create() const;

 private:
  void parse(const Json& json, int depth);
};

}  // namespace tokenizers
