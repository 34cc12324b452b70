/// The portable kernels under their conventional names: out variants with the operator schema's
/// parameters in schema order, the context first and the out tensors last.
///
/// A kernel resizes out tensors within their bounds. On bad arguments it logs one line, marks the
/// context failed and returns; out tensors then hold anything. In-place operators change `self`.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace torch::executor::native {

using executorch::aten::ArrayRef;
using executorch::aten::IntArrayRef;
using executorch::aten::MemoryFormat;
using executorch::aten::Scalar;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorList;
using executorch::runtime::KernelRuntimeContext;

using TensorPair = std::tuple<Tensor&, Tensor&>;
using TensorTriple = std::tuple<Tensor&, Tensor&, Tensor&>;
using TensorQuadruple = std::tuple<Tensor&, Tensor&, Tensor&, Tensor&>;

// Operators of one signature are declared by its type.
using UnaryOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
using BinaryOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                          Tensor& out);
using ScalarOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                          Tensor& out);

// Arithmetic of two or three operands (elementwise.cpp).
BinaryOut atan2_out, div_out, fill_tensor_out, floor_divide_out, fmod_Tensor_out, maximum_out,
    minimum_out, mul_out, pow_Tensor_Tensor_out, remainder_Tensor_out;
ScalarOut div_scalar_out, fill_scalar_out, fmod_Scalar_out, mul_scalar_out, pow_Tensor_Scalar_out,
    remainder_Scalar_out;
using ScaledBinaryOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                                const Scalar& alpha, Tensor& out);
ScaledBinaryOut add_out, sub_out;
using ScaledScalarOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                                const Scalar& alpha, Tensor& out);
ScaledScalarOut add_scalar_out, rsub_scalar_out, sub_scalar_out;
Tensor& clamp_out(KernelRuntimeContext& ctx, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max, Tensor& out);
Tensor& clamp_tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                         const std::optional<Tensor>& min, const std::optional<Tensor>& max,
                         Tensor& out);
Tensor& div_scalar_mode_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                            std::optional<std::string_view> rounding_mode, Tensor& out);
Tensor& div_out_mode(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                     std::optional<std::string_view> rounding_mode, Tensor& out);
Tensor& masked_fill_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mask,
                               const Scalar& value, Tensor& out);
Tensor& pow_Scalar_out(KernelRuntimeContext& ctx, const Scalar& self, const Tensor& exponent,
                       Tensor& out);
Tensor& where_out(KernelRuntimeContext& ctx, const Tensor& condition, const Tensor& self,
                  const Tensor& other, Tensor& out);

// Bitwise and logical (bitwise.cpp).
UnaryOut bitwise_not_out, logical_not_out;
BinaryOut bitwise_and_Tensor_out, bitwise_or_Tensor_out, bitwise_xor_Tensor_out,
    bitwise_left_shift_Tensor_out, bitwise_right_shift_Tensor_out, logical_and_out, logical_or_out,
    logical_xor_out;
ScalarOut bitwise_and_Scalar_out, bitwise_or_Scalar_out, bitwise_xor_Scalar_out,
    bitwise_left_shift_Tensor_Scalar_out, bitwise_right_shift_Tensor_Scalar_out;

// Comparisons (compare.cpp).
UnaryOut isinf_out, isnan_out;
BinaryOut eq_tensor_out, ge_tensor_out, gt_tensor_out, le_tensor_out, lt_tensor_out, ne_tensor_out;
ScalarOut eq_scalar_out, ge_scalar_out, gt_scalar_out, le_scalar_out, lt_scalar_out, ne_scalar_out;

// One operand (unary.cpp).
UnaryOut _conj_physical_out, abs_out, acos_out, acosh_out, asin_out, asinh_out, atan_out, atanh_out,
    ceil_out, cos_out, cosh_out, erf_out, exp_out, expm1_out, floor_out, log_out, log10_out,
    log1p_out, log2_out, neg_out, reciprocal_out, relu_out, round_out, rsqrt_out, sigmoid_out,
    sign_out, sin_out, sinh_out, sqrt_out, tan_out, tanh_out, trunc_out;
ScalarOut leaky_relu_out;
Tensor& elu_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& alpha,
                const Scalar& scale, const Scalar& input_scale, Tensor& out);
Tensor& gelu_out(KernelRuntimeContext& ctx, const Tensor& self, std::string_view approximate,
                 Tensor& out);
