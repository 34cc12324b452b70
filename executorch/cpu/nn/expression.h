/// Several elementwise operations in one pass over memory. They are computed tile by tile, so that
/// intermediate results stay in cache, or where a step reads its predecessor's result alone, in
/// registers. Casts between the storage types cost nothing extra.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/function.h>
#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// out[i] = result of the last step, for every i of the nested loops `dims`, computed in float.
///
/// Steps read and write registers, each of which holds a tile. The first n_inputs registers hold
/// the inputs, the others results of steps. A step may write a register that it reads.
struct Expression {
  static constexpr int kMaxInputs = 8;
  static constexpr int kMaxRegisters = 16;
  static constexpr int kMaxDims = 6;
  static constexpr int kMaxSteps = 48;

  enum class Op : uint8_t {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    Atan2,     // of the angle whose tangent is a / b
    Linear,    // scale * a + shift
    Quotient,  // a / scale
    Over,      // scale / a
    Abs,
    Sign,  // 0 where a is NaN
    Floor,
    Ceil,
    Trunc,
    Round,         // to nearest, ties to even
    RectifyLeaky,  // a, times scale where it is negative
    Apply,         // function(a)
    Act,
    Compare,    // 1 where a and b compare so, else 0
    CompareTo,  // 1 where a and scale compare so, else 0
    Select,     // b where a is not 0, else c
  };
  enum class Comparison : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
  struct Step {
    Op op = Op::Add;
    uint8_t to = 0, a = 0, b = 0, c = 0;
    float scale = 1, shift = 0;
    Function function = Function::Exp;
    Comparison comparison = Comparison::Equal;
    Activation act = {};
  };
  /// A loop: its size, and the strides of inputs and result in elements; 0 broadcasts.
  struct Dim {
    int64_t size = 1;
    int64_t in[kMaxInputs] = {};
    int64_t out = 0;
  };

  Type type = Type::F32;  // of the result, and of the inputs unless `mixed`
  bool mixed = false;
  Type in_types[kMaxInputs] = {};  // if `mixed`
  bool is_bool[kMaxInputs] = {};   // whether an input is of bytes, 0 or 1, instead
  /// The type of input w unless it is of bytes.
  Type type_of(int w) const { return mixed ? in_types[w] : type; }
  int n_inputs = 0;
  const void* inputs[kMaxInputs] = {};
  void* out = nullptr;
  const Step* steps = nullptr;
  int n_steps = 0;
  /// The loops, innermost first. It is fastest if the innermost has strides 1 or 0, and if it, or
  /// where it is short the two innermost, make up a tile of some hundred elements.
  int n_dims = 0;
  Dim dims[kMaxDims];

  /// Computes `out`. It must not overlap an input, unless both are the same elements in the same
  /// order. Sizes >= 0; there must be at least one step. Threads share the tiles.
  void run() const;
};

}  // namespace executorch::cpu
