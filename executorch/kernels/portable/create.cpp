#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/number.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>

// Creation of tensors: constants, ranges, random numbers, triangles.
namespace torch::executor::native {

using namespace internal;

namespace {

Tensor& filled(KernelRuntimeContext& ctx, const char* op, IntArrayRef size, const Scalar& value,
               Tensor& out) {
  Shape shape;
  if (!shape_of(ctx, op, size, shape) || !resize_out(ctx, op, out, shape)) return out;
  ET_REQUIRE(ctx, is_number(out.scalar_type()), InvalidArgument, out,
             "%s: not implemented for dtype %s", op, toString(out.scalar_type()));
  if (require_fits(ctx, op, "the value", value, out.scalar_type())) fill(value, out);
  return out;
}

}  // namespace

Tensor& empty_out(KernelRuntimeContext& ctx, IntArrayRef size,
                  std::optional<MemoryFormat> memory_format, Tensor& out) {
  (void)memory_format;
  Shape shape;
  if (shape_of(ctx, "empty.out", size, shape)) (void)resize_out(ctx, "empty.out", out, shape);
  return out;
}

Tensor& empty_strided_out(KernelRuntimeContext& ctx, IntArrayRef size, IntArrayRef stride,
                          Tensor& out) {
  (void)stride;  // out was planned with them
  Shape shape;
  if (shape_of(ctx, "empty_strided.out", size, shape)) {
    (void)resize_out(ctx, "empty_strided.out", out, shape);
  }
  return out;
}

Tensor& full_out(KernelRuntimeContext& ctx, IntArrayRef size, const Scalar& fill_value,
                 Tensor& out) {
  return filled(ctx, "full.out", size, fill_value, out);
}

Tensor& full_like_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& fill_value,
                      std::optional<MemoryFormat> memory_format, Tensor& out) {
  (void)memory_format;
  int64_t size[kTensorDimensionLimit] = {};
  for (int64_t d = 0; d < self.dim(); ++d) size[d] = self.size(d);
  return filled(ctx, "full_like.out", {size, static_cast<size_t>(self.dim())}, fill_value, out);
}

Tensor& ones_out(KernelRuntimeContext& ctx, IntArrayRef size, Tensor& out) {
  return filled(ctx, "ones.out", size, Scalar(1), out);
}

Tensor& zeros_out(KernelRuntimeContext& ctx, IntArrayRef size, Tensor& out) {
  return filled(ctx, "zeros.out", size, Scalar(0), out);
}

namespace {

/// `value` after rounding to an element of `type`.
Scalar rounded(double value, ScalarType type) {
  round_through(type, &value, 1);
  return Scalar(value);
}

}  // namespace

Tensor& scalar_tensor_out(KernelRuntimeContext& ctx, const Scalar& s, Tensor& out) {
  constexpr const char* kOp = "scalar_tensor.out";
  // Eager PyTorch makes infinities of numbers that a 16-bit type cannot hold, here only.
  const double value = scalar_as<double>(s);
  if (elementSize(out.scalar_type()) == 2 && is_float(out.scalar_type()) &&
      !fits(s, out.scalar_type())) {
    return filled(ctx, kOp, {}, rounded(value, out.scalar_type()), out);
  }
  return filled(ctx, kOp, {}, s, out);
}

namespace {

// out[i] = start + i * step in type C, converted to out's dtype chunk by chunk.
template <class C>
void write_range(C start, C step, Tensor& out) {
  constexpr int64_t kChunk = 256;
  C chunk[kChunk];
  const int64_t n = out.numel(), size = static_cast<int64_t>(out.element_size());
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    for (int64_t j = 0; j < m; ++j) {
      if constexpr (std::is_integral_v<C>) {
        chunk[j] = static_cast<C>(static_cast<uint64_t>(start) +
                                  static_cast<uint64_t>(step) * static_cast<uint64_t>(i + j));
      } else {
        chunk[j] = start + static_cast<C>(i + j) * step;
      }
    }
    store(chunk, m, static_cast<char*>(out.mutable_data_ptr()) + i * size, out.scalar_type(), 1);
  }
}

}  // namespace