Tensor& hardtanh_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& min_val,
                     const Scalar& max_val, Tensor& out);
Tensor& logit_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<double> eps,
                  Tensor& out);

// Reductions and scans (reduce.cpp, extreme.cpp, scan.cpp).
UnaryOut any_all_out, max_unary_out, min_unary_out;
using DimsOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                        bool keepdim, Tensor& out);
DimsOut amax_out, amin_out;
Tensor& any_dims_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                     bool keepdim, Tensor& out);
Tensor& any_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                Tensor& out);
using IndexOfDimOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                              std::optional<int64_t> dim, bool keepdim, Tensor& out);
IndexOfDimOut argmax_out, argmin_out;
using RunningExtremeOut = TensorPair(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                                     Tensor& values, Tensor& indices);
RunningExtremeOut cummax_out, cummin_out;
using RunningOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                           std::optional<ScalarType> dtype, Tensor& out);
RunningOut cumprod_out, cumsum_out;
Tensor& logcumsumexp_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& out);
using DimExtremeOut = TensorPair(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                                 bool keepdim, Tensor& values, Tensor& indices);
DimExtremeOut max_out, min_out;
using DimsDtypeOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                             std::optional<IntArrayRef> dim, bool keepdim,
                             std::optional<ScalarType> dtype, Tensor& out);
DimsDtypeOut mean_dim_out, sum_dim_out;
using DtypeOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                         std::optional<ScalarType> dtype, Tensor& out);
DtypeOut mean_dtype_out, prod_out;
Tensor& prod_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool keepdim,
                     std::optional<ScalarType> dtype, Tensor& out);
Tensor& var_correction_out(KernelRuntimeContext& ctx, const Tensor& self,
                           std::optional<IntArrayRef> dim, const std::optional<Scalar>& correction,
                           bool keepdim, Tensor& out);
TensorPair var_mean_correction_out(KernelRuntimeContext& ctx, const Tensor& self,
                                   std::optional<IntArrayRef> dim,
                                   const std::optional<Scalar>& correction, bool keepdim,
                                   Tensor& out0, Tensor& out1);
Tensor& var_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<IntArrayRef> dim,
                bool unbiased, bool keepdim, Tensor& out);

// Softmax (softmax.cpp).
using SoftmaxOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                           bool half_to_float, Tensor& out);
SoftmaxOut log_softmax_out, softmax_out;

// Normalization (norm.cpp).
TensorTriple _native_batch_norm_legit_out(KernelRuntimeContext& ctx, const Tensor& input,
                                          const std::optional<Tensor>& weight,
                                          const std::optional<Tensor>& bias, Tensor& running_mean,
                                          Tensor& running_var, bool training, double momentum,
                                          double eps, Tensor& out, Tensor& save_mean,
                                          Tensor& save_invstd);
TensorTriple _native_batch_norm_legit_no_stats_out(KernelRuntimeContext& ctx, const Tensor& input,
                                                   const std::optional<Tensor>& weight,
                                                   const std::optional<Tensor>& bias, bool training,
                                                   double momentum, double eps, Tensor& out,
                                                   Tensor& save_mean, Tensor& save_invstd);
TensorTriple _native_batch_norm_legit_no_training_out(
    KernelRuntimeContext& ctx, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias, const Tensor& running_mean, const Tensor& running_var,
    double momentum, double eps, Tensor& out0, Tensor& out1, Tensor& out2);
TensorTriple native_group_norm_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   const std::optional<Tensor>& weight,
                                   const std::optional<Tensor>& bias, int64_t N, int64_t C,
                                   int64_t HxW, int64_t group, double eps, Tensor& out0,
                                   Tensor& out1, Tensor& out2);
TensorTriple native_layer_norm_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   IntArrayRef normalized_shape,
                                   const std::optional<Tensor>& weight,
                                   const std::optional<Tensor>& bias, double eps, Tensor& out0,
                                   Tensor& out1, Tensor& out2);

// Matrix products (matmul.cpp).
BinaryOut bmm_out, mm_out;
Tensor& addmm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mat1,
                  const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out);
Tensor& linear_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                   const std::optional<Tensor>& bias, Tensor& out);

// Convolution (conv.cpp).
Tensor& convolution_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                        int64_t groups, Tensor& out);
TensorTriple convolution_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                      const Tensor& input, const Tensor& weight,
                                      std::optional<IntArrayRef> bias_sizes, IntArrayRef stride,
                                      IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                      IntArrayRef output_padding, int64_t groups,
                                      ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                      Tensor& out2);

