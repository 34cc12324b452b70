#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/cpu/nn/conv_transposed.h>
#include <executorch/cpu/nn/int8_taps.h>

#include <algorithm>
#include <optional>

namespace executorch::cpu {
namespace {

// A convolution is sparse if visits exceed the operands by this factor, which no convolution in use
// reaches, and also exceed a small absolute number of visits of a tap, or of floats.
constexpr int64_t kProportion = 64;
constexpr int64_t kFewVisits = 1 << 24;
constexpr int64_t kFewPadded = 1 << 22;
constexpr int64_t kFewCopies = 1 << 26;  // of all images

int64_t steps_of(const ConvAxis& a, bool transposed) {
  return transposed ? a.in : a.out;
}
int64_t extent_of(const ConvAxis& a, bool transposed) {
  return transposed ? a.out : a.in;
}
// The number of positions that the steps and taps of an axis span.
int64_t reach_of(const ConvAxis& a, bool transposed) {
  return (steps_of(a, transposed) - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
}

// The number of pairs of a tap and an output for which the tap reads an element of the image.
int64_t count_valid_reads(const ConvAxis& a, bool transposed) {
  int64_t n = 0;
  for (int64_t k = 0; k < a.kernel; ++k) {
    const ConvAxis::Steps steps = a.valid_steps(k, transposed);
    n += steps.end - steps.begin;
  }
  return n;
}

bool leave_out(ConvAxis& a, bool transposed, int64_t* weights, int64_t* elements) {
  const int64_t last_step = (steps_of(a, transposed) - 1) * a.stride;
  const int64_t before = std::max<int64_t>(a.padding - last_step, 0);
  const int64_t first = (before + a.dilation - 1) / a.dilation;
  const int64_t end = extent_of(a, transposed) + a.padding;  // of the positions that tap 0 can read
  const int64_t last = end <= 0 ? -1 : std::min((end - 1) / a.dilation, a.kernel - 1);
  if (first > last) return false;
  *weights += first * a.weight_stride;
  a.kernel = last - first + 1;
  a.padding -= first * a.dilation;
  if (!transposed && a.padding < 0) {
    *elements -= a.padding * a.in_stride;
    a.in += a.padding;
    a.padding = 0;
  }
  return true;
}

}  // namespace

bool has_positions(const ConvAxis& a, bool transposed) {
  constexpr int64_t kFar = int64_t{1} << 61;
  if (a.in < 0 || a.kernel < 0 || a.out < 0 || a.stride < 1 || a.dilation < 1) return false;
  const Size padding = a.padding < 0 ? Size(0) - a.padding : Size(a.padding);
  const Size reach = Size(steps_of(a, transposed)) * a.stride + Size(a.kernel) * a.dilation;
  return (reach + padding + a.in + a.out).within(kFar);
}

template <class T>
bool leave_out_idle_taps(Conv<T>& c) {
  if (c.group_in == 0) return false;
  int64_t weights = 0, elements = 0;
  for (ConvAxis& a : c.axis) {
    if (a.in == 0 || a.kernel == 0) return false;
  }
  for (ConvAxis& a : c.axis) {
    if (!leave_out(a, c.transposed, &weights, &elements)) return false;
  }
  c.weight += weights;
  c.input += elements;
  return true;
}

bool is_sparse(const ConvExtents& c) {
  const ConvAxis* const end = c.axis + c.n_axes;
  // Whether an axis has no padding worth mentioning.
  const auto is_usual = [](const ConvAxis& a) { return reach_of(a, false) < 2 * a.in + 8; };
  if (!c.transposed && std::all_of(c.axis, end, is_usual)) return false;
  const Size products = Size(c.batch) * c.groups * c.group_in * c.group_out;
  Size visits = products, valid_reads = products, padded = c.group_in;
  Size in = c.group_in, out = c.group_out;
  for (const ConvAxis* a = c.axis; a < end; ++a) {
    visits *= Size(a->kernel) * (c.by_inputs ? a->in : a->out);
    valid_reads *= count_valid_reads(*a, c.transposed);
    // Other algorithms spread inputs with zeros between strides, or copy the whole range that
    // outputs read.
    padded *= std::max(reach_of(*a, c.transposed), AxisTaps(*a, c.transposed).extent(a->out));
    in *= a->in;
    out *= a->out;
  }
  if (c.by_inputs) padded = least_columns(c.axis);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Size most_visits = max(valid_reads * kProportion, kFewVisits);
  const Size most_padded = max((in + out) * kProportion, kFewPadded);
  const Size images = Size(c.batch) * c.groups;
  const Size most_copies = max((in + out) * images * kProportion, kFewCopies);
  return !visits.within(most_visits.value_or(kMost)) ||
         !padded.within(most_padded.value_or(kMost)) ||
         !(padded * images).within(most_copies.value_or(kMost));
}

int64_t list_valid_taps(const ConvAxis& a, bool transposed, ValidTap* taps) {
  int64_t n = 0;
  for (int64_t k = 0; k < a.kernel; ++k) {
    const ConvAxis::Steps steps = a.valid_steps(k, transposed);
    if (steps.begin < steps.end) taps[n++] = {k, steps};
  }
  return n;
}

namespace {

template <class T>
class Sparse {
  using Acc = Accumulator<T>;

 public:
  explicit Sparse(const Conv<T>& c) : c_(c) {}

