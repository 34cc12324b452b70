#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/expression.h>
#include <executorch/cpu/nn/norm.h>
#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/nn/testing.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace executorch::cpu {
namespace {

class CacheBytes {
 public:
  explicit CacheBytes(int64_t bytes) : before_(internal::set_cache_bytes(bytes)) {}
  ~CacheBytes() { internal::set_cache_bytes(before_); }

 private:
  int64_t before_;
};

ET_ON_EACH_TARGET(Stream_);

TEST_P(Stream_, CopiesAnyBytesAndNoOthers) {
  std::vector<uint8_t> src(1000);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint8_t>(i * 37);
  for (size_t at : {0u, 1u, 16u, 63u}) {
    for (size_t n : {0u, 1u, 62u, 64u, 65u, 500u, 800u}) {
      std::vector<uint8_t> dst(1024, 0xEE), expected = dst;
      std::copy_n(src.data() + 3, n, expected.data() + at);
      stream(src.data() + 3, dst.data() + at, n);
      end_stream();
      ASSERT_EQ(dst, expected) << n << " bytes at " << at;
    }
  }
}

// As any type: numbers below 2, and none of those NaNs whose bits depend on the order of operands.
std::vector<float> numbers_of_any_type(int64_t n, unsigned seed = 1) {
  std::vector<float> result = normal_floats(static_cast<size_t>(n), seed);
  for (float& x : result) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(x));
    bits &= 0xBFFFBFFF;
    std::memcpy(&x, &bits, sizeof(x));
  }
  return result;
}

// Elements of y at every place relative to a cache line; the rest of the room must stay.
void expect_same_past_caches(int64_t n, const std::function<void(float* y)>& run) {
  for (size_t at : {0u, 1u, 5u, 15u}) {
    std::vector<float> in_cache(static_cast<size_t>(n) + 64, -77), past = in_cache;
    {
      const CacheBytes all(INT64_MAX);
      run(in_cache.data() + at);
    }
    const CacheBytes none(0);
    run(past.data() + at);
    ASSERT_EQ(std::memcmp(in_cache.data(), past.data(), past.size() * sizeof(float)), 0)
        << "at " << at;
  }
}

TEST_P(Stream_, CopiesAndTransposesAlike) {
  for (const int64_t rows : {5, 300}) {
    for (const int64_t columns : {16, 130, 2000}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const std::vector<float> x = normal_floats(static_cast<size_t>(4 * rows * columns));
      // Of every step, of every size of element, across.
      const Copy::Dim layouts[][2] = {{{rows, columns, columns}, {columns, 1, 1}},
                                      {{rows, 0, columns}, {columns, 1, 1}},
                                      {{rows, 1, columns}, {columns, 0, 1}},
                                      {{rows, 2 * columns, columns}, {columns, 2, 1}},
                                      {{rows, 1, columns}, {columns, rows, 1}},
                                      {{rows, 4, columns}, {columns, 3, 1}}};
      for (const auto& dims : layouts) {
        for (const size_t size : {size_t{1}, size_t{2}, sizeof(float)}) {
          expect_same_past_caches(rows * columns, [&](float* y) {
            Copy{dims, 2, size, x.data(), y}.run();
          });
        }
      }
      const Copy::Dim back[] = {{rows, columns, columns}, {columns, -1, 1}};
      expect_same_past_caches(rows * columns, [&](float* y) {
        Copy{back, 2, sizeof(float), x.data() + columns - 1, y}.run();
      });
    }
  }
}

TEST_P(Stream_, NormalizesAlike) {
  for (const Type type : {Type::F32, Type::F16, Type::BF16}) {
    for (const int64_t n : {7, 768, 5000}) {
      SCOPED_TRACE(testing::Message() << "n " << n << " type " << static_cast<int>(type));
      constexpr int64_t kRows = 9;
      const std::vector<float> x = numbers_of_any_type(kRows * n);
      const std::vector<float> w = numbers_of_any_type(std::max(n, kRows), 2);
      expect_same_past_caches(kRows * n, [&](float* y) {
        NormalizeRows a;
        a.type = type;
        a.rows = kRows, a.n = n, a.eps = 1e-5;
        a.x = x.data(), a.y = y, a.weight = w.data();
        a.run();
      });
      expect_same_past_caches(kRows * n, [&](float* y) {
        ScaleChannels{type, 1, kRows, n, x.data(), y, w.data(), w.data()}.run();
      });
      for (const bool log : {false, true}) {
        expect_same_past_caches(kRows * n, [&](float* y) {
          run(Softmax{type, log, kRows, n, 1, x.data(), y});
        });
        expect_same_past_caches(kRows * n, [&](float* y) {
          run(Softmax{type, log, 1, kRows, n, x.data(), y});
        });
      }
    }
  }
}

TEST_P(Stream_, ComputesExpressionsAlike) {
  const std::vector<float> x = numbers_of_any_type(40000);
  const Expression::Step steps[] = {
      {.op = Expression::Op::Apply, .to = 1, .a = 0, .function = Function::Exp}};
  for (const Type type : {Type::F32, Type::F16, Type::BF16}) {
    expect_same_past_caches(40000, [&](float* y) {
      Expression e;
      e.type = type;
      e.n_inputs = 1;
      e.inputs[0] = x.data();
      e.out = y;
      e.steps = steps;
      e.n_steps = 1;
      e.n_dims = 1;
      e.dims[0] = {40000, {1}, 1};
      e.run();
    });
  }
}

}  // namespace
}  // namespace executorch::cpu
