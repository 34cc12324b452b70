#pragma once

#include <executorch/extension/llm/runner/constants.h>
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

class MultimodalRunner;
class TextLLMRunner;

/// The tokenizer in a file, whichever kind that is; the special tokens and the pattern are those of
/// tiktoken files. Null, with the cause in the log, if it cannot be read.
std::unique_ptr<tokenizers::Tokenizer> load_tokenizer(
    const std::string& tokenizer_path,
    std::unique_ptr<std::vector<std::string>> special_tokens = nullptr,
    std::optional<std::string> pattern = std::nullopt, size_t bos_token_index = 0,
    size_t eos_token_index = 1);

/// What the program says of itself, under the names of constants.h; what it does not say is read
/// from its method "forward" and the tokenizer, which may be null. get_bos_id is there if the
/// program or the tokenizer has it. Errors of loading.
runtime::Result<std::unordered_map<std::string, int64_t>> get_llm_metadata(
    tokenizers::Tokenizer* tokenizer, Module* module);

/// Tokens that end a text: the program's (get_eos_ids, get_eos_id), else the tokenizer's.
std::unordered_set<uint64_t> get_eos_ids(tokenizers::Tokenizer* tokenizer, Module* module);

/// A runner of a program that is a language model (program_form.h), with its tokenizer. Null, with
/// the cause in the log, if there is no tokenizer or the program cannot be loaded. A program whose
/// methods are called prefill and decode is run by these; of others, `method_name` runs both.
std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path, float temperature = -1.0f,
    const std::string& method_name = kForwardMethod,
    Module::LoadMode load_mode = Module::LoadMode::MmapUseMlockIgnoreErrors);

std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::vector<std::string> data_files = {}, float temperature = -1.0f,
    std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
    const std::string& method_name = kForwardMethod,
    Module::LoadMode load_mode = Module::LoadMode::MmapUseMlockIgnoreErrors);

/// A runner of a program that reads images or sound, too: of methods token_embedding, text_decoder
/// and encoders (program_form.h), with its tokenizer. Null, with the cause in the log, if there is
/// no tokenizer or the program is none of that kind.
std::unique_ptr<MultimodalRunner> create_multimodal_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path = std::nullopt,
    Module::LoadMode load_mode = Module::LoadMode::File);

}  // namespace executorch::extension::llm
