#pragma once

#include <executorch/extension/llm/server/served_model.h>

#include <string>

namespace executorch::extension::llm::server {

/// A program and its tokenizer, served. Throws std::runtime_error where it lacks what is needed.
/// `chat_template`: a name or a Jinja text; empty: what comes with the model, else plain.
std::unique_ptr<ServedModel> serve_engine(std::unique_ptr<TextEngine> engine,
                                          const std::string& chat_template);

}  // namespace executorch::extension::llm::server
