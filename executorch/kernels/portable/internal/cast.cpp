#include <executorch/kernels/portable/internal/cast.h>

#include <executorch/cpu/nn/elementwise.h>
#include <executorch/kernels/portable/internal/wide.h>

#include <cstring>
#include <limits>

namespace torch::executor::native::internal {
namespace {

constexpr int64_t kChunk = 256;

template <class T, class S>
T cast(S v) {
  constexpr bool to_float = executorch::runtime::is_floating_point<T>::value;
  constexpr bool from_float = executorch::runtime::is_floating_point<S>::value;
  if constexpr (std::is_same_v<T, S>) {
    return v;
  } else if constexpr (std::is_same_v<S, BoolByte>) {
    return cast<T>(static_cast<uint8_t>(static_cast<bool>(v)));
  } else if constexpr (std::is_same_v<S, uint8_t> && std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<int32_t>(v));
  } else if constexpr (std::is_same_v<T, bool>) {
    return v != static_cast<S>(0);
  } else if constexpr (to_float) {
    if constexpr (sizeof(T) == 2) {
      return static_cast<T>(static_cast<float>(v));
    } else {
      return static_cast<T>(v);
    }
  } else if constexpr (from_float) {
    // Through the type PyTorch converts through, which decides what out of range gives.
    using Wide = std::conditional_t<std::is_signed_v<T> && (sizeof(T) <= 4), int32_t, int64_t>;
    constexpr double kLimit = std::is_same_v<Wide, int32_t> ? 0x1p31 : 0x1p63;
    const double d = static_cast<double>(v);
    const Wide i =
        d >= -kLimit && d < kLimit ? static_cast<Wide>(d) : std::numeric_limits<Wide>::min();
    return static_cast<T>(i);
  } else {
    return static_cast<T>(v);
  }
}

/// float from and to the 16-bit floating types has loops of the engine's.
template <class T, class S>
constexpr bool kIsHalfCast = sizeof(T) != sizeof(S) &&
                             (std::is_same_v<T, float> ||
                              std::is_same_v<S, float>)&&(std::is_same_v<T, Half> ||
                                                          std::is_same_v<T, BFloat16> ||
                                                          std::is_same_v<S, Half> ||
                                                          std::is_same_v<S, BFloat16>);

template <class T>
const auto* engine_type(const T* p) {
  if constexpr (std::is_same_v<T, Half>) {
    return reinterpret_cast<const executorch::cpu::F16*>(p);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return reinterpret_cast<const executorch::cpu::BF16*>(p);
  } else {
    return p;
  }
}
template <class T>
auto* engine_type(T* p) {
  using E =
      std::remove_const_t<std::remove_pointer_t<decltype(engine_type(static_cast<const T*>(p)))>>;
  return reinterpret_cast<E*>(p);
}

template <class T, class S>
[[gnu::always_inline]] inline void cast_each(const S* src, T* dst, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dst[i] = cast<T>(src[i]);
}
template <class T, class S>
[[gnu::flatten]] void cast_plain(const S* src, T* dst, int64_t n) {
  cast_each(src, dst, n);
}
template <class T, class S>
ET_WIDE [[gnu::flatten]] void cast_wide(const S* src, T* dst, int64_t n) {
  cast_each(src, dst, n);
}

/// Casts that vectors of the baseline are slow at and models make.
template <class T, class S>
constexpr bool kWideCast = ((std::is_integral_v<S> && sizeof(S) >= 4) ||
                            std::is_same_v<S, BoolByte>)&&(std::is_integral_v<T> ||
                                                           std::is_same_v<T, float>);

template <class T, class S>
void cast_run(const S* src, int64_t src_stride, T* dst, int64_t dst_stride, int64_t n) {
  if (src_stride == 1 && dst_stride == 1) {
    if constexpr (std::is_same_v<T, S>) {
      if (n > 0) memmove(dst, src, static_cast<size_t>(n) * sizeof(T));
    } else if constexpr (kIsHalfCast<T, S>) {
      executorch::cpu::convert(engine_type(src), engine_type(dst), n);
    } else if (kWideCast<T, S> && has_wide_vectors()) {
      if constexpr (kWideCast<T, S>) cast_wide(src, dst, n);
    } else {
      cast_plain(src, dst, n);
    }
  } else if (src_stride == 0) {
    const T value = n > 0 ? cast<T>(src[0]) : T{};
    if (dst_stride == 1) {
      for (int64_t i = 0; i < n; ++i) dst[i] = value;
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = value;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = cast<T>(src[i * src_stride]);
  }
}

template <class C>
void convert_through(const char* src, ScalarType src_type, int64_t src_stride, char* dst,
                     ScalarType dst_type, int64_t dst_stride, int64_t n) {
  C chunk[kChunk];
  const int64_t src_step = src_stride * static_cast<int64_t>(elementSize(src_type));
  const int64_t dst_step = dst_stride * static_cast<int64_t>(elementSize(dst_type));
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = n - i < kChunk ? n - i : kChunk;
    load(src + i * src_step, src_type, src_stride, m, chunk);
    store(chunk, m, dst + i * dst_step, dst_type, dst_stride);
  }
}

/// Whether `t` is Bool or an integer of 8 or 16 bits.
bool is_short(ScalarType t) {
  return !is_float(t) && elementSize(t) < sizeof(int32_t);
}

/// The parts of a complex number follow each other in memory.
void convert_parts(const char* src, ScalarType src_type, int64_t src_stride, char* dst,
                   ScalarType dst_type, int64_t dst_stride, int64_t n) {
  const bool from_complex = is_complex(src_type), to_complex = is_complex(dst_type);
  const ScalarType from = from_complex ? part_of(src_type) : src_type;
  const ScalarType to = to_complex ? part_of(dst_type) : dst_type;
  if (from_complex) src_stride *= 2;
  if (to_complex) dst_stride *= 2;
  convert(src, from, src_stride, dst, to, dst_stride, n);
  if (!to_complex) return;
  dst += elementSize(to);
  alignas(8) static constexpr char kZero[8] = {};
  if (from_complex) {
    convert(src + elementSize(from), from, src_stride, dst, to, dst_stride, n);
  } else {
    convert(kZero, to, 0, dst, to, dst_stride, n);
  }
}

}  // namespace

