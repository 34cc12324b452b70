/// The quantized kernels under their conventional names, in the manner of the portable ones
/// (kernels/portable/functions.h).
///
///   quantize    q = clamp(round(x / scale) + zero_point, quant_min, quant_max), ties to even;
///               per token and per group round(x / scale + zero_point). NaN gives quant_min.
///   dequantize  x = (q - zero_point) * scale
///
/// x is Float, Double, Half or BFloat16; q any integer type; scales Float or Double (in which is
/// computed; per tensor always in float), zero points of any real type.
#pragma once

#include <executorch/kernels/portable/functions.h>

namespace torch::executor::native {

// One scale for all (quantize.cpp, dequantize.cpp).
Tensor& quantize_per_tensor_out(KernelRuntimeContext& ctx, const Tensor& input, double scale,
                                int64_t zero_point, int64_t quant_min, int64_t quant_max,
                                ScalarType dtype, Tensor& out);
Tensor& quantize_per_tensor_tensor_args_out(KernelRuntimeContext& ctx, const Tensor& input,
                                            const Tensor& scale, const Tensor& zero_point,
                                            int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                            Tensor& out);
Tensor& quantize_per_tensor_tensor2_out(KernelRuntimeContext& ctx, const Tensor& input,
                                        const Tensor& scale, const Tensor& zero_point,
                                        const Tensor& quant_min, const Tensor& quant_max,
                                        ScalarType dtype, Tensor& out);
Tensor& dequantize_per_tensor_out(KernelRuntimeContext& ctx, const Tensor& input, double scale,
                                  int64_t zero_point, int64_t quant_min, int64_t quant_max,
                                  ScalarType dtype, std::optional<ScalarType> out_dtype,
                                  Tensor& out);
Tensor& dequantize_per_tensor_tensor_args_out(KernelRuntimeContext& ctx, const Tensor& input,
                                              const Tensor& scale, const Tensor& zero_point,
                                              int64_t quant_min, int64_t quant_max,
                                              ScalarType dtype, std::optional<ScalarType> out_dtype,
                                              Tensor& out);
Tensor& dequantize_per_tensor_tensor2_out(KernelRuntimeContext& ctx, const Tensor& input,
                                          const Tensor& scale, const Tensor& zero_point,
                                          const Tensor& quant_min, const Tensor& quant_max,
                                          ScalarType dtype, std::optional<ScalarType> out_dtype,
                                          Tensor& out);

// A scale per index along `axis`, per row of the last dim, per group in a row of a matrix.
Tensor& quantize_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                 const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                 int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                 Tensor& out);
Tensor& dequantize_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& scales, const std::optional<Tensor>& zero_points,
                                   int64_t axis, int64_t quant_min, int64_t quant_max,
                                   ScalarType dtype, std::optional<ScalarType> out_dtype,
                                   Tensor& out);
Tensor& fake_quant_per_channel_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                   int64_t quant_min, int64_t quant_max, Tensor& out);
Tensor& quantize_per_token_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t quant_min, int64_t quant_max,
                               ScalarType dtype, Tensor& out);
Tensor& dequantize_per_token_out(KernelRuntimeContext& ctx, const Tensor& input,
                                 const Tensor& scales, const Tensor& zero_points, int64_t quant_min,
                                 int64_t quant_max, ScalarType dtype, ScalarType output_dtype,
                                 Tensor& out);
Tensor& quantize_per_channel_group_out(KernelRuntimeContext& ctx, const Tensor& input,
                                       const Tensor& scales, const Tensor& zero_points,
                                       int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                       int64_t group_size, Tensor& out);
Tensor& dequantize_per_channel_group_out(KernelRuntimeContext& ctx, const Tensor& input,
                                         const Tensor& scales,
                                         const std::optional<Tensor>& zero_points,
                                         int64_t quant_min, int64_t quant_max, ScalarType dtype,
                                         int64_t group_size, ScalarType output_dtype, Tensor& out);
Tensor& convert_element_type_no_fuse_out(KernelRuntimeContext& ctx, const Tensor& input,
                                         ScalarType dtype, Tensor& out);

// Scales and zero points from the data's range (choose_qparams.cpp).
TensorPair choose_qparams_tensor_out(KernelRuntimeContext& ctx, const Tensor& input,
                                     int64_t quant_min, int64_t quant_max, double eps,
                                     ScalarType dtype, Tensor& scale_out, Tensor& zero_point_out);
TensorPair choose_qparams_symmetric_tensor_out(KernelRuntimeContext& ctx, const Tensor& input,
                                               int64_t quant_min, int64_t quant_max, double eps,
                                               ScalarType dtype, Tensor& scale_out,
                                               Tensor& zero_point_out);
TensorPair choose_qparams_per_token_out(KernelRuntimeContext& ctx, const Tensor& input,
                                        ScalarType dtype, Tensor& scale_out,
                                        Tensor& zero_point_out);
TensorPair choose_qparams_per_token_asymmetric_out(KernelRuntimeContext& ctx, const Tensor& input,
                                                   ScalarType dtype, Tensor& scale_out,
                                                   Tensor& zero_point_out);

// Rows of a table of 8, 4 or 2 bits per value, dequantized (embedding.cpp). Scales are [rows] or
// [rows, groups]. Four bits: a byte's high half first, less 8; two bits: its low pair first,
// less 2.
using QuantizedEmbedding = Tensor&(KernelRuntimeContext& ctx, const Tensor& weight,
                                   const Tensor& weight_scales,
                                   const std::optional<Tensor>& weight_zero_points,
                                   int64_t weight_quant_min, int64_t weight_quant_max,
                                   const Tensor& indices, Tensor& out);
using QuantizedEmbeddingDtype = Tensor&(KernelRuntimeContext& ctx, const Tensor& weight,
                                        const Tensor& weight_scales,
                                        const std::optional<Tensor>& weight_zero_points,
                                        int64_t weight_quant_min, int64_t weight_quant_max,
                                        const Tensor& indices, std::optional<ScalarType> dtype,
                                        Tensor& out);
QuantizedEmbedding quantized_embedding_byte_out, quantized_embedding_2bit_out,
    quantized_embedding_4bit_out;
QuantizedEmbeddingDtype quantized_embedding_byte_dtype_out, quantized_embedding_2bit_dtype_out,
    quantized_embedding_4bit_dtype_out;

// Products of floats with integer weights (mixed.cpp), and a sum of quantized tensors (add.cpp).
/// weight [k, n] with a scale for each of the k rows
Tensor& quantized_mixed_mm_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                               const Tensor& weight_scales,
                               const std::optional<Tensor>& weight_zero_points, Tensor& out);
/// weight [n, k] with scales [n] or [n, groups of the k columns]
Tensor& quantized_mixed_linear_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const Tensor& weight, const Tensor& weight_scales,
                                   const std::optional<Tensor>& weight_zero_points,
                                   std::optional<ScalarType> dtype, Tensor& out);
Tensor& quantized_add_out(KernelRuntimeContext& ctx, const Tensor& a, double a_scale,
                          int64_t a_zero_point, int64_t a_quant_min, int64_t a_quant_max,
                          const Tensor& b, double b_scale, int64_t b_zero_point,
                          int64_t b_quant_min, int64_t b_quant_max, double out_scale,
                          int64_t out_zero_point, int64_t out_quant_min, int64_t out_quant_max,
                          Tensor& out);

}  // namespace torch::executor::native
