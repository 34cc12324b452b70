// The distinct convolutions of MobileNetV2 and ResNet18 at 224 x 224, with bias and relu, of floats
// and of bytes:
//   cpu_benchmark --benchmark_filter=Conv
#include <benchmark/benchmark.h>
#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/int8_conv.h>

#include <string>
#include <vector>

namespace executorch::cpu {
namespace {

struct Layer {
  int64_t in, out, groups, image, kernel, stride;
};

constexpr Layer kLayers[] = {
    // MobileNetV2
    {3, 32, 1, 224, 3, 2},
    {32, 32, 32, 112, 3, 1},
    {32, 16, 1, 112, 1, 1},
    {16, 96, 1, 112, 1, 1},
    {96, 96, 96, 112, 3, 2},
    {96, 24, 1, 56, 1, 1},
    {24, 144, 1, 56, 1, 1},
    {144, 144, 144, 56, 3, 1},
    {144, 24, 1, 56, 1, 1},
    {144, 144, 144, 56, 3, 2},
    {144, 32, 1, 28, 1, 1},
    {32, 192, 1, 28, 1, 1},
    {192, 192, 192, 28, 3, 1},
    {192, 32, 1, 28, 1, 1},
    {192, 192, 192, 28, 3, 2},
    {192, 64, 1, 14, 1, 1},
    {64, 384, 1, 14, 1, 1},
    {384, 384, 384, 14, 3, 1},
    {384, 96, 1, 14, 1, 1},
    {96, 576, 1, 14, 1, 1},
    {576, 576, 576, 14, 3, 2},
    {576, 160, 1, 7, 1, 1},
    {160, 960, 1, 7, 1, 1},
    {960, 960, 960, 7, 3, 1},
    {960, 320, 1, 7, 1, 1},
    {320, 1280, 1, 7, 1, 1},
    // ResNet18
    {3, 64, 1, 224, 7, 2},
    {64, 64, 1, 56, 3, 1},
    {64, 128, 1, 56, 3, 2},
    {64, 128, 1, 56, 1, 2},
    {128, 128, 1, 28, 3, 1},
    {128, 256, 1, 28, 3, 2},
    {256, 256, 1, 14, 3, 1},
    {256, 512, 1, 14, 3, 2},
    {512, 512, 1, 7, 3, 1},
};

// Numbers without a pattern, as in use, rather than zeros.
template <class T>
std::vector<T> numbers(int64_t n) {
  std::vector<T> x(static_cast<size_t>(n));
  uint32_t seed = 1;
  for (T& v : x) {
    seed = seed * 1664525 + 1013904223;
    v = static_cast<T>(static_cast<int32_t>(seed) * 0x1p-31);
  }
  return x;
}

void set_axis(ConvAxis& a, const Layer& l) {
  a.in = l.image, a.kernel = l.kernel, a.stride = l.stride, a.padding = l.kernel / 2;
  a.out = (l.image + 2 * a.padding - l.kernel) / l.stride + 1;
}

void count(benchmark::State& state, const Layer& l, int64_t pixels, double peak) {
  const double steps = static_cast<double>(l.in / l.groups * l.out * l.kernel * l.kernel * pixels);
  const double flops = 2.0 * steps * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(flops / peak, benchmark::Counter::kIsRate);
}

template <class T>
void run_conv(benchmark::State& state, const Layer& l, bool channels_last) {
  Conv<T> c;
  c.groups = l.groups, c.group_in = l.in / l.groups, c.group_out = l.out / l.groups;
  for (ConvAxis* a : {&c.axis[1], &c.axis[2]}) set_axis(*a, l);
  const int64_t pixels = l.image * l.image;
  c.axis[2].in_stride = channels_last ? l.in : 1;
  c.axis[2].out_stride = channels_last ? l.out : 1;
  c.axis[2].weight_stride = channels_last ? c.group_in : 1;
  c.axis[1].in_stride = c.axis[2].in_stride * l.image;
  c.axis[1].out_stride = c.axis[2].out_stride * c.axis[2].out;
  c.axis[1].weight_stride = c.axis[2].weight_stride * l.kernel;
  c.in_channel = channels_last ? 1 : pixels;
  c.out_channel = channels_last ? 1 : c.pixels();
  c.weight_in = channels_last ? 1 : c.taps();
  c.weight_out = c.group_in * c.taps();
  c.weight_group = c.group_out * c.weight_out;
  const std::vector<T> in = numbers<T>(l.in * pixels), bias = numbers<T>(l.out);
  const std::vector<T> w = numbers<T>(l.groups * c.weight_group);
  std::vector<T> out(static_cast<size_t>(l.out * c.pixels()));
  c.input = in.data(), c.weight = w.data(), c.bias = bias.data(), c.out = out.data();
  c.act = relu();
  HeapScratch scratch;
  for (auto _ : state) {
    if (!c.run(scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count(state, l, c.pixels(), machine_limits().flops);
}

void run_int8(benchmark::State& state, const Layer& l) {
  Int8Conv c;
  c.groups = l.groups, c.group_in = l.in / l.groups, c.group_out = l.out / l.groups;
  for (ConvAxis& a : c.axis) set_axis(a, l);
  const int64_t pixels = c.axis[0].out * c.axis[1].out, k = c.group_in * l.kernel * l.kernel;
  const std::vector<int8_t> in(static_cast<size_t>(l.in * l.image * l.image), 3);
  const std::vector<uint8_t> w(static_cast<size_t>(l.out * k), 0x35);
  const std::vector<float> scales(static_cast<size_t>(l.out), 0.02f);
  const std::vector<int32_t> sums(static_cast<size_t>(l.out), 5);
  std::vector<uint8_t> out(static_cast<size_t>(l.out * pixels));
  const RowQuantization row = {0.01f, 3};
  Int8Gemm& g = c.product;
  g.n = c.group_out, g.k = k;
  g.a = in.data(), g.rows = &row;
  g.b.data = w.data(), g.b.row_bytes = k, g.b.scales = scales.data();
  g.sums = sums.data(), g.integer_bias = sums.data();
  g.low = 0;
  g.out = Int8Gemm::Out::Int8;
  g.c = out.data(), g.ldc = l.out, g.c_quantization = {0.05f, -128};
  Int8Filter filter;
  HeapScratch scratch;
  if (!c.pack(filter)) return state.SkipWithError("no memory");
  for (auto _ : state) {
    if (!c.run(filter, scratch)) return state.SkipWithError("no memory");
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count(state, l, pixels, machine_limits().int8);
}

template <class F>
void add(const char* type, const Layer& l, const F& run) {
  const std::string name = std::string("Conv/") + type + "/" + std::to_string(l.in) + "->" +
                           std::to_string(l.out) + (l.groups > 1 ? "/depthwise" : "") + "/" +
                           std::to_string(l.image) + "/" + std::to_string(l.kernel) + "s" +
                           std::to_string(l.stride);
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->MinTime(0.1);
}

const bool kRegistered = [] {
  for (const Layer& l : kLayers) {
    for (const bool last : {false, true}) {
      add(last ? "f32/nhwc" : "f32/nchw", l,
          [=](benchmark::State& state) { run_conv<float>(state, l, last); });
    }
    add("int8", l, [=](benchmark::State& state) { run_int8(state, l); });
  }
  return true;
}();

}  // namespace
}  // namespace executorch::cpu
