#include <executorch/cpu/nn/depthwise.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/depthwise_pixels-inl.h>
#include <executorch/cpu/nn/depthwise_planes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

template <class T>
const DepthwiseKernels<T>& DepthwiseOf() {
  static constexpr DepthwiseKernels<T> kTable = {depthwise::Planes<T>, depthwise::PlaneFloats<T>,
                                                 depthwise::Pixels<T>};
  return kTable;
}
const DepthwiseKernels<float>& FloatDepthwise() {
  return DepthwiseOf<float>();
}
const DepthwiseKernels<F16>& F16Depthwise() {
  return DepthwiseOf<F16>();
}
const DepthwiseKernels<BF16>& BF16Depthwise() {
  return DepthwiseOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(FloatDepthwise);
HWY_EXPORT(F16Depthwise);
HWY_EXPORT(BF16Depthwise);

template <>
const DepthwiseKernels<float>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(FloatDepthwise)();
}
template <>
const DepthwiseKernels<F16>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(F16Depthwise)();
}
template <>
const DepthwiseKernels<BF16>& depthwise_kernels() {
  return HWY_DYNAMIC_DISPATCH(BF16Depthwise)();
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
