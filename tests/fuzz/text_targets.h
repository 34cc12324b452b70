/// Readers of text, and of sound, that comes from outside, each given bytes and then used.
#pragma once

#include <string>

#include "text_mutation.h"

namespace executorch::fuzz {

struct TextTarget {
  /// Of the folder of seeds.
  const char* name;
  /// Whether the bytes were taken. What they made is used as a program would.
  bool (*use)(const std::string& bytes, Random& random);
};

/// tokenizer    tokenizer.json, tiktoken, SentencePiece, llama2.c, tekken, vocab.json: text to
///              tokens and back
/// pattern      of pre-tokenizers, matched against some texts
/// regex        a constraint, followed for some tokens
/// schema       likewise
/// request      the body of a request to the server; a constraint in it is compiled
/// chat_template  Jinja, read and rendered with a conversation
/// http         what a client sends: requests are read until the end
/// wav          a sound file: its header and its samples
/// Null where there is none of the name.
const TextTarget* find_text_target(const std::string& name);

}  // namespace executorch::fuzz