  bool run(Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    for (int d = 0; d < 3; ++d) {
      taps_[d] = scratch.array<ValidTap>(c_.axis[d].kernel);
      if (taps_[d] == nullptr) return false;
      n_taps_[d] = list_valid_taps(c_.axis[d], c_.transposed, taps_[d]);
    }
    const int64_t planes = c_.batch * c_.groups * c_.group_out;
    // With fewer planes than threads, sums for all threads would need more memory than the result.
    std::optional<UsePool> alone;
    if (planes < static_cast<int64_t>(loop_threads())) alone.emplace(nullptr);
    const ThreadScratch<Acc> sums(scratch, c_.pixels());
    if (!sums) return false;
    sums.parallel_for(planes, 1, [&](int64_t begin, int64_t end, Acc* buffer) {
      for (int64_t i = begin; i < end; ++i) run_plane(i, buffer);
    });
    return true;
  }

 private:
  void run_plane(int64_t plane, Acc* sums) const {
    const int64_t channels = c_.groups * c_.group_out;
    const int64_t b = plane / channels, channel = plane % channels, g = channel / c_.group_out;
    const T* const image = c_.input + b * c_.in_batch + g * c_.group_in * c_.in_channel;
    const T* const weight =
        c_.weight + g * c_.weight_group + channel % c_.group_out * c_.weight_out;
    std::fill_n(sums, c_.pixels(), Acc(0));
    for (int64_t d = 0; d < n_taps_[0]; ++d) {
      for (int64_t h = 0; h < n_taps_[1]; ++h) {
        for (int64_t w = 0; w < n_taps_[2]; ++w) {
          add(image, weight, {&taps_[0][d], &taps_[1][h], &taps_[2][w]}, sums);
        }
      }
    }
    store(sums, b * c_.out_batch + channel * c_.out_channel, channel);
  }

  int64_t position(int d, const ValidTap& tap, int64_t step) const {
    const ConvAxis& a = c_.axis[d];
    return step * a.stride + tap.k * a.dilation - a.padding;
  }

  // Adds the products of one tap to the sums of a plane.
  void add(const T* image, const T* weight, const ValidTap* const (&tap)[3], Acc* sums) const {
    const ConvAxis* const a = c_.axis;
    for (int d = 0; d < 3; ++d) weight += tap[d]->k * a[d].weight_stride;
    const int64_t sum_strides[3] = {a[1].out * a[2].out, a[2].out, 1};
    // The steps along width.
    const int64_t first = tap[2]->steps.begin, n = tap[2]->steps.end - first;
    const int64_t from_step = (c_.transposed ? 1 : a[2].stride) * a[2].in_stride;
    const int64_t to_step = c_.transposed ? a[2].stride : 1;
    for (int64_t i = 0; i < c_.group_in; ++i) {
      Acc w;
      gemm::convert(weight + i * c_.weight_in, 1, &w);
      for (int64_t z = tap[0]->steps.begin; z < tap[0]->steps.end; ++z) {
        for (int64_t y = tap[1]->steps.begin; y < tap[1]->steps.end; ++y) {
          const int64_t step[3] = {z, y, first};
          int64_t from = i * c_.in_channel, to = 0;
          for (int d = 0; d < 3; ++d) {
            const int64_t at = position(d, *tap[d], step[d]);
            from += (c_.transposed ? step[d] : at) * a[d].in_stride;
            to += (c_.transposed ? at : step[d]) * sum_strides[d];
          }
          add_row(w, image + from, from_step, n, sums + to, to_step);
        }
      }
    }
  }

  static void add_row(Acc weight, const T* from, int64_t from_step, int64_t n, Acc* to,
                      int64_t to_step) {
    constexpr int64_t kPiece = 64;
    Acc x[kPiece];
    for (int64_t j = 0; j < n; j += kPiece) {
      const int64_t nj = std::min(kPiece, n - j);
      gemm::gather(from + j * from_step, from_step, nj, x);
      Acc* const piece = to + j * to_step;
      for (int64_t l = 0; l < nj; ++l) piece[l * to_step] += weight * x[l];
    }
  }

  void store(const Acc* sums, int64_t at, int64_t channel) const {
    const ConvAxis &z = c_.axis[0], &h = c_.axis[1], &w = c_.axis[2];
    Gemm<T> g;
    g.act = c_.act;
    g.act_last = c_.act_last;
    if (c_.bias != nullptr) g.addend = {c_.bias + channel, 0, 0};
    for (int64_t row = 0; row < z.out * h.out; ++row, sums += w.out) {
      const int64_t to = at + row / h.out * z.out_stride + row % h.out * h.out_stride;
      g.c = {c_.out + to, 0, w.out_stride};
      if (c_.residual != nullptr) g.residual = {c_.residual + to, 0, w.out_stride};
      gemm::finish(g, 0, sums, w.out, 0, 1, 0, w.out);
    }
  }

  const Conv<T>& c_;
  ValidTap* taps_[3] = {};
  int64_t n_taps_[3] = {};
};

}  // namespace

template <class T>
bool run_sparse(const Conv<T>& c, Scratch& scratch) {
  return Sparse<T>(c).run(scratch);
}

#define ET_ROW(T, name)                        \
  template bool leave_out_idle_taps(Conv<T>&); \
  template bool run_sparse(const Conv<T>&, Scratch&);
ET_OPERANDS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
