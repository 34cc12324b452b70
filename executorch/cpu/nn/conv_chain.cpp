#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv_chain.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <limits>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;
using gemm::round_up;

// The floats of a band's intermediate results: half of a usual L2 cache of 1 MiB. If all
// intermediate results are smaller, bands gain nothing.
constexpr int64_t kBandFloats = 140 << 10;
// The least number of bands, if there are as many rows. More are tried in steps of half of it, so
// that threads share bands evenly.
constexpr int64_t kBands = 8;
// Beyond this number, each try doubles the number of bands, because so many are not faster anyway.
constexpr int64_t kMostBands = 4096;

struct Rows {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

Rows rows_read(const ConvAxis& h, Rows out) {
  const int64_t last = (out.end - 1) * h.stride - h.padding + (h.kernel - 1) * h.dilation;
  // A band reads at least one row, even if all its taps are padding.
  const int64_t begin = std::clamp<int64_t>(out.begin * h.stride - h.padding, 0, h.in - 1);
  return {begin, std::clamp<int64_t>(last + 1, begin + 1, h.in)};
}

// The floats from one channel to the next. They are no multiple of a cache's set stride.
Size channel_step(const Conv<float>& step, Rows out) {
  return round_up(Size(out.count()) * step.axis[2].out, 16) + 16;
}

// A band: the rows that each step computes.
struct Band {
  Rows out[ConvChain::kMost], in;

  Band(const ConvChain& chain, Rows rows) {
    for (int i = chain.n - 1; i >= 0; --i) {
      out[i] = rows;
      rows = rows_read(chain.steps[i].axis[1], rows);
    }
    in = rows;
  }
  Size floats_between(const ConvChain& chain) const {
    Size n = 0;
    for (int i = 0; i + 1 < chain.n; ++i) {
      const Conv<float>& step = chain.steps[i];
      n += channel_step(step, out[i]) * step.groups * step.group_out;
    }
    return n;
  }
};

int64_t height_of(const ConvChain& chain) {
  return chain.steps[chain.n - 1].axis[1].out;
}

// The number of rows of the last result in a band. It depends on sizes only.
int64_t band_rows(const ConvChain& chain) {
  const int64_t height = height_of(chain);
  const auto fits = [&](int64_t rows) {
    const int64_t begin = (height - rows) / 2;
    return Band(chain, {begin, begin + rows}).floats_between(chain).within(kBandFloats);
  };
  int64_t n_bands = std::min(kBands, height);
  while (n_bands < height && !fits(ceil_div(height, n_bands))) {
    n_bands = std::min(n_bands + (n_bands < kMostBands ? kBands / 2 : n_bands), height);
  }
  return ceil_div(height, n_bands);
}

bool run_band(const ConvChain& chain, int64_t b, const Band& band, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  float* between = scratch.array<float>(band.floats_between(chain));
  if (between == nullptr) return false;
  const float* input = nullptr;
  int64_t in_channel = 0;
  for (int i = 0; i < chain.n; ++i) {
    Conv<float> c = chain.steps[i];
    ConvAxis& h = c.axis[1];
    const Rows in = i == 0 ? band.in : band.out[i - 1], out = band.out[i];
    c.batch = 1;
    h.padding += in.begin - out.begin * h.stride;
    h.in = in.count();
    h.out = out.count();
    if (i == 0) {
      c.input += b * c.in_batch + in.begin * h.in_stride;
    } else {
      c.input = input;
      c.in_channel = in_channel;
      h.in_stride = c.axis[2].in;
      c.axis[2].in_stride = 1;
    }
    if (i + 1 == chain.n) {
      const int64_t at = b * c.out_batch + out.begin * h.out_stride;
      c.out += at;
      if (c.residual != nullptr) c.residual += at;
    } else {
      c.out = between;
      c.out_channel = in_channel = channel_step(c, out).value();
      h.out_stride = c.axis[2].out;
      c.axis[2].out_stride = 1;
      input = between;
      between += c.groups * c.group_out * in_channel;
    }
    if (!c.run(scratch)) return false;
  }
  return true;
}

}  // namespace

bool ConvChain::pays() const {
  const int64_t height = height_of(*this), rows = band_rows(*this);
  const Band all(*this, {0, height});
  const Size between = all.floats_between(*this);
  if (between.within(2 * kBandFloats) || rows == height || height / rows > kMostBands) return false;
  Size computed = 0;
  for (int64_t y = 0; y < height; y += rows) {
    computed += Band(*this, {y, std::min(y + rows, height)}).floats_between(*this);
  }
  return (between * 5 - computed * 4).within(std::numeric_limits<int64_t>::max());
}

bool ConvChain::run(Scratch& scratch) const {
  const int64_t height = height_of(*this), rows = band_rows(*this);
  const int64_t n_bands = ceil_div(height, rows);
  LoopScratch threads(scratch);
  return threads.parallel_for(
      steps[0].batch * n_bands, 1, [&](int64_t begin, int64_t end, Scratch& own) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t y = i % n_bands * rows;
          if (!run_band(*this, i / n_bands, Band(*this, {y, std::min(y + rows, height)}), own)) {
            return false;
          }
        }
        return true;
      });
}

}  // namespace executorch::cpu
