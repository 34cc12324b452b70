// The integer rows of the table of microkernels. One of Highway's targets has several instruction
// sets here if only some of its machines can multiply and add quads of bytes, or multiply small
// matrices of them.
#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/tile_config.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/prefetch.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/gemm/int8_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include <executorch/cpu/nn/transpose-inl.h>
#include <executorch/cpu/storage-inl.h>

// GCC 12 warns about the undefined operands inside its own intrinsics.
#if HWY_COMPILER_GCC
#pragma GCC diagnostic ignored "-Wuninitialized"
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

HWY_BEFORE_NAMESPACE();
#define ET_INT8_DOT 0
#define ET_INT8_MATMUL 0
#define ET_INT8_ATTR HWY_ATTR
#define ET_INT8_SET plain
#include <executorch/cpu/gemm/int8_set-inl.h>
#undef ET_INT8_DOT
HWY_AFTER_NAMESPACE();

// The compiler's names of the instructions, beyond those of Highway's target, that multiply and add
// quads (ET_DOT_TARGET), and that multiply small matrices (ET_MATMUL_TARGET).
#undef ET_DOT_TARGET
#undef ET_MATMUL_TARGET
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 64
#define ET_DOT_TARGET HWY_TARGET_STR ",avx512vnni"
#if HWY_ARCH_X86_64 && defined(__linux__)
#define ET_MATMUL_TARGET ET_DOT_TARGET ",amx-tile,amx-int8"
#endif
#elif HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 32
#define ET_DOT_TARGET HWY_TARGET_STR ",avxvnni"
#elif HWY_ARCH_ARM_A64 && HWY_COMPILER_GCC
#define ET_DOT_TARGET "arch=armv8.2-a+crypto+dotprod"
#define ET_MATMUL_TARGET ET_DOT_TARGET "+i8mm"
#endif
#ifdef ET_DOT_TARGET
HWY_PUSH_ATTRIBUTES(ET_DOT_TARGET)
#define ET_INT8_DOT 1
#define ET_INT8_ATTR __attribute__((target(ET_DOT_TARGET)))
#define ET_INT8_SET dot
#include <executorch/cpu/gemm/int8_set-inl.h>
HWY_POP_ATTRIBUTES
#endif
#undef ET_INT8_MATMUL
#ifdef ET_MATMUL_TARGET
HWY_PUSH_ATTRIBUTES(ET_MATMUL_TARGET)
#define ET_INT8_MATMUL 1
#define ET_INT8_ATTR __attribute__((target(ET_MATMUL_TARGET)))
#define ET_INT8_SET matmul
#include <executorch/cpu/gemm/int8_set-inl.h>
#undef ET_INT8_MATMUL
HWY_POP_ATTRIBUTES
#endif
#undef ET_INT8_DOT

namespace executorch::cpu::gemm {

bool has_dot(int64_t target);
bool has_int8_matmul();

#ifdef ET_MATMUL_TARGET
template <>
bool fill<Source::Int8Matmul, HWY_TARGET>(Kernels& kernels) {
  kernels.int8 = int8::HWY_NAMESPACE::matmul::kKernels;
  return has_int8_matmul();
}
#endif
#ifdef ET_DOT_TARGET
template <>
bool fill<Source::Int8Dot, HWY_TARGET>(Kernels& kernels) {
  kernels.int8 = int8::HWY_NAMESPACE::dot::kKernels;
  return has_dot(HWY_TARGET);
}
#endif
template <>
bool fill<Source::Int8, HWY_TARGET>(Kernels& kernels) {
  kernels.int8 = int8::HWY_NAMESPACE::plain::kKernels;
  return true;
}

}  // namespace executorch::cpu::gemm

#if HWY_ONCE
#if HWY_ARCH_X86 && HWY_COMPILER_GCC
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace executorch::cpu::gemm {

/// Whether this machine, which supports `target`, can multiply and add quads in one instruction.
bool has_dot([[maybe_unused]] int64_t target) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC
  if (target <= HWY_AVX3) return __builtin_cpu_supports("avx512vnni");
  unsigned a = 0, b = 0, c = 0, d = 0;  // not every compiler knows the name of AVX-VNNI
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
  constexpr unsigned long kDotProduct = 1 << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
#elif HWY_ARCH_ARM_A64 && defined(__APPLE__)
  return true;
#else
  return false;
#endif
}

/// Whether this machine has instructions that multiply small matrices, and the system lets this
/// process use them.
bool has_int8_matmul() {
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC && defined(__linux__)
  constexpr unsigned kMatrices = 3u << 24;  // AMX-TILE and AMX-INT8
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kMatrices) != kMatrices) return false;
  // Linux (5.16 and later) lets a process use these registers only if it asks for permission.
  constexpr long kRequest = 0x1023, kMatrixData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return has_dot(HWY_AVX3) && syscall(SYS_arch_prctl, kRequest, kMatrixData) == 0;
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
  constexpr unsigned long kI8mm = 1 << 13;  // HWCAP2_I8MM
  return has_dot(HWY_STATIC_TARGET) && (getauxval(AT_HWCAP2) & kI8mm) != 0;
#else
  return false;
#endif
}

bool fill_int8(Source set, int64_t target, Kernels& kernels) {
  if (set == Source::Int8Matmul) return fill_for<Source::Int8Matmul>(target, kernels);
  if (set == Source::Int8Dot) return fill_for<Source::Int8Dot>(target, kernels);
  return fill_for<Source::Int8>(target, kernels);
}

}  // namespace executorch::cpu::gemm
#endif  // HWY_ONCE