template <class C>
void load(const void* src, ScalarType type, int64_t stride, int64_t n, C* dst) {
  with_dtype(type, [&](auto tag) {
    cast_run(static_cast<const StoredAs<decltype(tag)>*>(src), stride, dst, 1, n);
  });
}

template <class C>
void store(const C* src, int64_t n, void* dst, ScalarType type, int64_t stride) {
  with_dtype(type,
             [&](auto tag) { cast_run(src, 1, static_cast<decltype(tag)*>(dst), stride, n); });
}

void convert(const void* src, ScalarType src_type, int64_t src_stride, void* dst,
             ScalarType dst_type, int64_t dst_stride, int64_t n) {
  if (src_type == dst_type) {
    with_element_size(elementSize(src_type), [&](auto tag) {
      using T = decltype(tag);
      cast_run(static_cast<const T*>(src), src_stride, static_cast<T*>(dst), dst_stride, n);
    });
    return;
  }
  if (is_complex(src_type) || is_complex(dst_type)) {
    return convert_parts(static_cast<const char*>(src), src_type, src_stride,
                         static_cast<char*>(dst), dst_type, dst_stride, n);
  }
  if (is_short(src_type) && is_short(dst_type)) {
    return convert_through<int32_t>(static_cast<const char*>(src), src_type, src_stride,
                                    static_cast<char*>(dst), dst_type, dst_stride, n);
  }
  // Integers become floats directly: those of UInt64 need not fit int64_t.
  const bool exact = !is_float(src_type) && is_float(dst_type);
  with_compute(compute_of(exact ? dst_type : src_type), [&](auto tag) {
    using C = decltype(tag);
    if (dst_type == scalar_type_of(kComputeOf<C>) && dst_stride == 1) {
      load(src, src_type, src_stride, n, static_cast<C*>(dst));
      return;
    }
    if (src_type == scalar_type_of(kComputeOf<C>) && src_stride == 1) {
      store(static_cast<const C*>(src), n, dst, dst_type, dst_stride);
      return;
    }
    convert_through<C>(static_cast<const char*>(src), src_type, src_stride, static_cast<char*>(dst),
                       dst_type, dst_stride, n);
  });
}

template <class C>
void round_through(ScalarType type, C* values, int64_t n) {
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (kIsHalfCast<T, C>) {
      T chunk[kChunk];
      for (int64_t i = 0; i < n; i += kChunk) {
        const int64_t m = n - i < kChunk ? n - i : kChunk;
        cast_run(values + i, 1, chunk, 1, m);
        cast_run(chunk, 1, values + i, 1, m);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) values[i] = cast<C>(cast<T>(values[i]));
    }
  });
}

#define ET_INSTANTIATE(C)                                             \
  template void load(const void*, ScalarType, int64_t, int64_t, C*);  \
  template void store(const C*, int64_t, void*, ScalarType, int64_t); \
  template void round_through(ScalarType, C*, int64_t);
ET_INSTANTIATE(int64_t)
ET_INSTANTIATE(int32_t)
ET_INSTANTIATE(float)
ET_INSTANTIATE(double)
ET_INSTANTIATE(bool)
#undef ET_INSTANTIATE

}  // namespace torch::executor::native::internal