// Pooling (pool.cpp).
using AdaptiveAverageOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                                   IntArrayRef output_size, Tensor& out);
AdaptiveAverageOut _adaptive_avg_pool3d_out, _adaptive_avg_pool2d_out, adaptive_avg_pool1d_out;
Tensor& avg_pool1d_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool count_include_pad, Tensor& out);
using AveragePoolOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                               IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                               bool ceil_mode, bool count_include_pad,
                               std::optional<int64_t> divisor_override, Tensor& out);
AveragePoolOut avg_pool3d_out, avg_pool2d_out;
using MaxPoolOut = TensorPair(KernelRuntimeContext& ctx, const Tensor& self,
                              IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                              IntArrayRef dilation, bool ceil_mode, Tensor& out, Tensor& indices);
MaxPoolOut max_pool3d_with_indices_out, max_pool2d_with_indices_out;
using AdaptiveMaxOut = TensorPair(KernelRuntimeContext& ctx, const Tensor& self,
                                  IntArrayRef output_size, Tensor& out, Tensor& indices);
AdaptiveMaxOut adaptive_max_pool2d_out, adaptive_max_pool3d_out;
Tensor& max_pool2d_with_indices_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                             const Tensor& self, IntArrayRef kernel_size,
                                             IntArrayRef stride, IntArrayRef padding,
                                             IntArrayRef dilation, bool ceil_mode,
                                             const Tensor& indices, Tensor& grad_input);

// Windows added up to an image, col2im (fold.cpp).
Tensor& col2im_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef output_size,
                   IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                   IntArrayRef stride, Tensor& out);

// Resampling (resize.cpp, grid.cpp, shape.cpp).
using GridSamplerOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& grid,
                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                               Tensor& out);
GridSamplerOut grid_sampler_2d_out, grid_sampler_3d_out;
Tensor& pixel_shuffle_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t upscale_factor,
                          Tensor& out);
Tensor& pixel_unshuffle_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t downscale_factor,
                            Tensor& out);
Tensor& upsample_bilinear2d_vec_out(KernelRuntimeContext& ctx, const Tensor& input,
                                    std::optional<IntArrayRef> output_size, bool align_corners,
                                    std::optional<ArrayRef<double>> scale_factors, Tensor& out);
Tensor& _upsample_bilinear2d_aa_out(KernelRuntimeContext& ctx, const Tensor& self,
                                    IntArrayRef output_size, bool align_corners,
                                    std::optional<double> scales_h, std::optional<double> scales_w,
                                    Tensor& out);
Tensor& upsample_nearest2d_vec_out(KernelRuntimeContext& ctx, const Tensor& input,
                                   std::optional<IntArrayRef> output_size,
                                   std::optional<ArrayRef<double>> scale_factors, Tensor& out);

// Padding (pad.cpp).
Tensor& constant_pad_nd_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef pad,
                            const Scalar& value, Tensor& out);
using PadOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef padding,
                       Tensor& out);
PadOut reflection_pad1d_out, reflection_pad2d_out, reflection_pad3d_out, replication_pad1d_out,
    replication_pad2d_out, replication_pad3d_out;

// Indexing, gathering, scattering (index.cpp, gather.cpp, masked.cpp, scatter.cpp,
// embedding_bag.cpp).
UnaryOut nonzero_out;
BinaryOut masked_select_out;
Tensor& embedding_out(KernelRuntimeContext& ctx, const Tensor& weight, const Tensor& indices,
                      int64_t padding_idx, bool scale_grad_by_freq, bool sparse, Tensor& out);
Tensor& gather_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, const Tensor& index,
                   bool sparse_grad, Tensor& out);
Tensor& index_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                         ArrayRef<std::optional<Tensor>> indices, Tensor& out);
Tensor& index_put_out(KernelRuntimeContext& ctx, const Tensor& self,
                      ArrayRef<std::optional<Tensor>> indices, const Tensor& values,
                      bool accumulate, Tensor& out);
Tensor& index_put_(KernelRuntimeContext& ctx, Tensor& self, ArrayRef<std::optional<Tensor>> indices,
                   const Tensor& values, bool accumulate);
