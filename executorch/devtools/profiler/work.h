#pragma once

#include <executorch/devtools/profiler/recorder.h>
#include <executorch/runtime/executor/method.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a call has to compute and to move, from the operator and the shapes of its arguments.
///
///   matmul         2 m n k for each matrix of a batch; reads both operands, writes the product
///   convolution    2 * (elements of the result) * (weights of one output channel); transposed:
///                  elements of the input
///   attention      2 b h t s (d + d'): scores and their product with the values
///   normalization  8 operations an element (softmax 5)
///   pooling        one for each element of each window
///   reduction      one for each element read
///   elementwise    one for each element written, whatever the function
///   copy           none. What selects (slice, gather, embedding) reads as much as it writes
///   view           none, and no bytes
/// Of operators that are not known the bytes of the arguments are counted, and no operations.
/// Every value is read and written once: what a cache or a temporary moves on top is not counted.
namespace executorch::devtools {

enum class Family : uint8_t {
  Matmul,
  Convolution,
  Attention,
  Normalization,
  Pooling,
  Reduction,
  Elementwise,
  Copy,
  View,
  Delegate,
  Other,
};
const char* to_string(Family family);

struct Work {
  /// Bytes that are read or written of a value, which is given by its index in the method.
  struct Access {
    int32_t value;
    double bytes;
  };
  Family family = Family::Other;
  double flop = 0;
  std::vector<Access> reads;
  std::vector<Access> writes;
  /// The types and shapes of tensor arguments: "f32[1,768] f32[768,768] -> f32[1,768]".
  std::string shapes;

  double bytes() const;
};

/// The work of a call that has just been made; `values` are those of its method.
Work work_of_call(std::string_view op, runtime::Span<runtime::EValue*> args,
                  runtime::Span<const runtime::EValue> values);
/// The work of a delegate call: the bytes of its arguments, and no operations.
Work work_of_delegate(runtime::Span<runtime::EValue*> args,
                      runtime::Span<const runtime::EValue> values);

/// The work of several calls that run fused: values that only they write and read are not counted.
/// `result` is the value that the last one writes.
Work combine(const std::vector<const Work*>& parts, int32_t result);

/// The work of a method's instructions by chain and number, over all times that they run.
struct InstructionWork {
  size_t calls = 0;
  /// Sums over the calls; shapes are those of the last.
  Work work;
  /// The work that a delegate reports for its operations, by their name or id.
  struct Node {
    Family family = Family::Other;
    double flop = 0, bytes = 0;
    bool int8 = false;  // products are of bytes
    std::string shapes;
  };
  std::map<std::pair<std::string, int32_t>, Node> nodes;
};
using MethodWork = std::map<std::pair<uint32_t, uint32_t>, InstructionWork>;

/// Runs the method once, step by step (InvalidProgram after a million of them, which take seconds),
/// and looks at the arguments after each. The method's inputs must be set, and its instructions
/// must run unfused, so that each value gets its shape. `survey` is the method's tracer, with
/// survey() on: by it delegates tell the work of their operations, as metadata in JSON, {"family",
/// "flop", "bytes", "int8", "shapes"}. Null: what is inside delegates is not counted.
runtime::Result<MethodWork> count_work(runtime::Method& method, const Recorder* survey = nullptr);

/// "aten::add.out" of an instruction's operator.
std::string operator_name(const runtime::Method& method, size_t operator_index);

}  // namespace executorch::devtools