Tensor& arange_start_out(KernelRuntimeContext& ctx, const Scalar& start, const Scalar& end,
                         const Scalar& step, Tensor& out) {
  constexpr const char* kOp = "arange.start_out";
  // For Long, the bounds are truncated first. For narrower integers, the range has as many elements
  // as with real numbers, and its values are truncated.
  const auto bound = [&](const Scalar& s) {
    const double value = scalar_as<double>(s);
    return out.scalar_type() == ScalarType::Long ? std::trunc(value) : value;
  };
  const double first = bound(start), last = bound(end), by = bound(step);
  ET_REQUIRE(ctx, std::isfinite(first) && std::isfinite(last) && std::isfinite(by) && by != 0,
             InvalidArgument, out,
             "%s: finite bounds and a step other than zero were expected; found %g to %g by %g",
             kOp, first, last, by);
  ET_REQUIRE(ctx, by > 0 ? first <= last : first >= last, InvalidArgument, out,
             "%s: from %g the step %g leads away from %g", kOp, first, by, last);
  ET_REQUIRE(ctx, is_real(out.scalar_type()) && out.scalar_type() != ScalarType::Bool,
             InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(out.scalar_type()));
  const double length = std::ceil((last - first) / by);
  ET_REQUIRE(ctx,
             length <= INT32_MAX && (is_float(out.scalar_type()) ||
                                     (std::fabs(first) < 0x1p63 && std::fabs(by) < 0x1p63)),
             InvalidArgument, out, "%s: %g to %g by %g does not fit a tensor of dtype %s", kOp,
             first, last, by, toString(out.scalar_type()));
  if (!resize_out(ctx, kOp, out, Shape{static_cast<int64_t>(length)})) return out;
  if (!is_float(out.scalar_type())) {
    write_range(scalar_as<int64_t>(start), scalar_as<int64_t>(step), out);
  } else {
    write_range(first, by, out);
  }
  return out;
}

Tensor& arange_out(KernelRuntimeContext& ctx, const Scalar& end, Tensor& out) {
  return arange_start_out(ctx, Scalar(0), end, Scalar(1), out);
}

namespace {

// xorshift64*. There is one state for the process, so that successive tensors differ. It is not
// seeded, so every run of the process gets the same numbers.
class Random {
 public:
  Random() : state_(stream_.fetch_add(0x9E3779B97F4A7C15u, std::memory_order_relaxed)) {
    if (state_ == 0) state_ = 1;
    for (int i = 0; i < 4; ++i) (void)next();
  }
  // Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Uniform among 0 ... n - 1, n > 0: values in the incomplete last round are drawn again.
  uint64_t below(uint64_t n) {
    const uint64_t rest = (0 - n) % n;
    uint64_t value = next();
    while (value < rest) value = next();
    return value % n;
  }
  // Standard normal (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  static std::atomic<uint64_t> stream_;
  uint64_t state_;
};
std::atomic<uint64_t> Random::stream_{0x853C49E6748FEA9Bu};

template <class F>
Tensor& random(KernelRuntimeContext& ctx, const char* op, IntArrayRef size, Tensor& out, F&& draw) {
  Shape shape;
  if (!shape_of(ctx, op, size, shape) || !resize_out(ctx, op, out, shape)) return out;
  ET_REQUIRE(ctx, is_float(out.scalar_type()), InvalidArgument, out,
             "%s: not implemented for dtype %s", op, toString(out.scalar_type()));
  Random random;
  char* data = static_cast<char*>(out.mutable_data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) {
    store_one(draw(random), data + i * static_cast<int64_t>(out.element_size()), out.scalar_type());
  }
  return out;
}

// A uniform number with only as many bits as the type has, so that rounding to it does not give 1.
double uniform_for(ScalarType type, Random& random) {
  const int bits = type == ScalarType::BFloat16 ? 8
                   : type == ScalarType::Half   ? 11
                   : type == ScalarType::Float  ? 24
                                                : 53;
  const double scale = std::ldexp(1.0, bits);
  return std::floor(random.uniform() * scale) / scale;
}

}  // namespace

Tensor& rand_out(KernelRuntimeContext& ctx, IntArrayRef size, Tensor& out) {
  const ScalarType type = out.scalar_type();
  return random(ctx, "rand.out", size, out, [type](Random& r) { return uniform_for(type, r); });
}

