#include <executorch/devtools/profiler/work_rules.h>

#include <unordered_map>

namespace executorch::devtools {
namespace {

using Count = WorkRule::Count;
using Rules = std::unordered_map<std::string_view, WorkRule>;

constexpr WorkRule kView{Family::View};

// `names` are separated by spaces.
void add(Rules& rules, const WorkRule& rule, std::string_view names) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    rules.emplace(names.substr(0, end), rule);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

Rules make_rules() {
  Rules rules;
  add(rules, {Family::Matmul, Count::Matmul, 0}, "mm bmm linear matmul mixed_mm mixed_linear");
  add(rules, {Family::Matmul, Count::Matmul, 1}, "addmm baddbmm");
  add(rules, {Family::Convolution, Count::Convolve}, "convolution");
  add(rules, {Family::Attention, Count::Attend},
      "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu");
  add(rules, {Family::Normalization, Count::Input, 5}, "_softmax _log_softmax");
  add(rules, {Family::Normalization, Count::Input, 8},
      "native_layer_norm native_group_norm _native_batch_norm_legit rms_norm "
      "_native_batch_norm_legit_no_training");
  add(rules, {Family::Pooling, Count::Window},
      "avg_pool1d avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices");
  add(rules, {Family::Pooling, Count::Input},
      "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_max_pool2d "
      "adaptive_max_pool3d");
  add(rules, {Family::Reduction, Count::Input},
      "sum mean amax amin max min any argmax argmin prod var var_mean cumsum cumprod cummax cummin "
      "sort topk choose_qparams choose_qparams_symmetric choose_qparams_per_token "
      "choose_qparams_per_token_asymmetric");
  add(rules, {Family::Elementwise, Count::Output},
      "abs acos acosh add angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift "
      "bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp copysign cos cosh div elu "
      "eq erf erfc erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod ge gelu glu gt hardtanh "
      "hypot isinf isnan le leaky_relu lgamma log log10 log1p log2 logical_and logical_not "
      "logical_or logical_xor logit lt masked_fill maximum minimum mul ne neg pow reciprocal relu "
      "remainder round rsqrt rsub sigmoid sign signbit sin sinh sqrt sub tan tanh trunc where "
      "quantize_per_tensor quantize_per_channel quantize_per_token quantize_per_channel_group "
      "dequantize_per_tensor dequantize_per_channel dequantize_per_token "
      "dequantize_per_channel_group convert_element_type fake_quant_per_channel "
      "upsample_bilinear2d grid_sampler_2d grid_sampler_3d");
  add(rules, {Family::Copy},
      "_to_copy _to_dim_order_copy _clone_dim_order alias_copy arange cat clone complex "
      "constant_pad_nd copy copy_ detach_copy empty _empty_dim_order expand_copy fill flip full "
      "full_like index_put index_put_ lift_fresh_copy ones permute_copy pixel_shuffle "
      "pixel_unshuffle repeat repeat_interleave roll scalar_tensor scatter scatter_add "
      "select_scatter slice_scatter squeeze_copy stack t_copy transpose_copy tril triu "
      "unsqueeze_copy upsample_nearest2d view_copy zeros et_copy_index reflection_pad1d "
      "reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
      "_h2d_copy _d2h_copy");
  add(rules, {Family::Copy, Count::None, 0, true},
      "as_strided_copy diagonal_copy embedding embedding_byte embedding_2bit embedding_4bit gather "
      "index index_select masked_select narrow_copy select_copy slice_copy split_copy "
      "split_with_sizes_copy unbind_copy unfold_copy");
  add(rules, kView, "et_view _local_scalar_dense");
  return rules;
}

}  // namespace

WorkRule work_rule(std::string_view op) {
  static const Rules* const rules = new Rules(make_rules());
  const size_t colons = op.find("::");
  const bool is_prim = op.substr(0, colons) == "executorch_prim";
  std::string_view base = colons == op.npos ? op : op.substr(colons + 2);
  base = base.substr(0, base.find('.'));
  // Arithmetic on numbers, and views.
  if (op.starts_with("aten::sym_") || (is_prim && base != "et_copy_index")) return kView;
  const auto found = rules->find(base);
  return found == rules->end() ? WorkRule{} : found->second;
}

}  // namespace executorch::devtools
