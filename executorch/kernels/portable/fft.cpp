#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <utility>

// Discrete Fourier transforms along one dim after the other:
//   X[k] = sum_i x[i] exp(-+ 2 pi sqrt(-1) i k / n)
// by Stockham's method, which sorts as it goes, over the prime factors of n (fours first). Cost per
// line: n times the sum of the factors; where one is large, Bluestein's method makes of the
// transform a convolution, whose length is a power of two. Scratch memory: three lines (ten to
// twenty with Bluestein's), and for a transform to real numbers over several dims the input once.
namespace torch::executor::native {

using namespace internal;

namespace {

template <class C>
struct Complex {
  C re = 0, im = 0;
  Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  Complex operator*(C s) const { return {re * s, im * s}; }
  Complex conj() const { return {re, -im}; }
  Complex times_i() const { return {-im, re}; }
};

int64_t smallest_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  if (n % 2 == 0) return 2;
  for (int64_t p = 3; p * p <= n; p += 2) {
    if (n % p == 0) return p;
  }
  return n;
}

/// The largest prime factor.
int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p; n > 1; n /= p) {
    p = smallest_factor(n);
    largest = std::max(largest, p);
  }
  return largest;
}

/// exp(2 pi sqrt(-1) k / n).
template <class C>
Complex<C> root(int64_t k, int64_t n) {
  const double angle = 2 * 3.14159265358979323846 * static_cast<double>(k) / static_cast<double>(n);
  return {static_cast<C>(std::cos(angle)), static_cast<C>(std::sin(angle))};
}

/// The transform of lines of length n, which alternates between two buffers.
template <class C>
struct LineTransform {
  using Z = Complex<C>;
  int64_t n;
  bool forward;
  Z *line, *other, *roots;  // n each

  /// What the constructor is given.
  static Size buffers_of(int64_t n) { return Size(n) * 3; }

  LineTransform(int64_t length, bool is_forward, Z* buffers)
      : n(length),
        forward(is_forward),
        line(buffers),
        other(buffers + length),
        roots(buffers + 2 * length) {
    for (int64_t k = 0; k < n; ++k) roots[k] = forward ? root<C>(k, n).conj() : root<C>(k, n);
  }

  /// Transforms `line` in place.
  void run() {
    int64_t rest = n;
    for (int64_t s = 1, p; rest > 1; rest /= p, s *= p) {
      p = smallest_factor(rest);
      const int64_t m = rest / p;
      for (int64_t k = 0; k < m; ++k) {
        if (p == 4) {
          radix4(k, m, s);
        } else if (p == 2) {
          radix2(k, m, s);
        } else {
          any_radix(k, m, s, p);
        }
      }
      std::swap(line, other);
    }
  }

 private:
  void radix2(int64_t k, int64_t m, int64_t s) {
    const Z w = roots[k * s];
    for (int64_t q = 0; q < s; ++q) {
      const Z a = line[q + s * k], b = line[q + s * (k + m)];
      other[q + s * 2 * k] = a + b;
      other[q + s * (2 * k + 1)] = (a - b) * w;
    }
  }
  void radix4(int64_t k, int64_t m, int64_t s) {
    const Z w1 = roots[k * s], w2 = roots[2 * k * s], w3 = roots[3 * k * s];
    for (int64_t q = 0; q < s; ++q) {
      const Z a = line[q + s * k], b = line[q + s * (k + m)];
      const Z c = line[q + s * (k + 2 * m)], d = line[q + s * (k + 3 * m)];
      const Z even = a + c, odd = b + d, left = a - c;
      const Z rotated = forward ? (d - b).times_i() : (b - d).times_i();
      Z* y = other + q + s * 4 * k;
      y[0] = even + odd;
      y[s] = (left + rotated) * w1;
      y[2 * s] = (even - odd) * w2;
      y[3 * s] = (left - rotated) * w3;
    }
  }
  void any_radix(int64_t k, int64_t m, int64_t s, int64_t p) {
    for (int64_t r = 0; r < p; ++r) {
      const Z w = roots[k * r * s];
      for (int64_t q = 0; q < s; ++q) {
        Z sum;
        for (int64_t j = 0, at = 0; j < p; ++j) {
          sum = sum + line[q + s * (k + m * j)] * roots[at * (n / p)];
          at += r;
          if (at >= p) at -= p;
        }
        other[q + s * (p * k + r)] = sum * w;
      }
    }
  }
};