Tensor& randn_out(KernelRuntimeContext& ctx, IntArrayRef size, Tensor& out) {
  return random(ctx, "randn.out", size, out, [](Random& r) { return r.normal(); });
}

namespace {

// The extents of a tensor in the form of an operator's `size` argument.
struct SizeOf {
  int64_t sizes[kTensorDimensionLimit] = {};
  size_t n;
  explicit SizeOf(const Tensor& t) : n(static_cast<size_t>(t.dim())) {
    for (size_t d = 0; d < n; ++d) sizes[d] = t.size(static_cast<int64_t>(d));
  }
  operator IntArrayRef() const { return {sizes, n}; }
};

}  // namespace

Tensor& rand_like_out(KernelRuntimeContext& ctx, const Tensor& self,
                      std::optional<MemoryFormat> memory_format, Tensor& out) {
  (void)memory_format;
  const ScalarType type = out.scalar_type();
  return random(ctx, "rand_like.out", SizeOf(self), out,
                [type](Random& r) { return uniform_for(type, r); });
}

Tensor& randn_like_out(KernelRuntimeContext& ctx, const Tensor& self,
                       std::optional<MemoryFormat> memory_format, Tensor& out) {
  (void)memory_format;
  return random(ctx, "randn_like.out", SizeOf(self), out, [](Random& r) { return r.normal(); });
}

Tensor& randint_low_out(KernelRuntimeContext& ctx, int64_t low, int64_t high, IntArrayRef size,
                        Tensor& out) {
  constexpr const char* kOp = "randint.low_out";
  Shape shape;
  ET_REQUIRE(ctx, low < high && is_real(out.scalar_type()), InvalidArgument, out,
             "%s: there is no value of dtype %s in [%" PRId64 ", %" PRId64 ")", kOp,
             toString(out.scalar_type()), low, high);
  if (!shape_of(ctx, kOp, size, shape) || !resize_out(ctx, kOp, out, shape)) return out;
  Random random;
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const uint64_t value = static_cast<uint64_t>(low) + random.below(range);
    store_at(static_cast<int64_t>(value), out, i);
  }
  return out;
}

Tensor& randint_out(KernelRuntimeContext& ctx, int64_t high, IntArrayRef size, Tensor& out) {
  return randint_low_out(ctx, 0, high, size, out);
}

Tensor& randperm_out(KernelRuntimeContext& ctx, int64_t n, Tensor& out) {
  constexpr const char* kOp = "randperm.out";
  Shape shape;
  ET_REQUIRE(ctx, is_real(out.scalar_type()) && out.scalar_type() != ScalarType::Bool,
             InvalidArgument, out, "%s: not implemented for dtype %s", kOp,
             toString(out.scalar_type()));
  if (!shape_of(ctx, kOp, {&n, 1}, shape) || !resize_out(ctx, kOp, out, shape)) return out;
  Random random;
  with_dtype(out.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    T* to = out.mutable_data_ptr<T>();
    for (int64_t i = 0; i < n; ++i) {  // Fisher-Yates, from inside out
      const auto j = static_cast<int64_t>(random.below(static_cast<uint64_t>(i) + 1));
      to[i] = to[j];
      if constexpr (kIsFloat<T> && sizeof(T) < 8) {
        to[j] = static_cast<T>(static_cast<float>(i));
      } else {
        to[j] = static_cast<T>(i);
      }
    }
  });
  return out;
}

TensorPair native_dropout_out(KernelRuntimeContext& ctx, const Tensor& input, double p,
                              std::optional<bool> train, Tensor& out0, Tensor& out1) {
  constexpr const char* kOp = "native_dropout.out";
  TensorPair result(out0, out1);
  ET_REQUIRE(ctx, p >= 0 && p <= 1, InvalidArgument, result,
             "%s: p must lie in [0, 1]; the value is %g", kOp, p);
  ET_REQUIRE(ctx, out1.scalar_type() == ScalarType::Bool, InvalidArgument, result,
             "%s: the mask has dtype %s; Bool was expected", kOp, toString(out1.scalar_type()));
  if (!copy_view(ctx, kOp, input, Layout(input), out0) ||
      !resize_out(ctx, kOp, out1, input.sizes())) {
    return result;
  }
  if (!train.value_or(true) || p == 0) {
    fill(Scalar(true), out1);
    return result;
  }
  ET_REQUIRE(ctx, is_float(input.scalar_type()) && same_layout(out0, out1), InvalidArgument, result,
             "%s: training needs a floating input and outputs of one dim order; the dtype is %s",
             kOp, toString(input.scalar_type()));
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  Random random;
  bool* mask = out1.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < out0.numel(); ++i) {
    mask[i] = random.uniform() >= p;
    store_at(mask[i] ? load_at<double>(out0, i) * scale : 0.0, out0, i);
  }
  return result;
}

