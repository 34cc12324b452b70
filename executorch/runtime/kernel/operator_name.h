#pragma once

#include <cstddef>

namespace executorch::runtime {

/// An operator's name as a constant that may be a template argument (C++20).
template <std::size_t N>
struct OperatorName {
  char value[N]{};

  constexpr OperatorName(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i) value[i] = name[i];
  }
  constexpr operator const char*() const { return value; }
};

}  // namespace executorch::runtime

/// The type of a name in a template's parameters, and the definition of such a name.
#if defined(__cpp_nontype_template_args) && __cpp_nontype_template_args >= 201911L
#define ET_USE_STRUCTURAL_OPERATOR_NAME 1
#define ET_OPERATOR_NAME_TYPE ::executorch::runtime::OperatorName
#define ET_DEFINE_OPERATOR_NAME(variable, name) \
  static constexpr ::executorch::runtime::OperatorName variable(name)
#else
#define ET_USE_STRUCTURAL_OPERATOR_NAME 0
#define ET_OPERATOR_NAME_TYPE const char*
#define ET_DEFINE_OPERATOR_NAME(variable, name) static constexpr const char variable[] = name
#endif