/// The same by Bluestein's method, for an n with a large prime factor. As i k is
/// (i^2 + k^2 - (k - i)^2) / 2, and with w_i = exp(-+ pi sqrt(-1) i^2 / n),
///   X[k] = w_k sum_i (x[i] w_i) conj(w)[k - i]
/// which is a convolution, and a product of transforms of m >= 2 n - 1 numbers.
template <class C>
struct ChirpTransform {
  using Z = Complex<C>;
  int64_t n, m;
  LineTransform<C> to, from;  // of m numbers
  Z *chirp, *kernel, *line;   // n, m, n

  static int64_t padded(int64_t n) {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    return m;
  }
  static Size buffers_of(int64_t n) {
    const int64_t m = padded(n);
    return LineTransform<C>::buffers_of(m) * 2 + Size(n) * 2 + m;
  }

  ChirpTransform(int64_t length, bool forward, Z* buffers)
      : n(length),
        m(padded(length)),
        to(m, true, buffers),
        from(m, false, buffers + 3 * m),
        chirp(buffers + 6 * m),
        kernel(chirp + n),
        line(kernel + m) {
    std::fill_n(to.line, m, Z());
    for (int64_t i = 0, square = 0; i < n; ++i) {  // of i, modulo 2 n
      const Z w = root<C>(square, 2 * n);
      chirp[i] = forward ? w.conj() : w;
      to.line[i] = to.line[i == 0 ? 0 : m - i] = chirp[i].conj();
      square = (square + 2 * i + 1) % (2 * n);
    }
    to.run();
    for (int64_t i = 0; i < m; ++i) kernel[i] = to.line[i] * static_cast<C>(1.0 / double(m));
  }

  void run() {
    for (int64_t i = 0; i < n; ++i) to.line[i] = line[i] * chirp[i];
    std::fill(to.line + n, to.line + m, Z());
    to.run();
    for (int64_t i = 0; i < m; ++i) from.line[i] = to.line[i] * kernel[i];
    from.run();
    for (int64_t i = 0; i < n; ++i) line[i] = from.line[i] * chirp[i];
  }
};

/// The largest prime factor without Bluestein's method, which is faster from about here on.
constexpr int64_t kLargestFactor = 100;

/// Transforms all lines of length n along `dim`: read(line, offset in `from`) fills a line,
/// write(line, offset in `to`) takes its result.
template <class C, class Transform, class Read, class Write>
bool for_each_line_by(KernelRuntimeContext& ctx, const char* op, Layout from, Layout to,
                      int64_t dim, int64_t n, bool forward, const Read& read, const Write& write) {
  EngineScratch memory(ctx);
  executorch::cpu::Scratch& scratch = memory;
  auto* const buffers = scratch.array<Complex<C>>(Transform::buffers_of(n));
  if (!require_scratch(ctx, op, buffers != nullptr)) return false;
  Transform transform(n, forward, buffers);
  from.erase(dim);
  to.erase(dim);
  Loop loop(from.shape);
  loop.add(from.strides).add(to.strides);
  for_each_run(loop, [&](const int64_t* at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      read(transform.line, at[0] + i * loop.inner_stride(0));
      transform.run();
      write(transform.line, at[1] + i * loop.inner_stride(1));
    }
  });
  return true;
}

template <class C, class Read, class Write>
bool for_each_line(KernelRuntimeContext& ctx, const char* op, const Layout& from, const Layout& to,
                   int64_t dim, int64_t n, bool forward, const Read& read, const Write& write) {
  return largest_factor(n) > kLargestFactor ? for_each_line_by<C, ChirpTransform<C>>(
                                                  ctx, op, from, to, dim, n, forward, read, write)
                                            : for_each_line_by<C, LineTransform<C>>(
                                                  ctx, op, from, to, dim, n, forward, read, write);
}

