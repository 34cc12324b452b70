/// The hook by which code outside the runtime changes the instructions of a method while it is
/// loaded.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <cstdint>

namespace executorch::runtime {

/// An instruction whose kernel, delegate and arguments have been looked up.
struct Instruction {
  enum class Kind : uint8_t { Kernel, Delegate, Move, JumpFalse, Free, Skip };
  Kind kind;
  /// Kernel: a view, which sets the data pointer of its last argument. That tensor may therefore be
  /// without memory before the call. A rewriter that puts another kernel here clears this.
  bool points_last_argument;
  /// Kernel: it reports its own events to the tracer; for other kernels the runtime does.
  bool traces_itself;
  /// Kernel: operator index; Delegate: delegate index; JumpFalse: destination in its chain.
  uint32_t target;
  OpFunction kernel;
  /// Kernel, Delegate: arguments; Move: source, destination; JumpFalse, Free: the value.
  Span<EValue*> args;
  /// The tensor whose data pointer is set if points_last_argument; otherwise null.
  aten::TensorImpl* pointed = nullptr;
  /// Delegate: the backend says that it writes the arguments from this index on, and no others;
  /// their number where it says otherwise or nothing.
  uint32_t first_written = 0;
};

/// A description of a rewritten instruction and of the instructions that it replaces, for tools.
struct Rewritten {
  /// A name such as "linear+gelu".
  const char* name;
  /// The indices, in the chain, of the instructions that it replaces, in order, including its own.
  Span<const uint32_t> originals;
};

/// Returns true and fills `out` if the instruction was rewritten. What `out` refers to lives as
/// long as the method.
using DescribeRewritten = bool (*)(const Instruction& instruction, Rewritten& out);

/// Results of a method that are needed only during an execution.
struct Temporaries {
  /// Planned memory in which nothing but such results lies.
  Span<const Span<uint8_t>> memory;
  /// Such results; they have the sizes of the last execution.
  Span<const aten::TensorImpl* const> tensors;
};

/// A method whose values, delegates and instructions are complete and that never ran. Everything is
/// borrowed and lives as long as the method.
///   Instructions keep their number and order, so that traces, errors and steps name the places of
///   the file: one that is not needed any more becomes a Skip; a Kernel may get another function
///   and other arguments, in memory of `allocator`, which runs no destructors. A failing kernel is
///   reported under its own operator's name.
///   Tensors have their largest sizes; constants are read-only; a tensor of planned memory points
///   there; one without data gets its bytes later, from a view, a caller or a move.
struct MethodDraft {
  const char* name;
  Span<Span<Instruction>> chains;
  Span<EValue> values;
  /// Indices of values.
  Span<const int32_t> inputs;
  Span<const int32_t> outputs;
  MemoryAllocator& allocator;
  /// To be set if it is known; what it refers to lies in memory of `allocator`.
  Temporaries& temporaries;
};

/// Rewrites a method. It must leave the method as it is if it can improve nothing or lacks memory.
using MethodRewriter = void (*)(const MethodDraft& method);

/// Sets the rewriter that is called for every method that is loaded from now on; null means none.
/// Methods that are traced with the outputs of single instructions are not rewritten. Returns the
/// rewriter until now. Not thread-safe: call it from static initialisers or at the start of a program.
MethodRewriter set_method_rewriter(MethodRewriter rewriter);

}  // namespace executorch::runtime
