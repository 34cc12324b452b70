#pragma once

#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>
#include <vector>

/// What a delegated part computes: steps on float32 tensors, one after the other.
///
/// Values are numbered: the inputs of the call, then the constants, then the result of each step.
namespace executorch::backends::example {

enum class Op : uint8_t { Add, Sub, Mul, Mm, Relu, Sin };

/// 1 or 2.
int operand_count(Op op);

struct Step {
  Op op;
  uint32_t operands[2];
};

constexpr size_t kMaxRank = 16;

/// Row by row; its elements are an entry of Steps::data.
struct Constant {
  size_t rank = 0;
  int32_t sizes[kMaxRank] = {};
  size_t data = 0;
};

struct Steps {
  /// What constants borrow from.
  std::vector<runtime::FreeableBuffer> data;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  std::vector<uint32_t> outputs;

  /// InvalidProgram unless every number names a value that is there when it is read.
  runtime::Error check(size_t n_inputs) const;

  /// Whether run() writes argument `index` of `n_args`.
  bool writes_argument(size_t index, size_t n_args) const {
    return outputs.size() <= n_args && index >= n_args - outputs.size();
  }

  /// Runs the steps. `args` are the inputs, then the outputs, which are resized and written.
  /// All that a run needs lies in the context's temporary memory.
  /// InvalidArgument for tensors of another type or order, or shapes that do not fit.
  runtime::Error run(runtime::BackendExecutionContext& context,
                     runtime::Span<runtime::EValue*> args) const;
};

}  // namespace executorch::backends::example
