/// Complex numbers whose two parts lie side by side: real, imaginary.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/complex.h>)
#include_next <c10/util/complex.h>
#else

#include <c10/util/Half.h>

#include <cmath>
#include <complex>

namespace c10 {

template <typename T>
struct alignas(sizeof(T) * 2) complex {
  using value_type = T;

  T real_ = T(0);
  T imag_ = T(0);

  complex() = default;
  complex(const T& re, const T& im = T(0)) : real_(re), imag_(im) {}
  template <typename U>
  explicit complex(const std::complex<U>& other)
      : real_(static_cast<T>(other.real())), imag_(static_cast<T>(other.imag())) {}
  template <typename U>
  explicit complex(const complex<U>& other)
      : real_(static_cast<T>(other.real_)), imag_(static_cast<T>(other.imag_)) {}

  const T& real() const { return real_; }
  const T& imag() const { return imag_; }
  void real(T value) { real_ = value; }
  void imag(T value) { imag_ = value; }
  explicit operator bool() const { return real_ != T(0) || imag_ != T(0); }
  template <typename U>
  explicit operator std::complex<U>() const {
    return {static_cast<U>(real_), static_cast<U>(imag_)};
  }

  complex& operator+=(const complex& b) { return *this = {T(real_ + b.real_), T(imag_ + b.imag_)}; }
  complex& operator-=(const complex& b) { return *this = {T(real_ - b.real_), T(imag_ - b.imag_)}; }
  complex& operator*=(const complex& b) {
    return *this = {T(real_ * b.real_ - imag_ * b.imag_), T(real_ * b.imag_ + imag_ * b.real_)};
  }
  /// Divides both parts of `b` by the larger one first, so that its square cannot overflow.
  complex& operator/=(const complex& b) {
    const T abs_re = b.real_ < T(0) ? T(-b.real_) : b.real_;
    const T abs_im = b.imag_ < T(0) ? T(-b.imag_) : b.imag_;
    if (abs_re >= abs_im) {
      if (abs_re == T(0)) {
        return *this = {T(real_ / abs_re), T(imag_ / abs_re)};
      }
      const T ratio = b.imag_ / b.real_;
      const T scale = T(1) / T(b.real_ + b.imag_ * ratio);
      return *this = {T((real_ + imag_ * ratio) * scale), T((imag_ - real_ * ratio) * scale)};
    }
    const T ratio = b.real_ / b.imag_;
    const T scale = T(1) / T(b.imag_ + b.real_ * ratio);
    return *this = {T((real_ * ratio + imag_) * scale), T((imag_ * ratio - real_) * scale)};
  }

  friend complex operator+(complex a, const complex& b) { return a += b; }
  friend complex operator-(complex a, const complex& b) { return a -= b; }
  friend complex operator*(complex a, const complex& b) { return a *= b; }
  friend complex operator/(complex a, const complex& b) { return a /= b; }
  friend complex operator+(const complex& a) { return a; }
  friend complex operator-(const complex& a) { return {T(-a.real_), T(-a.imag_)}; }
  friend bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend bool operator!=(const complex& a, const complex& b) { return !(a == b); }
};

template <typename T>
complex<T> polar(const T& r, const T& theta = T(0)) {
  return complex<T>(std::polar(r, theta));
}

}  // namespace c10

namespace std {

template <typename T>
T real(const c10::complex<T>& z) {
  return z.real();
}
template <typename T>
T imag(const c10::complex<T>& z) {
  return z.imag();
}
template <typename T>
T abs(const c10::complex<T>& z) {
  return std::hypot(z.real(), z.imag());
}
template <typename T>
T arg(const c10::complex<T>& z) {
  return std::atan2(z.imag(), z.real());
}
template <typename T>
T norm(const c10::complex<T>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <typename T>
c10::complex<T> conj(const c10::complex<T>& z) {
  return {z.real(), -z.imag()};
}

}  // namespace std

#endif
