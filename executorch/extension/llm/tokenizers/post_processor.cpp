#include <executorch/extension/llm/tokenizers/log.h>
#include <executorch/extension/llm/tokenizers/post_processor.h>

namespace tokenizers {
namespace {

constexpr int kMaxDepth = 20;

uint64_t number_at(const Json& json, const char* key) {
  const Json& value = at(json, key);
  return is_count(value) ? value.get<uint64_t>() : 0;
}

/// A piece in short: "$A", "$B:1", "$0" for text A of the type 0, "[CLS]:0" for a special token.
Piece piece_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_type = colon != std::string::npos && colon + 2 == text.size() &&
                        text[colon + 1] >= '0' && text[colon + 1] <= '9';
  const std::string name = has_type ? text.substr(0, colon) : text;
  uint64_t type = has_type ? static_cast<uint64_t>(text.back() - '0') : 0;
  if (name.empty() || name[0] != '$') return Piece::SpecialToken(name, type);
  if (name.size() == 2 && name[1] >= '0' && name[1] <= '9') {
    type = static_cast<uint64_t>(name[1] - '0');
  }
  return Piece::Sequence(name == "$B" || name == "$b" ? SequenceId::B : SequenceId::A, type);
}

Template template_at(const Json& json, const char* key) {
  Template pieces;
  for (const Json& entry : at(json, key)) {
    if (entry.is_string()) {
      pieces.push_back(piece_of(entry.get<std::string>()));
      continue;
    }
    const Json& sequence = at(entry, "Sequence");
    const Json& special = at(entry, "SpecialToken");
    if (sequence.is_object()) {
      pieces.push_back({false, string_at(sequence, "id"), number_at(sequence, "type_id")});
    } else if (special.is_object()) {
      pieces.push_back({true, string_at(special, "id"), number_at(special, "type_id")});
    }
  }
  return pieces;
}

std::pair<std::string, uint64_t> token_at(const Json& json, const char* key) {
  const Json& value = at(json, key);
  if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !is_count(value[1])) {
    return {};
  }
  return {value[0].get<std::string>(), value[1].get<uint64_t>()};
}

/// Of BERT: first, text, separator; RoBERTa puts two separators between texts. Nothing where neither
/// token is named.
PostProcessor::Ptr around(const PostProcessorConfig& config, size_t between) {
  if (config.cls.first.empty() && config.sep.first.empty()) {
    return std::make_shared<Sequence>(std::vector<PostProcessor::Ptr>());
  }
  const auto special = [](const std::pair<std::string, uint64_t>& token) {
    return SpecialToken{token.first, {token.second}, {token.first}};
  };
  const Piece cls = Piece::SpecialToken(config.cls.first, 0);
  const Piece sep = Piece::SpecialToken(config.sep.first, 0);
  const Template single = {cls, Piece::Sequence(SequenceId::A, 0), sep};
  Template pair = single;
  pair.insert(pair.end(), between - 1, sep);
  pair.push_back(Piece::Sequence(SequenceId::B, 1));
  pair.push_back(sep);
  return std::make_shared<TemplateProcessing>(
      single, pair,
      std::map<std::string, SpecialToken>{{config.cls.first, special(config.cls)},
                                          {config.sep.first, special(config.sep)}});
}

}  // namespace

std::vector<uint64_t> TemplateProcessing::fill(const Template& pieces,
                                               const std::vector<uint64_t>& a,
                                               const std::vector<uint64_t>& b,
                                               bool add_special_tokens) const {
  std::vector<uint64_t> result;
  for (const Piece& piece : pieces) {
    const std::vector<uint64_t>* tokens = piece.id == "A" ? &a : &b;
    if (piece.is_special_token) {
      const auto found = special_.find(piece.id);
      if (!add_special_tokens || found == special_.end()) continue;
      tokens = &found->second.ids;
    }
    result.insert(result.end(), tokens->begin(), tokens->end());
  }
  return result;
}

size_t TemplateProcessing::added_tokens(bool is_pair) const {
  return fill(is_pair ? pair_ : single_, {}, {}, true).size();
}

std::vector<uint64_t> TemplateProcessing::process(const std::vector<uint64_t>& tokens,
                                                  bool add_special_tokens) const {
  return fill(single_, tokens, {}, add_special_tokens);
}

std::vector<uint64_t> TemplateProcessing::process(const std::vector<uint64_t>& tokens_a,
                                                  const std::vector<uint64_t>& tokens_b,
                                                  bool add_special_tokens) const {
  return fill(pair_, tokens_a, tokens_b, add_special_tokens);
}

size_t Sequence::added_tokens(bool is_pair) const {
  size_t n = 0;
  for (const Ptr& step : steps_) n += step->added_tokens(is_pair);
  return n;
}

std::vector<uint64_t> Sequence::process(const std::vector<uint64_t>& tokens,
                                        bool add_special_tokens) const {
  std::vector<uint64_t> result = tokens;
  for (const Ptr& step : steps_) result = step->process(result, add_special_tokens);
  return result;
}

std::vector<uint64_t> Sequence::process(const std::vector<uint64_t>& tokens_a,
                                        const std::vector<uint64_t>& tokens_b,
                                        bool add_special_tokens) const {
  std::vector<uint64_t> result;
  bool joined = false;
  for (const Ptr& step : steps_) {
    if (joined) {
      result = step->process(result, add_special_tokens);
    } else if (step->added_tokens(true) > 0) {
      result = step->process(tokens_a, tokens_b, add_special_tokens);
      joined = true;
    }
  }
  if (!joined) {
    result = tokens_a;
    result.insert(result.end(), tokens_b.begin(), tokens_b.end());
  }
  return result;
}

PostProcessorConfig& PostProcessorConfig::parse_json(const nlohmann::json& json_config) {
  parse(json_config, 0);
  return *this;
}

void PostProcessorConfig::parse(const Json& json, int depth) {
  type = string_at(json, "type", type);
  single = template_at(json, "single");
  pair = template_at(json, "pair");
  for (const auto& entry : at(json, "special_tokens").items()) {
    SpecialToken& token = special_tokens[entry.key()];
    token.id = string_at(entry.value(), "id", entry.key());
    for (const Json& id : at(entry.value(), "ids")) {
      if (is_count(id)) token.ids.push_back(id.get<uint64_t>());
    }
    for (const Json& text : at(entry.value(), "tokens")) {
      if (text.is_string()) token.tokens.push_back(text.get<std::string>());
    }
  }
  sep = token_at(json, "sep");
  cls = token_at(json, "cls");
  trim_offsets = bool_at(json, "trim_offsets", true);
  add_prefix_space = bool_at(json, "add_prefix_space", true);
  for (const Json& step : at(json, "processors")) {
    if (depth < kMaxDepth) processors.emplace_back().parse(step, depth + 1);
  }
}

PostProcessor::Ptr PostProcessorConfig::create() const {
  if (type == "TemplateProcessing") {
    return std::make_shared<TemplateProcessing>(single, pair, special_tokens);
  }
  if (type == "BertProcessing") return around(*this, 1);
  if (type == "RobertaProcessing") return around(*this, 2);
  if (type == "ByteLevel") return std::make_shared<Sequence>(std::vector<PostProcessor::Ptr>());
  if (type == "Sequence") {
    std::vector<PostProcessor::Ptr> steps;
    for (const PostProcessorConfig& step : processors) {
      steps.push_back(step.create());
      if (steps.back() == nullptr) return nullptr;
    }
    return std::make_shared<Sequence>(std::move(steps));
  }
  TK_LOG(Error, "unknown post-processor %s", type.c_str());
  return nullptr;
}

}  // namespace tokenizers
