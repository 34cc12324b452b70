/// Windows of pooling over the last one, two or three dims of [(n,) c, ...], and pooling by the
/// engine. Fewer than three spatial dims are padded to three with leading dims of 1, so that one
/// loop serves all. Any dim order.
#pragma once

#include <executorch/cpu/nn/pool.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/shape.h>
#include <executorch/kernels/portable/internal/spatial.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/runtime/kernel/kernel_includes.h>

#include <algorithm>

namespace torch::executor::native::internal {

/// Windows along one dim: output o covers the positions o * stride - padding + t * dilation, t <
/// size.
struct Axis {
  int64_t in = 1, out = 1;
  int64_t size = 1, stride = 1, padding = 0, dilation = 1;
  int64_t in_step = 0, out_step = 0;

  int64_t begin(int64_t o) const { return o * stride - padding; }
};

struct Pooling {
  const char* op;
  int n_spatial;
  Axis axis[kSpatial] = {};
  // The leading dims as two, batch and channels.
  int64_t n_batch = 1, n_channels = 1;
  int64_t in_batch = 0, in_channel = 0, out_batch = 0, out_channel = 0;

  // Calls f(n, c) for each plane, on several threads.
  template <class F>
  void for_each_plane(F&& f) const {
    executorch::cpu::parallel_for(n_batch * n_channels, 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) f(i / n_channels, i % n_channels);
    });
  }
  // Calls f(output position along the three axes, its offset in the plane).
  template <class F>
  void for_each_output(F&& f) const {
    int64_t o[kSpatial];
    for (o[0] = 0; o[0] < axis[0].out; ++o[0]) {
      for (o[1] = 0; o[1] < axis[1].out; ++o[1]) {
        for (o[2] = 0; o[2] < axis[2].out; ++o[2]) {
          f(o, o[0] * axis[0].out_step + o[1] * axis[1].out_step + o[2] * axis[2].out_step);
        }
      }
    }
  }
  // Reads the leading dims and the strides of both tensors; `out` has its final shape.
  void bind(const Tensor& self, const Tensor& out);
};

bool require_rank(KernelRuntimeContext& ctx, const char* op, const Tensor& self, int n_spatial);

/// Fills `p.axis` from the arguments and `shape` with the result's shape.
bool read_windows(KernelRuntimeContext& ctx, Pooling& p, const Tensor& self, IntArrayRef kernel,
                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                  Shape& shape);

/// Whether planes lie dense in [n,c,h,w], or images in [n,h,w,c] if `last`.
bool is_dense(const Pooling& p, bool last, bool of_out);

/// The part of a window that lies inside the plane: `count` positions, less than one if none do.
void clip(int64_t o, const Axis& a, int64_t& begin, int64_t& count);

/// The most positions of a window that can lie inside the plane.
inline int64_t most_inside(const Axis& a) {
  return std::min(a.size, a.in);
}

/// Whether windows of at most most(axis) positions are few enough for tensors of this size.
template <class Most>
bool require_affordable_windows(KernelRuntimeContext& ctx, const Pooling& p, const Tensor& self,
                                const Tensor& out, int64_t lanes, const Most& most) {
  Size steps = Size(p.n_batch) * p.n_channels;
  for (const Axis& a : p.axis) steps *= Size(a.out) * most(a);
  return require_affordable(ctx, p.op, steps / lanes, elements_of(self, out));
}

constexpr int64_t kEngineLanes = 8;  // positions that the engine's loops take at once, at least

/// Pools by the engine. Returns false if the engine cannot or gets no scratch memory. Calls
/// window(o, axis, begin, count) and divisor(axis number, axis, o, count) for each axis. `regular`
/// windows are the axis's stride apart. `indices` (max only) is bound to `q`; null if not wanted.
template <class Window, class Divisor>
bool pool_by_engine(KernelRuntimeContext& ctx, const Pooling& p, const Tensor& self, Tensor& out,
                    bool max, const Pooling* q, int64_t* indices, bool regular,
                    const Window& window, const Divisor& divisor) {
  const auto type = engine_type(self.scalar_type());
  const bool last = !is_dense(p, false, false);
  if (!type.has_value() || p.axis[0].in != 1 || p.axis[0].out != 1 || p.axis[0].size != 1 ||
      p.axis[1].in * p.axis[2].in > INT32_MAX || !is_dense(p, last, false) ||
      !is_dense(p, last, true) || (q != nullptr && !is_dense(*q, last, true))) {
    return false;
  }
  EngineScratch scratch(ctx);
  executorch::cpu::Scratch& memory = scratch;
  float* room = memory.array<float>((executorch::cpu::Size(p.axis[1].out) + p.axis[2].out) * 3);
  if (room == nullptr) return false;
  executorch::cpu::PoolAxis axes[2];
  for (int d = 0; d < 2; ++d) {
    const Axis& a = p.axis[d + 1];
    int32_t* begins = reinterpret_cast<int32_t*>(room);
    int32_t* counts = begins + a.out;
    float* divisors = room + 2 * a.out;
    room += 3 * a.out;
    for (int64_t o = 0; o < a.out; ++o) {
      int64_t begin, count;
      window(o, a, begin, count);
      if (count < 1) return false;
      begins[o] = static_cast<int32_t>(begin);
      counts[o] = static_cast<int32_t>(count);
      divisors[o] = divisor(d, a, o, count);
    }
    int64_t first = 0, end = a.out;
    while (first < end && counts[first] < a.size) ++first;
    while (end > first && counts[end - 1] < a.size) --end;
    axes[d] = {a.in,   a.out,  a.dilation, regular ? a.stride : 0, first, end,
               begins, counts, divisors};
  }
  executorch::cpu::Pool2d pool;
  pool.type = *type;
  pool.max = max;
  pool.channels_last = last;
  pool.batch = p.n_batch, pool.channels = p.n_channels;
  pool.h = axes[0], pool.w = axes[1];
  pool.x = self.const_data_ptr();
  pool.y = out.mutable_data_ptr();
  pool.index = indices;
  return pool.run(scratch);
}

}  // namespace torch::executor::native::internal