namespace {

// Keeps, of row i of each matrix, the columns [begin(i), end(i)) and zeroes the others.
template <class F>
Tensor& triangle(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                 F&& kept) {
  ET_REQUIRE(ctx, self.dim() >= 2, InvalidArgument, out,
             "%s: a tensor of rank 2 or more was expected; its shape is %s", op,
             ShapeText(self).c_str());
  if (!copy_view(ctx, op, self, Layout(self), out) || out.numel() == 0) return out;
  const int64_t row_dim = self.dim() - 2, rows = self.size(row_dim),
                columns = self.size(row_dim + 1);
  const Layout layout(out);
  alignas(16) static constexpr char kZero[16] = {};
  Layout zero;
  const auto clear = [&](int64_t row, int64_t begin, int64_t end) {
    if (begin >= end) return;
    Layout part = layout;
    part.offset = row * layout.strides[row_dim] + begin * layout.strides[row_dim + 1];
    part.shape.set(row_dim, 1);
    part.shape.set(row_dim + 1, end - begin);
    zero.shape = part.shape;
    copy_layout(kZero, out.scalar_type(), zero, out.mutable_data_ptr(), out.scalar_type(), part);
  };
  for (int64_t row = 0; row < rows; ++row) {
    const auto [begin, end] = kept(row, columns);
    clear(row, 0, std::min(begin, columns));
    clear(row, std::max<int64_t>(end, 0), columns);
  }
  return out;
}

struct Columns {
  int64_t begin, end;
};

}  // namespace

Tensor& tril_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t diagonal, Tensor& out) {
  const int64_t d = std::clamp<int64_t>(diagonal, -INT32_MAX, INT32_MAX);
  return triangle(ctx, "tril.out", self, out, [d](int64_t row, int64_t columns) {
    return Columns{0, std::clamp<int64_t>(row + d + 1, 0, columns)};
  });
}

Tensor& triu_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t diagonal, Tensor& out) {
  const int64_t d = std::clamp<int64_t>(diagonal, -INT32_MAX, INT32_MAX);
  return triangle(ctx, "triu.out", self, out, [d](int64_t row, int64_t columns) {
    return Columns{std::clamp<int64_t>(row + d, 0, columns), columns};
  });
}

namespace {
constexpr Kernel kCreateOps[] = {
    ET_OP("aten::arange.out", arange_out),
    ET_OP("aten::arange.start_out", arange_start_out),
    ET_OP("aten::empty.out", empty_out),
    ET_OP("aten::empty_strided.out", empty_strided_out, other),
    ET_OP("aten::full.out", full_out),
    ET_OP("aten::full_like.out", full_like_out),
    ET_OP("aten::native_dropout.out", native_dropout_out, other),
    ET_OP("aten::ones.out", ones_out),
    ET_OP("aten::rand.out", rand_out, other),
    ET_OP("aten::rand_like.out", rand_like_out, other),
    ET_OP("aten::randint.low_out", randint_low_out, other),
    ET_OP("aten::randint.out", randint_out, other),
    ET_OP("aten::randn.out", randn_out, other),
    ET_OP("aten::randn_like.out", randn_like_out, other),
    ET_OP("aten::randperm.out", randperm_out, other),
    ET_OP("aten::scalar_tensor.out", scalar_tensor_out),
    ET_OP("aten::tril.out", tril_out),
    ET_OP("aten::triu.out", triu_out),
    ET_OP("aten::zeros.out", zeros_out),
};
}  // namespace

Span<const Kernel> create_ops() {
  return kCreateOps;
}

}  // namespace torch::executor::native
