// The int8 kernels of all instruction sets, and the choice among them. Of a target of Highway there
// are more sets than one where some of its machines multiply and add quads of bytes, or blocks.
#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/prefetch.h>

#include <array>
#include <atomic>
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

// GCC 12 takes the undefined operands inside its own intrinsics for mistakes.
#if HWY_COMPILER_GCC
#pragma GCC diagnostic ignored "-Wuninitialized"
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

HWY_BEFORE_NAMESPACE();
#define ET_INT8_DOT 0
#define ET_INT8_BLOCKS 0
#define ET_INT8_ATTR HWY_ATTR
#define ET_INT8_SET plain
#include <executorch/cpu/gemm/int8_set-inl.h>
#undef ET_INT8_DOT
HWY_AFTER_NAMESPACE();

// What a machine has that multiplies and adds quads, beyond Highway's target; and blocks of rows and
// columns.
#undef ET_DOT_TARGET
#undef ET_BLOCKS_TARGET
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 64
#define ET_DOT_TARGET HWY_TARGET_STR ",avx512vnni"
#elif HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_MAX_BYTES == 32
#define ET_DOT_TARGET HWY_TARGET_STR ",avxvnni"
#elif HWY_ARCH_ARM_A64 && HWY_COMPILER_GCC
#define ET_DOT_TARGET "arch=armv8.2-a+crypto+dotprod"
#define ET_BLOCKS_TARGET ET_DOT_TARGET "+i8mm"
#endif
#ifdef ET_DOT_TARGET
HWY_PUSH_ATTRIBUTES(ET_DOT_TARGET)
#define ET_INT8_DOT 1
#define ET_INT8_ATTR __attribute__((target(ET_DOT_TARGET)))
#define ET_INT8_SET dot
#include <executorch/cpu/gemm/int8_set-inl.h>
HWY_POP_ATTRIBUTES
#endif
#undef ET_INT8_BLOCKS
#ifdef ET_BLOCKS_TARGET
HWY_PUSH_ATTRIBUTES(ET_BLOCKS_TARGET)
#define ET_INT8_BLOCKS 1
#define ET_INT8_ATTR __attribute__((target(ET_BLOCKS_TARGET)))
#define ET_INT8_SET blocks
#include <executorch/cpu/gemm/int8_set-inl.h>
#undef ET_INT8_BLOCKS
HWY_POP_ATTRIBUTES
#endif
#undef ET_INT8_DOT

namespace executorch::cpu::int8 {

bool has_dot(int64_t target);
bool has_blocks();

template <>
void add_sets<HWY_TARGET>(Sets& sets) {
#ifdef ET_BLOCKS_TARGET
  if (has_blocks()) sets.add(HWY_NAMESPACE::blocks::kKernels, HWY_TARGET);
#endif
#ifdef ET_DOT_TARGET
  if (has_dot(HWY_TARGET)) sets.add(HWY_NAMESPACE::dot::kKernels, HWY_TARGET);
#endif
  sets.add(HWY_NAMESPACE::plain::kKernels, HWY_TARGET);
}

}  // namespace executorch::cpu::int8

#if HWY_ONCE
#if HWY_ARCH_X86 && HWY_COMPILER_GCC
#include <cpuid.h>
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace executorch::cpu::int8 {

/// Whether this machine, which has a target, multiplies and adds quads.
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

/// Whether it has ARM's instructions for blocks.
bool has_blocks() {
#if HWY_ARCH_ARM_A64 && defined(__linux__)
  constexpr unsigned long kInt8Blocks = 1 << 13;  // HWCAP2_I8MM
  return has_dot(HWY_STATIC_TARGET) && (getauxval(AT_HWCAP2) & kInt8Blocks) != 0;
#else
  return false;
#endif
}

namespace {

template <int... kBits>
Sets sets_of(int64_t targets, std::integer_sequence<int, kBits...>) {
  Sets found;
  ((targets >> kBits & 1 ? add_sets<int64_t{1} << kBits>(found) : void()), ...);
  return found;
}

const Sets& sets() {
  static const Sets all =
      sets_of(hwy::SupportedTargets() | HWY_STATIC_TARGET, std::make_integer_sequence<int, 63>());
  return all;
}

std::atomic<const Kernels*>& in_use() {
  static std::atomic<const Kernels*> kernels = sets().list[0];
  return kernels;
}

}  // namespace

const Kernels* const* all_kernels() {
  return sets().list;
}

const Kernels& kernels() {
  return *in_use().load(std::memory_order_relaxed);
}

void use_kernels(const Kernels& kernels) {
  in_use() = &kernels;
}

void use_target(int64_t target) {
  int i = 0;
  while (i + 1 < sets().n && sets().targets[i] < target) ++i;
  use_kernels(*sets().list[i]);
}

}  // namespace executorch::cpu::int8
#endif  // HWY_ONCE
