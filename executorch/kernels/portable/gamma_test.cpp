#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace torch::executor::native;

namespace {

using Unary = Tensor&(KernelRuntimeContext&, const Tensor&, Tensor&);
using Binary = Tensor&(KernelRuntimeContext&, const Tensor&, const Tensor&, Tensor&);

class Gamma : public KernelTest {
 protected:
  double of(Binary* f, double a, double b) {
    Tensor out = doubles.zeros({});
    KernelRuntimeContext ctx;
    f(ctx, doubles.make({}, {a}), doubles.make({}, {b}), out);
    return *out.const_data_ptr<double>();
  }
  double of(Unary* f, double a) {
    Tensor out = doubles.zeros({});
    KernelRuntimeContext ctx;
    f(ctx, doubles.make({}, {a}), out);
    return *out.const_data_ptr<double>();
  }
};

void expect_close(double found, double expected, double relative) {
  EXPECT_NEAR(found, expected, std::fabs(expected) * relative);
}

// Expected values are of 40 digits, by mpmath.
TEST_F(Gamma, SumsThatWereLongKeepTheirValue) {
  expect_close(of(igamma_out, 20000, 20000), 0.50094031623374932, 1e-10);
  expect_close(of(igammac_out, 20000, 20000), 0.49905968376625068, 1e-10);
  expect_close(of(igamma_out, 20000, 19800), 0.078300495012177348, 1e-10);
  expect_close(of(igammac_out, 20000, 19800), 0.92169950498782265, 1e-10);
  expect_close(of(igamma_out, 100000, 101000), 0.99919157848707441, 1e-10);
  expect_close(of(igammac_out, 100000, 101000), 0.00080842151292559073, 1e-10);
  expect_close(of(igamma_out, 3e+06, 2.999e+06), 0.28189475661267758, 1e-10);
  expect_close(of(igammac_out, 3e+06, 2.999e+06), 0.71810524338732242, 1e-10);
  expect_close(of(igamma_out, 9000, 9100), 0.85399535718993666, 1e-10);
  expect_close(of(igammac_out, 9000, 9100), 0.14600464281006334, 1e-10);
  expect_close(of(igamma_out, 500, 510), 0.6769366400888723, 1e-10);
  expect_close(of(igammac_out, 500, 510), 0.3230633599111277, 1e-10);
  expect_close(of(special_zeta_out, 2, -30.25), 19.706691341963048, 1e-13);
  expect_close(of(special_zeta_out, 3, -30.25), -62.012024714545027, 1e-13);
  expect_close(of(special_zeta_out, 2, -1000.5), 9.8686054001734414, 1e-13);
  expect_close(of(special_zeta_out, 5, -100000.75), 1020.0656159509382, 1e-13);
  expect_close(of(special_zeta_out, 2, 0.5), 4.9348022005446793, 1e-13);
  expect_close(of(special_scaled_modified_bessel_k0_out, 1e-300), 690.89145941387212, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 1e-300), 9.9999999999999997e+299, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 1e-5), 11.628973270095616, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 1e-5), 100000.99994435512, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 0.7), 1.3301236562420557, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 0.7), 2.1150113128480525, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 1), 1.144463079806895, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 1), 1.6361534862632582, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 2), 0.84156821507077142, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 2), 1.0334768470686886, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 500), 0.056035915417234515, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 500), 0.056091923370555569, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k0_out, 1e6), 0.0012533139806513212, 1e-14);
  expect_close(of(special_scaled_modified_bessel_k1_out, 1e6), 0.0012533146073081549, 1e-14);
}

TEST_F(Gamma, NoNumberTakesLong) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const double numbers[] = {0,          -0.0,      1,         -1,      0.5,        -0.5,
                            9.5,        -30.5,     1e4,       -1e4,    12345,      -1e6,
                            -1e6 - 0.5, 1e6,       1e9,       1e12,    1e18,       1e100,
                            kMax,       -kMax,     5e-324,    -5e-324, 1e-300,     INFINITY,
                            NAN,        -INFINITY, 1.0000001, 20,      1e15 + 0.5, -1e15 - 0.5};
  std::vector<double> a, b;
  for (double x : numbers) {
    for (double y : numbers) {
      for (int i = 0; i < 20; ++i) a.push_back(x), b.push_back(y * (1 + 1e-3 * i));
    }
  }
  const auto n = static_cast<int32_t>(a.size());
  Tensor x = doubles.make({n}, a), y = doubles.make({n}, b), out = doubles.zeros({n});
  const auto expect_soon = [&](const char* what, auto&& run) {
    KernelRuntimeContext ctx;
    expect_within(
        1, [&] { run(ctx); }, what);
  };
  expect_soon("igamma", [&](auto& ctx) { igamma_out(ctx, x, y, out); });
  expect_soon("igamma near", [&](auto& ctx) { igamma_out(ctx, y, y, out); });
  expect_soon("igammac", [&](auto& ctx) { igammac_out(ctx, x, y, out); });
  expect_soon("igammac near", [&](auto& ctx) { igammac_out(ctx, y, y, out); });
  expect_soon("zeta", [&](auto& ctx) { special_zeta_out(ctx, x, y, out); });
  for (int64_t order : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1} << 40,
                        std::numeric_limits<int64_t>::max()}) {
    expect_soon("polygamma", [&](auto& ctx) { polygamma_out(ctx, order, y, out); });
  }
  for (Unary* f : {&digamma_out, &i0_out, &special_i0e_out, &special_i1_out, &special_i1e_out,
                   &special_modified_bessel_k0_out, &special_modified_bessel_k1_out,
                   &special_scaled_modified_bessel_k0_out, &special_scaled_modified_bessel_k1_out,
                   &special_bessel_j0_out, &special_bessel_j1_out, &special_bessel_y0_out,
                   &special_bessel_y1_out, &special_erfcx_out, &special_ndtri_out,
                   &special_spherical_bessel_j0_out}) {
    expect_soon("unary", [&](auto& ctx) { f(ctx, y, out); });
  }
}

}  // namespace
