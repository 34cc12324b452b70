/// What a program of a language model says of itself.
#pragma once

#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tokenizers {
class Tokenizer;
}  // namespace tokenizers

namespace executorch::extension::llm {

/// All integers that a method without inputs gives, be they numbers, lists or tensors; none if
/// there is no such method, or it cannot be run.
std::vector<int64_t> constant_integers(Module& module, const std::string& method_name);

/// What constants.h names, of a program whose method has `form`. What it does not say is read from
/// the form and the tokenizer, which may be null.
std::unordered_map<std::string, int64_t> read_metadata(Module& module, const ProgramForm& form,
                                                       const ::tokenizers::Tokenizer* tokenizer);

/// Tokens that end a text: the program's (get_eos_ids, get_eos_id), else the tokenizer's.
std::unordered_set<uint64_t> read_eos_ids(Module& module, const ::tokenizers::Tokenizer* tokenizer);

/// Whether `tokenizer` has a text for `token`.
bool has_text(const ::tokenizers::Tokenizer& tokenizer, uint64_t token);

/// Tokens of a vocabulary of `vocabulary_size` that `tokenizer` has no text for: logits of programs
/// often are more than there are tokens. None if it is null.
std::vector<uint64_t> unknown_tokens(const ::tokenizers::Tokenizer* tokenizer,
                                     int64_t vocabulary_size);

/// An entry of the program's named data; empty if there is none.
std::optional<std::string> named_data(Module& module, const std::string& key);

/// The tokenizer that a program carries (packaging.py); null if it carries none. InvalidProgram, and
/// the cause in the log, if it cannot be read.
runtime::Result<std::unique_ptr<::tokenizers::Tokenizer>> named_tokenizer(Module& module);

}  // namespace executorch::extension::llm
