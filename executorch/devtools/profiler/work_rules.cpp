#include <executorch/devtools/profiler/work_rules.h>

#include <unordered_map>

namespace executorch::devtools {

/// The names in this namespace are used by the operator tables: executorch/kernels/*/tables.h names
/// the rule of each family, and a row names its own rule where it differs.
namespace rules {

using Count = WorkRule::Count;

constexpr WorkRule matmul{Family::Matmul, Count::Matmul, 0};
constexpr WorkRule addmm{Family::Matmul, Count::Matmul, 1};
constexpr WorkRule convolution{Family::Convolution, Count::Convolve};
constexpr WorkRule attention{Family::Attention, Count::Attend};
constexpr WorkRule softmax{Family::Normalization, Count::Input, 5};
constexpr WorkRule norm{Family::Normalization, Count::Input, 8};
constexpr WorkRule window{Family::Pooling, Count::Window};
constexpr WorkRule pool{Family::Pooling, Count::Input};
constexpr WorkRule reduction{Family::Reduction, Count::Input};
constexpr WorkRule elementwise{Family::Elementwise, Count::Output};
constexpr WorkRule copy{Family::Copy};
constexpr WorkRule select{Family::Copy, Count::None, 0, true};
constexpr WorkRule view{Family::View};
constexpr WorkRule other{};

}  // namespace rules

namespace {

using Rules = std::unordered_map<std::string_view, WorkRule>;

Rules make_rules() {
  return {
#include <executorch/devtools/profiler/operator_work.inc>
      // Operators of the runtime itself, which belong to no family.
      {"et_copy_index", rules::copy},
      {"_local_scalar_dense", rules::view},
      // Operators for which only applications register kernels.
      {"matmul", rules::matmul},
      {"baddbmm", rules::addmm},
      {"scaled_dot_product_attention", rules::attention},
      {"_scaled_dot_product_flash_attention_for_cpu", rules::attention},
      {"rms_norm", rules::norm},
  };
}

}  // namespace

WorkRule work_rule(std::string_view op) {
  static const Rules* const known = new Rules(make_rules());
  const size_t colons = op.find("::");
  const bool is_prim = op.substr(0, colons) == "executorch_prim";
  std::string_view base = colons == op.npos ? op : op.substr(colons + 2);
  base = base.substr(0, base.find('.'));
  // Arithmetic on symbolic sizes, and views.
  if (op.starts_with("aten::sym_") || (is_prim && base != "et_copy_index")) return rules::view;
  const auto found = known->find(base);
  return found == known->end() ? rules::other : found->second;
}

}  // namespace executorch::devtools
