#include <executorch/kernels/portable/own_kernels.h>

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <cstdio>

namespace torch::executor::native {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;

namespace {

const OwnKernels* first_table = nullptr;

constexpr bool has(uint64_t types, ScalarType type) {
  return (types >> static_cast<int>(type) & 1) != 0;
}

/// The text of a list of types, such as "Float, Long".
struct TypeList {
  char text[256] = "none";

  explicit TypeList(uint64_t types) {
    size_t n = 0;
    for (int t = 0; t < static_cast<int>(ScalarType::Undefined); ++t) {
      const auto type = static_cast<ScalarType>(t);
      if (!has(types, type) || n >= sizeof(text)) continue;
      n += static_cast<size_t>(
          snprintf(text + n, sizeof(text) - n, "%s%s", n > 0 ? ", " : "", toString(type)));
    }
  }
};

bool check_type(KernelRuntimeContext& ctx, const SelectedOperator& op, size_t index,
                const Tensor& tensor) {
  if (has(op.types, tensor.scalar_type())) return true;
  ET_LOG(Error,
         "%s: argument %zu is %s; this selection of operators (DTYPE_SELECTIVE_BUILD) "
         "has it for %s only",
         op.name, index, toString(tensor.scalar_type()), TypeList(op.types).text);
  ctx.fail(Error::NotSupported);
  return false;
}

}  // namespace

void register_own_kernels(OwnKernels& kernels, const char* library) {
  kernels.next = first_table;
  first_table = &kernels;
  const Error error = executorch::runtime::register_kernels(kernels.rows, library);
  if (error != Error::Ok) {
    ET_LOG(Error, "%s: registration failed: %s", library, executorch::runtime::to_string(error));
  }
}

const OwnKernels* own_kernels() {
  return first_table;
}

bool has_selected_types(KernelRuntimeContext& ctx, const SelectedOperator& op, Span<EValue*> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const EValue& value = *args[i];
    if (value.isTensor() && !check_type(ctx, op, i, value.toTensor())) return false;
    if (value.isTensorList()) {
      const auto items = value.tryToTensorList();
      for (size_t k = 0; items.ok() && k < items->size(); ++k) {
        if (!check_type(ctx, op, i, (*items)[k])) return false;
      }
    }
    if (value.isListOptionalTensor()) {
      const auto items = value.tryToListOptionalTensor();
      for (size_t k = 0; items.ok() && k < items->size(); ++k) {
        const auto& item = (*items)[k];
        if (item.has_value() && !check_type(ctx, op, i, *item)) return false;
      }
    }
  }
  return true;
}

}  // namespace torch::executor::native
