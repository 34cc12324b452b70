#include <executorch/cpu/nn/depthwise.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/depthwise_pixels-inl.h>
#include <executorch/cpu/nn/depthwise_planes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

template <class T>
const DepthwiseKernels<T>& DepthwiseOf() {
  static constexpr DepthwiseKernels<T> kTable = {depthwise::Planes<T>, depthwise::PlaneFloats<T>,
                                                 depthwise::Pixels<T>};
  return kTable;
}
#define ET_ROW(T, name)                          \
  const DepthwiseKernels<T>& name##Depthwise() { \
    return DepthwiseOf<T>();                     \
  }
ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

#define ET_ROW(T, name)                             \
  HWY_EXPORT(name##Depthwise);                      \
  template <>                                       \
  const DepthwiseKernels<T>& depthwise_kernels() {  \
    return HWY_DYNAMIC_DISPATCH(name##Depthwise)(); \
  }
ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
#endif  // HWY_ONCE