using EmbeddingBagOut = TensorQuadruple(KernelRuntimeContext& ctx, const Tensor& weight,
                                        const Tensor& indices, const Tensor& offsets,
                                        bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        const std::optional<Tensor>& per_sample_weights,
                                        bool include_last_offset, int64_t padding_idx, Tensor& out0,
                                        Tensor& out1, Tensor& out2, Tensor& out3);
EmbeddingBagOut _embedding_bag_out, _embedding_bag_forward_only_out;
Tensor& index_select_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                         const Tensor& index, Tensor& out);
Tensor& masked_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mask,
                           const Tensor& source, Tensor& out);
Tensor& repeat_interleave_Tensor_out(KernelRuntimeContext& ctx, const Tensor& repeats,
                                     std::optional<int64_t> output_size, Tensor& out);
using ScatterOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                           const Tensor& index, const Tensor& src, Tensor& out);
ScatterOut scatter_src_out, scatter_add_out;
Tensor& scatter_value_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                          const Tensor& index, const Scalar& value, Tensor& out);
Tensor& scatter_reduce_two_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self, Tensor& out);
Tensor& select_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                           int64_t dim, int64_t index, Tensor& out);
Tensor& slice_scatter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                          int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                          int64_t step, Tensor& out);

// Creation of tensors (create.cpp).
Tensor& arange_out(KernelRuntimeContext& ctx, const Scalar& end, Tensor& out);
Tensor& arange_start_out(KernelRuntimeContext& ctx, const Scalar& start, const Scalar& end,
                         const Scalar& step, Tensor& out);
Tensor& empty_out(KernelRuntimeContext& ctx, IntArrayRef size,
                  std::optional<MemoryFormat> memory_format, Tensor& out);
Tensor& empty_strided_out(KernelRuntimeContext& ctx, IntArrayRef size, IntArrayRef stride,
                          Tensor& out);
Tensor& full_out(KernelRuntimeContext& ctx, IntArrayRef size, const Scalar& fill_value,
                 Tensor& out);
Tensor& full_like_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& fill_value,
                      std::optional<MemoryFormat> memory_format, Tensor& out);
TensorPair native_dropout_out(KernelRuntimeContext& ctx, const Tensor& input, double p,
                              std::optional<bool> train, Tensor& out0, Tensor& out1);
using SizeOut = Tensor&(KernelRuntimeContext& ctx, IntArrayRef size, Tensor& out);
SizeOut ones_out, rand_out, randn_out, zeros_out;
using LikeOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self,
                        std::optional<MemoryFormat> memory_format, Tensor& out);
LikeOut rand_like_out, randn_like_out;
Tensor& randint_out(KernelRuntimeContext& ctx, int64_t high, IntArrayRef size, Tensor& out);
Tensor& randint_low_out(KernelRuntimeContext& ctx, int64_t low, int64_t high, IntArrayRef size,
                        Tensor& out);
Tensor& randperm_out(KernelRuntimeContext& ctx, int64_t n, Tensor& out);
Tensor& scalar_tensor_out(KernelRuntimeContext& ctx, const Scalar& s, Tensor& out);
using TriangleOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, int64_t diagonal,
                            Tensor& out);
TriangleOut tril_out, triu_out;
Tensor& _empty_dim_order_out(KernelRuntimeContext& ctx, IntArrayRef size,
                             std::optional<IntArrayRef> dim_order, Tensor& out);

// Ordering (sort.cpp).
TensorPair kthvalue_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t k, int64_t dim,
                           bool keepdim, Tensor& values, Tensor& indices);
DimExtremeOut median_dim_values;
TensorPair sort_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool descending,
                       Tensor& values, Tensor& indices);
TensorPair topk_values(KernelRuntimeContext& ctx, const Tensor& self, int64_t k, int64_t dim,
                       bool largest, bool sorted, Tensor& values, Tensor& indices);

// Distances (distance.cpp).
Tensor& _cdist_forward_out(KernelRuntimeContext& ctx, const Tensor& x1, const Tensor& x2, double p,
                           std::optional<int64_t> compute_mode, Tensor& out);
Tensor& _pdist_forward_out(KernelRuntimeContext& ctx, const Tensor& self, double p, Tensor& out);

// Complex numbers and Fourier transforms (complex.cpp, fft.cpp).
UnaryOut _conj_copy_out, view_as_complex_copy_out;
Tensor& complex_out(KernelRuntimeContext& ctx, const Tensor& real, const Tensor& imag, Tensor& out);
Tensor& _fft_c2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool forward, Tensor& out);
Tensor& _fft_c2r_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, int64_t last_dim_size, Tensor& out);
Tensor& _fft_r2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool onesided, Tensor& out);

