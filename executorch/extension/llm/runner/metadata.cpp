#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/llm/tokenizers/tokenizer_file.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>

namespace executorch::extension::llm {
namespace {

using runtime::EValue;
using runtime::Result;

// The most integers that are read from a tensor: metadata needs no more.
constexpr ssize_t kMostIntegers = 1 << 16;

void append_integers(const EValue& value, std::vector<int64_t>& out) {
  if (value.isInt()) {
    out.push_back(value.toInt());
  } else if (value.isBool()) {
    out.push_back(value.toBool() ? 1 : 0);
  } else if (value.isIntList()) {
    const auto list = value.tryToIntList();  // its items may have become other values
    if (list.ok()) out.insert(out.end(), list->begin(), list->end());
  } else if (value.isTensor()) {
    const aten::Tensor tensor = value.toTensor();
    if (tensor.const_data_ptr() == nullptr || tensor.numel() > kMostIntegers) return;
    for (ssize_t i = 0; i < tensor.numel(); ++i) {
      if (tensor.scalar_type() == aten::ScalarType::Long) {
        out.push_back(tensor.const_data_ptr<int64_t>()[i]);
      } else if (tensor.scalar_type() == aten::ScalarType::Int) {
        out.push_back(tensor.const_data_ptr<int32_t>()[i]);
      }
    }
  }
}

}  // namespace

std::vector<int64_t> constant_integers(Module& module, const std::string& method_name) {
  const auto meta = module.method_meta(method_name);
  if (!meta.ok() || meta->num_inputs() != 0) return {};
  const auto values = module.execute(method_name);
  std::vector<int64_t> integers;
  if (!values.ok()) return integers;
  for (const EValue& value : *values) append_integers(value, integers);
  return integers;
}

std::unordered_map<std::string, int64_t> read_metadata(Module& module, const ProgramForm& form,
                                                       const ::tokenizers::Tokenizer* tokenizer) {
  const bool has_caches = form.position != ProgramForm::Position::None;
  std::unordered_map<std::string, int64_t> metadata = {
      {kEnableDynamicShape, form.max_tokens > 1},
      {kUseKVCache, has_caches},
      {kUseSDPAWithKVCache, 0},
      {kVocabSize, form.vocabulary_size},
  };
  if (tokenizer != nullptr && tokenizer->bos_tok() < static_cast<uint64_t>(form.vocabulary_size)) {
    metadata[kBosId] = static_cast<int64_t>(tokenizer->bos_tok());
  }
  const auto names = module.method_names();
  const auto read = [&](const char* name) {
    if (!names.ok() || names->count(name) == 0) return;
    const auto values = constant_integers(module, name);
    if (!values.empty()) metadata[name] = values[0];
  };
  for (const char* name : {kEnableDynamicShape, kVocabSize, kUseSDPAWithKVCache, kBosId}) {
    read(name);
  }
  if (has_caches) read(kUseKVCache);
  // Caches of a program that says nothing of them are of unknown length: it fails at their end. A
  // program that is given the whole text takes no more than its input does.
  const int64_t most = has_caches ? std::numeric_limits<int64_t>::max() : form.max_tokens;
  const auto bounded = [&](const char* name, int64_t otherwise) {
    metadata[name] = otherwise;
    read(name);
    const int64_t found = metadata[name];
    metadata[name] = found < 1 ? otherwise : std::min(found, most);
  };
  bounded(kMaxSeqLen, most);
  bounded(kMaxContextLen, metadata[kMaxSeqLen]);
  return metadata;
}

std::unordered_set<uint64_t> read_eos_ids(Module& module,
                                          const ::tokenizers::Tokenizer* tokenizer) {
  std::unordered_set<uint64_t> ids;
  const auto names = module.method_names();
  for (const char* method : {kEosIds, "get_eos_id"}) {
    if (!names.ok() || names->count(method) == 0) continue;
    for (const int64_t id : constant_integers(module, method)) {
      if (id >= 0) ids.insert(static_cast<uint64_t>(id));
    }
  }
  if (!ids.empty() || tokenizer == nullptr) return ids;
  for (const uint64_t id : tokenizer->end_tokens()) {
    // A vocabulary without an end says 0, which is a token like others.
    if (tokenizer->is_special(id)) ids.insert(id);
  }
  return ids;
}

bool has_text(const ::tokenizers::Tokenizer& tokenizer, uint64_t token) {
  return tokenizer.id_to_piece(token).ok() || tokenizer.decode_bytes({token}).ok();
}

std::vector<uint64_t> unknown_tokens(const ::tokenizers::Tokenizer* tokenizer,
                                     int64_t vocabulary_size) {
  std::vector<uint64_t> tokens;
  for (uint64_t i = 0; tokenizer != nullptr && i < static_cast<uint64_t>(vocabulary_size); ++i) {
    if (!has_text(*tokenizer, i)) tokens.push_back(i);
  }
  return tokens;
}

std::optional<std::string> named_data(Module& module, const std::string& key) {
  if (module.program() == nullptr) return std::nullopt;
  const auto map = module.program()->get_named_data_map();
  if (!map.ok()) return std::nullopt;
  const auto data = (*map)->get_data(key.c_str());
  if (!data.ok()) return std::nullopt;
  return std::string(static_cast<const char*>(data->data()), data->size());
}

Result<std::unique_ptr<::tokenizers::Tokenizer>> named_tokenizer(Module& module) {
  const auto bytes = named_data(module, "tokenizer");
  if (!bytes.has_value()) return std::unique_ptr<::tokenizers::Tokenizer>();
  std::string cause;
  auto tokenizer = ::tokenizers::load_tokenizer_bytes(
      *bytes, &cause, {}, named_data(module, "tokenizer_merges").value_or(""),
      named_data(module, "tokenizer_config").value_or(""));
  if (tokenizer != nullptr) return tokenizer;
  ET_LOG(Error, "the tokenizer inside of the program cannot be read: %s", cause.c_str());
  return runtime::Error::InvalidProgram;
}

}  // namespace executorch::extension::llm
