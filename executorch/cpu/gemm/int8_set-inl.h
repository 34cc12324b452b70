// One set of kernels, in namespace ET_INT8_SET; included by int8_kernels.cpp once for each, with what
// int8_kernels-inl.h asks for defined.
namespace executorch::cpu::int8::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace executorch::cpu::HWY_NAMESPACE;
namespace ET_INT8_SET {
#include <executorch/cpu/gemm/int8_kernels-inl.h>
}  // namespace ET_INT8_SET
}  // namespace executorch::cpu::int8::HWY_NAMESPACE
#undef ET_INT8_SET
#undef ET_INT8_ATTR
