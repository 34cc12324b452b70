#include <executorch/kernels/optimized/signature.h>

#include <executorch/cpu/function.h>

#include <algorithm>
#include <unordered_map>

namespace executorch::optimized {
namespace {

using runtime::EValue;

// The signatures of operators, one letter for each argument: T tensor, V list of tensors, L list of
// integers, I integer, S number, B Bool, C text, * anything. A small letter also allows None. The
// outputs follow: tensors, or a list of tensors if the signature ends with "...".
const std::unordered_map<std::string_view, std::string_view>& signatures() {
  static const auto* const table = new std::unordered_map<std::string_view, std::string_view>{
      {"quantized_decomposed::dequantize_per_tensor.out", "TSIIIIi"},
      {"quantized_decomposed::dequantize_per_channel.out", "TTtIIIIi"},
      {"quantized_decomposed::dequantize_per_channel_group.out", "TTtIIIII"},
      {"et_view.default", "TL"},
      {"view_copy.out", "TL"},
      {"permute_copy.out", "TL"},
      {"transpose_copy.int_out", "TII"},
      {"t_copy.out", "T"},
      {"unsqueeze_copy.out", "TI"},
      {"squeeze_copy.dim_out", "TI"},
      {"squeeze_copy.dims_out", "TL"},
      {"expand_copy.out", "TLB"},
      {"slice_copy.Tensor_out", "TIiiI"},
      {"cat.out", "VI"},
      {"select_copy.int_out", "TII"},
      {"split_copy.Tensor_out", "TII..."},
      {"split_with_sizes_copy.out", "TLI..."},
      {"unbind_copy.int_out", "TI..."},
      {"clone.out", "T*"},
      {"alias_copy.out", "T"},
      {"detach_copy.out", "T"},
      {"lift_fresh_copy.out", "T"},
      {"_clone_dim_order.out", "T**"},
      {"_to_dim_order_copy.out", "T**"},
      {"_to_copy.out", "T**"},
      {"add.out", "TTS"},
      {"sub.out", "TTS"},
      {"add.Scalar_out", "TSS"},
      {"sub.Scalar_out", "TSS"},
      {"rsub.Scalar_out", "TSS"},
      {"mul.out", "TT"},
      {"div.out", "TT"},
      {"maximum.out", "TT"},
      {"minimum.out", "TT"},
      {"atan2.out", "TT"},
      {"mul.Scalar_out", "TS"},
      {"div.Scalar_out", "TS"},
      {"pow.Tensor_Scalar_out", "TS"},
      {"neg.out", "T"},
      {"reciprocal.out", "T"},
#define ET_ROW(name, function) {#function ".out", "T"},
      ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
          {"abs.out", "T"},
      {"sign.out", "T"},
      {"floor.out", "T"},
      {"ceil.out", "T"},
      {"trunc.out", "T"},
      {"round.out", "T"},
      {"relu.out", "T"},
      {"sigmoid.out", "T"},
      {"tanh.out", "T"},
      {"gelu.out", "TC"},
      {"hardtanh.out", "TSS"},
      {"leaky_relu.out", "TS"},
      {"clamp.out", "Tss"},
      {"eq.Scalar_out", "TS"},
      {"ne.Scalar_out", "TS"},
      {"lt.Scalar_out", "TS"},
      {"le.Scalar_out", "TS"},
      {"gt.Scalar_out", "TS"},
      {"ge.Scalar_out", "TS"},
      {"eq.Tensor_out", "TT"},
      {"ne.Tensor_out", "TT"},
      {"lt.Tensor_out", "TT"},
      {"le.Tensor_out", "TT"},
      {"gt.Tensor_out", "TT"},
      {"ge.Tensor_out", "TT"},
      {"logical_not.out", "T"},
      {"bitwise_not.out", "T"},
      {"logical_and.out", "TT"},
      {"logical_or.out", "TT"},
      {"bitwise_or.Tensor_out", "TT"},
      {"bitwise_and.Tensor_out", "TT"},
      {"where.self_out", "TTT"},
      {"masked_fill.Scalar_out", "TTS"},
      {"any.out", "TIB"},
      {"full.out", "LS"},
      {"full_like.out", "TS*"},
      {"ones.out", "L"},
      {"zeros.out", "L"},
      {"scalar_tensor.out", "S"},
      {"arange.start_out", "SSS"},
      {"arange.out", "S"},
      {"tril.out", "TI"},
      {"triu.out", "TI"},
      {"mm.out", "TT"},
      {"bmm.out", "TT"},
      {"addmm.out", "TTTSS"},
      {"linear.out", "TTt"},
      {"_softmax.out", "TIB"},
      {"mean.out", "TlB*"},
      {"amax.out", "TLB"},
      {"amin.out", "TLB"},
      {"topk.values", "TIIBB..."},
      {"gather.out", "TITB"},
      {"var.correction_out", "Tl*B"},
      {"convolution.out", "TTtLLLBLI"},
      {"max_pool2d_with_indices.out", "TLLLLB..."},
      {"_native_batch_norm_legit_no_training.out", "TttTTSS..."},
  };
  return *table;
}

bool is_kind(const EValue& value, char kind) {
  switch (kind) {
    case 'T':
      return value.isTensor();
    case 'V':
      return value.isTensorList();
    case 'L':
      return value.isIntList();
    case 'I':
      return value.isInt();
    case 'S':
      return value.isScalar();
    case 'B':
      return value.isBool();
    case 'C':
      return value.isString();
    case '*':
      return true;
    default:
      return value.isNone() || is_kind(value, static_cast<char>(kind - 'a' + 'A'));
  }
}

bool has_item(const EValue& list, const EValue* value) {
  const auto items = list.payload.copyable_union.as_tensor_list_ptr->values();
  return std::find(items.begin(), items.end(), value) != items.end();
}

bool fits(std::string_view kinds, runtime::Span<EValue*> args) {
  const bool many = kinds.size() > 3 && kinds.substr(kinds.size() - 3) == "...";
  if (many) kinds.remove_suffix(3);
  if (args.size() < kinds.size() + 1) return false;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (!is_kind(*args[i], kinds[i])) return false;
  }
  const EValue& last = *args[args.size() - 1];
  if (!(many ? last.isTensorList() : last.isTensor())) return false;
  // An output must not be an operand as well, because the graph would take it for its own
  // definition.
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (size_t o = kinds.size(); o < args.size(); ++o) {
      if (args[i] == args[o] || (kinds[i] == 'V' && has_item(*args[i], args[o]))) return false;
    }
    if (many && has_item(last, args[i])) return false;
  }
  return true;
}

}  // namespace

Signature check_signature(std::string_view op, runtime::Span<EValue*> args) {
  const auto found = signatures().find(op);
  if (found == signatures().end()) return Signature::Unknown;
  return fits(found->second, args) ? Signature::Fits : Signature::Differs;
}

}  // namespace executorch::optimized
