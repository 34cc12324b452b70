#pragma once

#include <executorch/devtools/profiler/work.h>

#include <string_view>

namespace executorch::devtools {

/// How the work of an operator follows from its arguments.
struct WorkRule {
  enum class Count : uint8_t {
    None,
    Input,   ///< `per` for each element of the first tensor
    Output,  ///< `per` for each element of the first result
    Window,  ///< one for each element of a window, whose extents are argument 1
    Matmul,  ///< argument `per` is the left operand
    Convolve,
    Attend,
  };
  Family family = Family::Other;
  Count count = Count::None;
  int per = 1;
  /// Whether only as many bytes of the first tensor are read as are written.
  bool selects = false;
};

/// The rule for an operator's name, "aten::add.out"; overloads have the same rule.
WorkRule work_rule(std::string_view op);

}  // namespace executorch::devtools
