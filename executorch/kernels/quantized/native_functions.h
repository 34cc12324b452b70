/// The quantized kernels of functions.h, and the same without a context, as programs call them that
/// have none. What such a call refuses is logged only, and out tensors then hold anything.
#pragma once

#include <utility>

// First: from below on these names are those of two functions each, whose address cannot be taken.
#include <executorch/kernels/quantized/Functions.h>

namespace torch::executor::native {

#define ET_WITHOUT_CONTEXT(kernel)                                    \
  template <class... Arguments>                                       \
  auto kernel(const Tensor& input, Arguments&&... arguments)          \
      ->decltype(kernel(std::declval<KernelRuntimeContext&>(), input, \
                        std::forward<Arguments>(arguments)...)) {     \
    KernelRuntimeContext ctx;                                         \
    return kernel(ctx, input, std::forward<Arguments>(arguments)...); \
  }

ET_WITHOUT_CONTEXT(choose_qparams_per_token_asymmetric_out)
ET_WITHOUT_CONTEXT(choose_qparams_per_token_out)
ET_WITHOUT_CONTEXT(choose_qparams_symmetric_tensor_out)
ET_WITHOUT_CONTEXT(choose_qparams_tensor_out)
ET_WITHOUT_CONTEXT(dequantize_per_channel_group_out)
ET_WITHOUT_CONTEXT(dequantize_per_channel_out)
ET_WITHOUT_CONTEXT(dequantize_per_tensor_out)
ET_WITHOUT_CONTEXT(dequantize_per_tensor_tensor2_out)
ET_WITHOUT_CONTEXT(dequantize_per_tensor_tensor_args_out)
ET_WITHOUT_CONTEXT(dequantize_per_token_out)
ET_WITHOUT_CONTEXT(quantize_per_channel_group_out)
ET_WITHOUT_CONTEXT(quantize_per_channel_out)
ET_WITHOUT_CONTEXT(quantize_per_tensor_out)
ET_WITHOUT_CONTEXT(quantize_per_tensor_tensor2_out)
ET_WITHOUT_CONTEXT(quantize_per_tensor_tensor_args_out)
ET_WITHOUT_CONTEXT(quantize_per_token_out)
ET_WITHOUT_CONTEXT(quantized_add_out)
ET_WITHOUT_CONTEXT(quantized_embedding_2bit_dtype_out)
ET_WITHOUT_CONTEXT(quantized_embedding_2bit_out)
ET_WITHOUT_CONTEXT(quantized_embedding_4bit_dtype_out)
ET_WITHOUT_CONTEXT(quantized_embedding_4bit_out)
ET_WITHOUT_CONTEXT(quantized_embedding_byte_dtype_out)
ET_WITHOUT_CONTEXT(quantized_embedding_byte_out)
ET_WITHOUT_CONTEXT(quantized_mixed_linear_out)
ET_WITHOUT_CONTEXT(quantized_mixed_mm_out)

#undef ET_WITHOUT_CONTEXT

}  // namespace torch::executor::native