/// Complex to complex along `dim`; from and to may be the same elements.
template <class C>
bool complex_lines(KernelRuntimeContext& ctx, const char* op, const Complex<C>* src,
                   const Layout& from, Complex<C>* dst, const Layout& to, int64_t dim, bool forward,
                   C scale) {
  const int64_t n = from.shape[dim], in = from.strides[dim], out = to.strides[dim];
  return for_each_line<C>(
      ctx, op, from, to, dim, n, forward,
      [&](Complex<C>* line, int64_t at) {
        for (int64_t i = 0; i < n; ++i) line[i] = src[at + i * in];
      },
      [&](const Complex<C>* line, int64_t at) {
        for (int64_t i = 0; i < n; ++i) dst[at + i * out] = line[i] * scale;
      });
}

/// The dims to transform, after checks, and the product of their extents in `shape`.
struct Dims {
  size_t n = 0;
  int64_t dim[kTensorDimensionLimit];
  double scale = 1;

  bool read(KernelRuntimeContext& ctx, const char* op, IntArrayRef list, const Shape& shape,
            int64_t normalization) {
    // A number without dims would pass as one with a dim 0 or -1.
    ET_REQUIRE(ctx, shape.ndim() > 0, InvalidArgument, false, "%s: a 0-d tensor has no lines", op);
    uint32_t mask = 0;
    if (!dim_mask(ctx, op, std::optional<IntArrayRef>(list), shape.ndim(), false, mask))
      return false;
    double length = 1;
    for (int64_t d : list) {
      dim[n] = d < 0 ? d + shape.ndim() : d;
      length *= shape[dim[n]];
      ET_REQUIRE(ctx, shape[dim[n]] > 0, InvalidArgument, false,
                 "%s: dim %" PRId64 " of shape %s is empty", op, dim[n],
                 ShapeText(shape.ref()).c_str());
      ++n;
    }
    ET_REQUIRE(ctx, n > 0 && normalization >= 0 && normalization <= 2, InvalidArgument, false,
               "%s: %d dims and normalization %" PRId64 "; a dim and 0, 1 or 2 were expected", op,
               static_cast<int>(n), normalization);
    scale = normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(length) : 1 / length;
    return true;
  }
  int64_t last() const { return dim[n - 1]; }
};

bool require_types(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Tensor& out,
                   bool from_real, bool to_real) {
  const auto one = [](bool real, bool wide) {
    return real ? (wide ? ScalarType::Double : ScalarType::Float)
                : (wide ? ScalarType::ComplexDouble : ScalarType::ComplexFloat);
  };
  bool known = false;
  for (bool wide : {false, true}) {
    known |= self.scalar_type() == one(from_real, wide) && out.scalar_type() == one(to_real, wide);
  }
  ET_REQUIRE(ctx, known, InvalidArgument, false, "%s: not implemented for dtype %s into %s", op,
             toString(self.scalar_type()), toString(out.scalar_type()));
  return true;
}

/// Calls f(C{}) with C double if `t` is one of the wide types, otherwise float.
template <class F>
void with_part(const Tensor& t, F&& f) {
  const bool wide =
      t.scalar_type() == ScalarType::Double || t.scalar_type() == ScalarType::ComplexDouble;
  wide ? f(double{}) : f(float{});
}

}  // namespace

Tensor& _fft_r2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool onesided, Tensor& out) {
  constexpr const char* kOp = "_fft_r2c.out";
  Dims dims;
  Shape shape(self);
  if (!require_types(ctx, kOp, self, out, true, false) ||
      !dims.read(ctx, kOp, dim, shape, normalization)) {
    return out;
  }
  const int64_t last = dims.last(), n = self.size(last);
  const int64_t kept = onesided ? n / 2 + 1 : n;
  shape.set(last, kept);
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  const Layout from(self), to(out);
  with_part(self, [&](auto tag) {
    using C = decltype(tag);
    const C* src = static_cast<const C*>(self.const_data_ptr());
    auto* dst = static_cast<Complex<C>*>(out.mutable_data_ptr());
    const C scale = static_cast<C>(dims.scale);
    bool done = for_each_line<C>(
        ctx, kOp, from, to, last, n, true,
        [&](Complex<C>* line, int64_t at) {
          for (int64_t i = 0; i < n; ++i) line[i] = {src[at + i * from.strides[last]], 0};
        },
        [&](const Complex<C>* line, int64_t at) {
          for (int64_t i = 0; i < kept; ++i) dst[at + i * to.strides[last]] = line[i] * scale;
        });
    for (size_t d = 0; done && d + 1 < dims.n; ++d) {
      done = complex_lines<C>(ctx, kOp, dst, to, dst, to, dims.dim[d], true, C(1));
    }
  });
  return out;
}

