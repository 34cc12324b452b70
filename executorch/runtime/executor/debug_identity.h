/// What the user's model calls things: the places that instructions come from, and the names of
/// inputs and outputs. `schema/debug_identity.fbs` is the format.
#pragma once

#include <executorch/runtime/core/error.h>

#include <cstddef>
#include <cstdint>

namespace executorch_flatbuffer {
struct DebugIdentity;
struct DelegateCallIdentity;
struct MethodIdentity;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

/// The place of one instruction. No text is null; what is not known is "" or 0. Texts live as long
/// as the program.
struct InstructionOrigin {
  /// Kernel "aten::add.out"; delegate call: the backend's id; "move", "jump_false", "free". Inside
  /// a delegate: the operators that its backend made one of, "aten::linear+aten::relu".
  const char* op = "";
  /// The path of the user's module, such as "transformer.h.0.attn"; "" for the outermost module
  /// too.
  const char* module_path = "";
  /// The Python file with at most two folders, "models/gpt2/attention.py", and the line in it.
  /// For several operators those of the first.
  const char* file = "";
  uint32_t line = 0;
};

/// "models/gpt2/attention.py:17, module transformer.h.0.attn", for messages.
struct OriginText {
  explicit OriginText(const InstructionOrigin& origin);
  char text[192];
};

/// "input 1 (attention_mask)", or "input 1" where the name is "", for messages.
struct ArgumentText {
  ArgumentText(const char* kind, size_t index, const char* name);
  char text[128];
};

/// A program's named data of this key is its debug identity.
constexpr char kDebugIdentityKey[] = "executorch.debug_identity";

/// The places of a program's instructions and the names of its inputs and outputs, as its exporter
/// wrote them. Borrows the bytes. Lookups take any argument; false, and an unchanged `out`, or the
/// name "", where nothing is known.
class DebugIdentity final {
 public:
  /// `data` was accepted by check().
  explicit DebugIdentity(const void* data);
  /// Whether lookups are safe: InvalidProgram, with what is wrong in the log, if they are not.
  /// Cost: linear in `size`.
  ET_NODISCARD static Error check(const void* data, size_t size);

  bool instruction(const char* method, size_t chain, size_t instruction,
                   InstructionOrigin& out) const;
  /// Finds an operator inside the delegate that the instruction calls, by the debug id or the name
  /// under which its backend reports it to tracers. Returns false if the backend gave no map.
  bool delegated(const char* method, size_t chain, size_t instruction, uint32_t debug_id,
                 InstructionOrigin& out) const;
  bool delegated(const char* method, size_t chain, size_t instruction, const char* debug_name,
                 InstructionOrigin& out) const;

  /// The parameter of the user's model that an input is, such as "tokens".
  const char* input_name(const char* method, size_t index) const;
  /// The keys under which the user's model returns an output, such as "logits" or "cache.0"; "" for
  /// results without keys.
  const char* output_name(const char* method, size_t index) const;
  /// Whether calls of the method change nothing that later calls read. False if it is not known.
  bool is_stateless(const char* method) const;

 private:
  const char* text(uint32_t index) const;
  void describe(uint32_t op, uint32_t place, InstructionOrigin& out) const;
  const executorch_flatbuffer::MethodIdentity* find_method(const char* name) const;
  const executorch_flatbuffer::DelegateCallIdentity* find_call(const char* method, size_t chain,
                                                               size_t instruction) const;

  const executorch_flatbuffer::DebugIdentity* root_;
};

}  // namespace executorch::runtime