// Beyond core ATen (special.cpp, gamma.cpp, search.cpp, unique.cpp).
UnaryOut angle_out, digamma_out, erfc_out, erfinv_out, exp2_out, i0_out, lgamma_out, signbit_out,
    special_bessel_j0_out, special_bessel_j1_out, special_bessel_y0_out, special_bessel_y1_out,
    special_erfcx_out, special_i0e_out, special_i1_out, special_i1e_out,
    special_modified_bessel_i0_out, special_modified_bessel_i1_out, special_modified_bessel_k0_out,
    special_modified_bessel_k1_out, special_ndtri_out, special_scaled_modified_bessel_k0_out,
    special_scaled_modified_bessel_k1_out, special_spherical_bessel_j0_out;
BinaryOut copysign_out, fmax_out, fmin_out, gcd_out, hypot_out, igamma_out, igammac_out, lcm_out,
    nextafter_out, special_zeta_out;
Tensor& polygamma_out(KernelRuntimeContext& ctx, int64_t n, const Tensor& self, Tensor& out);
Tensor& bincount_out(KernelRuntimeContext& ctx, const Tensor& self,
                     const std::optional<Tensor>& weights, int64_t minlength, Tensor& out);
TensorTriple _unique2_out(KernelRuntimeContext& ctx, const Tensor& self, bool sorted,
                          bool return_inverse, bool return_counts, Tensor& out0, Tensor& out1,
                          Tensor& out2);
TensorTriple unique_consecutive_out(KernelRuntimeContext& ctx, const Tensor& self,
                                    bool return_inverse, bool return_counts,
                                    std::optional<int64_t> dim, Tensor& out0, Tensor& out1,
                                    Tensor& out2);
TensorTriple unique_dim_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, bool sorted,
                            bool return_inverse, bool return_counts, Tensor& out0, Tensor& out1,
                            Tensor& out2);
Tensor& round_decimals_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t decimals,
                           Tensor& out);
Tensor& bucketize_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                             const Tensor& boundaries, bool out_int32, bool right, Tensor& out);
Tensor& searchsorted_Tensor_out(KernelRuntimeContext& ctx, const Tensor& sorted_sequence,
                                const Tensor& self, bool out_int32, bool right,
                                std::optional<std::string_view> side,
                                const std::optional<Tensor>& sorter, Tensor& out);

// Factorizations and the systems that they solve (linalg.cpp).
TensorTriple _linalg_det_result(KernelRuntimeContext& ctx, const Tensor& A, Tensor& value,
                                Tensor& LU, Tensor& pivots);
TensorPair _linalg_eigh_eigenvalues(KernelRuntimeContext& ctx, const Tensor& A,
                                    std::string_view UPLO, bool compute_v, Tensor& eigenvalues,
                                    Tensor& eigenvectors);
TensorQuadruple _linalg_slogdet_sign(KernelRuntimeContext& ctx, const Tensor& A, Tensor& sign,
                                     Tensor& logabsdet, Tensor& LU, Tensor& pivots);
TensorQuadruple _linalg_solve_ex_result(KernelRuntimeContext& ctx, const Tensor& A, const Tensor& B,
                                        bool left, bool check_errors, Tensor& X, Tensor& LU,
                                        Tensor& pivots, Tensor& info);
TensorTriple _linalg_svd_U(KernelRuntimeContext& ctx, const Tensor& A, bool full_matrices,
                           bool compute_uv, std::optional<std::string_view> driver, Tensor& U,
                           Tensor& S, Tensor& Vh);
TensorPair linalg_cholesky_ex_L(KernelRuntimeContext& ctx, const Tensor& self, bool upper,
                                bool check_errors, Tensor& L, Tensor& info);
TensorPair linalg_inv_ex_inverse(KernelRuntimeContext& ctx, const Tensor& A, bool check_errors,
                                 Tensor& inverse, Tensor& info);
TensorTriple linalg_lu_factor_ex_out(KernelRuntimeContext& ctx, const Tensor& A, bool pivot,
                                     bool check_errors, Tensor& LU, Tensor& pivots, Tensor& info);
TensorPair linalg_qr_out(KernelRuntimeContext& ctx, const Tensor& A, std::string_view mode,
                         Tensor& Q, Tensor& R);
