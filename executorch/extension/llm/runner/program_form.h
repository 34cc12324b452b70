/// What programs of language models look like. A method is one if it is
///   forward(tokens [1, t]) -> logits                   the whole text in each call
///   forward(tokens [1, t], start [1]) -> logits        t tokens from position `start` on, over
///   forward(tokens [1, t], positions [t]) -> logits    caches that the program keeps
/// with tokens int64 or int32, also [t]; logits [v], [1, v] or [1, t, v] of float, double, Half or
/// BFloat16, the first tensor among the outputs. t must be dynamic, or 1 over caches.
///
/// A program that is given the whole text may have further inputs [1, t] or [t], int64, int32 or
/// bool, that say something of each token, as models of `transformers` do. What each is, its name
/// says (DebugIdentity), by one of its words: a "mask" is all ones ("attention_mask"), a
/// "key_padding_mask" all zeros, a "pos", "position" or "positions" is 0 to t - 1, a "segment" or
/// "type" is 0 ("token_type_ids").
///
/// A program whose text may have images and sound in it has the parts of that method as methods:
///   token_embedding(tokens [1, t]) -> embeddings [1, t, d]
///   text_decoder(embeddings [1, t, d], start [1] | positions [t]) -> logits, over its caches
/// and encoders of anything into embeddings [1, t, d].
#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace executorch::extension::llm {

struct ProgramForm {
  enum class Position {
    None,       ///< the whole text is given
    Start,      ///< the position of the first token
    EachToken,  ///< the position of each
  };
  Position position = Position::None;

  /// What an input has for each token of the whole text.
  enum class Role { Tokens, Ones, Zeros, Positions };
  struct Input {
    Role role;
    aten::ScalarType type;  ///< Long, Int or Bool
    size_t dims;            ///< 1 or 2
  };
  /// All inputs of a method that is given the whole text and is told more than its tokens; else
  /// empty.
  std::vector<Input> inputs;
  size_t tokens_input = 0;  ///< which input the tokens, or embeddings, are

  aten::ScalarType position_type = aten::ScalarType::Long;
  /// The element type of tokens or embeddings.
  aten::ScalarType token_type = aten::ScalarType::Long;
  /// The rank of the first input: 1 or 2 for tokens, 3 for embeddings.
  size_t token_dims = 2;
  /// The size of a token's embedding; 0 for a method that takes tokens.
  int64_t embedding_width = 0;
  /// The most tokens in one call.
  int64_t max_tokens = 0;
  int64_t vocabulary_size = 0;
  size_t logits_output = 0;
  /// Whether the method gives the logits after each token, not only after the last one.
  bool gives_all_positions = false;
  /// Whether the program is incremental: it remembers the text of the call before and computes only
  /// what is new.
  bool is_incremental = false;
};

/// The form of a method, which is loaded for that. InvalidArgument, with what was found and
/// expected in the log, for a method that is not one of a language model.
runtime::Result<ProgramForm> program_form(Module& module, const std::string& method_name);

/// The form of a method that takes embeddings and positions.
runtime::Result<ProgramForm> embeddings_form(Module& module, const std::string& method_name);

/// The form of a method that takes tokens and gives their embeddings, of `embedding_width` numbers
/// each.
runtime::Result<ProgramForm> token_embedding_form(Module& module, const std::string& method_name);

/// Whether a tensor input of a method, which is loaded for it, may have other sizes than its
/// upper bound.
runtime::Result<bool> is_input_dynamic(Module& module, const std::string& method_name, size_t i);

/// A text such as "Float [1, 3, 224, 224]".
std::string described(aten::ScalarType type, runtime::Span<const int32_t> sizes);

}  // namespace executorch::extension::llm