Tensor& _fft_c2c_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, bool forward, Tensor& out) {
  constexpr const char* kOp = "_fft_c2c.out";
  Dims dims;
  if (!require_types(ctx, kOp, self, out, false, false) ||
      !dims.read(ctx, kOp, dim, Shape(self), normalization) ||
      !resize_out(ctx, kOp, out, self.sizes()) || out.numel() == 0) {
    return out;
  }
  const Layout from(self), to(out);
  with_part(self, [&](auto tag) {
    using C = decltype(tag);
    const auto* src = static_cast<const Complex<C>*>(self.const_data_ptr());
    auto* dst = static_cast<Complex<C>*>(out.mutable_data_ptr());
    bool done = complex_lines<C>(ctx, kOp, src, from, dst, to, dims.last(), forward,
                                 static_cast<C>(dims.scale));
    for (size_t d = 0; done && d + 1 < dims.n; ++d) {
      done = complex_lines<C>(ctx, kOp, dst, to, dst, to, dims.dim[d], forward, C(1));
    }
  });
  return out;
}

Tensor& _fft_c2r_out(KernelRuntimeContext& ctx, const Tensor& self, IntArrayRef dim,
                     int64_t normalization, int64_t last_dim_size, Tensor& out) {
  constexpr const char* kOp = "_fft_c2r.out";
  Dims dims;
  Shape shape(self);
  const int64_t named = dim.empty() ? 0 : dim[dim.size() - 1];
  const int64_t last = named < 0 ? named + self.dim() : named;
  const int64_t n = last_dim_size;
  // More numbers than the half that is needed may be there; they are not read.
  ET_REQUIRE(
      ctx,
      last >= 0 && last < self.dim() && n >= 1 && n <= INT32_MAX && self.size(last) >= n / 2 + 1,
      InvalidArgument, out,
      "%s: %" PRId64 " real numbers along dim %" PRId64 " do not come of shape %s", kOp, n, named,
      ShapeText(self).c_str());
  shape.set(last, n);
  if (!require_types(ctx, kOp, self, out, false, true) ||
      !dims.read(ctx, kOp, dim, shape, normalization) || !resize_out(ctx, kOp, out, shape) ||
      out.numel() == 0) {
    return out;
  }
  Layout from(self);
  const Layout to(out);
  with_part(self, [&](auto tag) {
    using C = decltype(tag);
    const auto* src = static_cast<const Complex<C>*>(self.const_data_ptr());
    bool done = true;
    EngineScratch memory(ctx);
    if (dims.n > 1) {
      executorch::cpu::Scratch& scratch = memory;
      auto* between = scratch.array<Complex<C>>(self.numel());
      if (!require_scratch(ctx, kOp, between != nullptr)) return;
      for (size_t d = 0; done && d + 1 < dims.n; ++d) {
        done = complex_lines<C>(ctx, kOp, src, from, between, from, dims.dim[d], false, C(1));
        src = between;
      }
    }
    C* dst = static_cast<C*>(out.mutable_data_ptr());
    const int64_t step = from.strides[last];
    const C scale = static_cast<C>(dims.scale);
    if (!done) return;
    (void)for_each_line<C>(
        ctx, kOp, from, to, last, n, false,
        [&](Complex<C>* line, int64_t at) {  // the other half mirrors the one given
          line[0] = {src[at].re, 0};
          for (int64_t i = 1; i <= n / 2; ++i) {
            line[i] = src[at + i * step];
            line[n - i] = line[i].conj();
          }
          if (n % 2 == 0) line[n / 2].im = 0;
        },
        [&](const Complex<C>* line, int64_t at) {
          for (int64_t i = 0; i < n; ++i) dst[at + i * to.strides[last]] = line[i].re * scale;
        });
  });
  return out;
}

namespace {
constexpr Kernel kFftOps[] = {
    ET_OP("aten::_fft_c2c.out", _fft_c2c_out),
    ET_OP("aten::_fft_c2r.out", _fft_c2r_out),
    ET_OP("aten::_fft_r2c.out", _fft_r2c_out),
};
}  // namespace

Span<const Kernel> fft_ops() {
  return kFftOps;
}

}  // namespace torch::executor::native