Tensor& linalg_solve_triangular_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& B,
                                    bool upper, bool left, bool unitriangular, Tensor& out);

// Gradients (gradient.cpp).
Tensor& _adaptive_avg_pool2d_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                          const Tensor& self, Tensor& out);
Tensor& avg_pool2d_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                                std::optional<int64_t> divisor_override, Tensor& grad_input);
Tensor& embedding_dense_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_output,
                                     const Tensor& indices, int64_t num_weights,
                                     int64_t padding_idx, bool scale_grad_by_freq, Tensor& out);
TensorTriple native_group_norm_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_out,
                                            const Tensor& input, const Tensor& mean,
                                            const Tensor& rstd, const std::optional<Tensor>& weight,
                                            int64_t N, int64_t C, int64_t HxW, int64_t group,
                                            ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                            Tensor& out2);
TensorTriple native_layer_norm_backward_out(KernelRuntimeContext& ctx, const Tensor& grad_out,
                                            const Tensor& input, IntArrayRef normalized_shape,
                                            const Tensor& mean, const Tensor& rstd,
                                            const std::optional<Tensor>& weight,
                                            const std::optional<Tensor>& bias,
                                            ArrayRef<bool> output_mask, Tensor& out0, Tensor& out1,
                                            Tensor& out2);

// Copies and views (shape.cpp).
UnaryOut alias_copy_out, detach_copy_out, lift_fresh_copy_out, t_copy_out, view_as_real_copy_out,
    _h2d_copy_out, _d2h_copy_out;
Tensor& to_copy_out(KernelRuntimeContext& ctx, const Tensor& self, bool non_blocking,
                    std::optional<MemoryFormat> memory_format, Tensor& out);
Tensor& as_strided_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size,
                            IntArrayRef stride, std::optional<int64_t> storage_offset, Tensor& out);
using ConcatenationOut = Tensor&(KernelRuntimeContext& ctx, TensorList tensors, int64_t dim,
                                 Tensor& out);
ConcatenationOut cat_out, stack_out;
Tensor& clone_out(KernelRuntimeContext& ctx, const Tensor& self,
                  std::optional<MemoryFormat> memory_format, Tensor& out);
Tensor& copy_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& src,
                 bool non_blocking, Tensor& out);
Tensor& copy_(KernelRuntimeContext& ctx, Tensor& self, const Tensor& src, bool non_blocking);
Tensor& diagonal_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t offset,
                          int64_t dim1, int64_t dim2, Tensor& out);
Tensor& expand_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size,
                        bool implicit, Tensor& out);
Tensor& flip_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dims, Tensor& out);
Tensor& glu_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& out);
Tensor& narrow_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, int64_t start,
                        int64_t length, Tensor& out);
Tensor& permute_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dims,
                         Tensor& out);
Tensor& repeat_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef repeats, Tensor& out);
Tensor& roll_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef shifts,
                 IntArrayRef dims, Tensor& out);
Tensor& select_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                            int64_t index, Tensor& out);
Tensor& slice_copy_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                              std::optional<int64_t> start, std::optional<int64_t> end,
                              int64_t step, Tensor& out);
void split_copy_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t split_size,
                           int64_t dim, TensorList out);
void split_with_sizes_copy_out(KernelRuntimeContext& ctx, const Tensor& self,
                               IntArrayRef split_sizes, int64_t dim, TensorList out);
Tensor& squeeze_copy_dim_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                             Tensor& out);
Tensor& squeeze_copy_dims_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                              Tensor& out);
Tensor& transpose_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim0,
                               int64_t dim1, Tensor& out);
void unbind_copy_int_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim,
                         TensorList out);
Tensor& unfold_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dimension,
                        int64_t size, int64_t step, Tensor& out);
Tensor& unsqueeze_copy_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t dim, Tensor& out);
Tensor& view_copy_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef size, Tensor& out);
Tensor& view_copy_dtype_out(KernelRuntimeContext& ctx, const Tensor& self, ScalarType dtype,
                            Tensor& out);
using DimOrderOut = Tensor&(KernelRuntimeContext& ctx, const Tensor& self, bool non_blocking,
                            std::optional<IntArrayRef> dim_order, Tensor& out);
DimOrderOut _to_dim_order_copy_out, _clone_dim_order_out;

}  // namespace torch::executor::native
