#include <executorch/cpu/size.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/matrices.h>

#include <algorithm>
#include <cinttypes>

namespace torch::executor::native::internal {

namespace cpu = executorch::cpu;

Matrix Workspace::matrix(int64_t rows, int64_t columns) {
  const cpu::Size bytes = max(cpu::Size(rows) * columns, 1) * sizeof(double);
  const auto refuse = [&] {
    if (ok)
      ET_LOG(Error, "%s: no temporary memory for %" PRId64 "x%" PRId64 " numbers", op, rows,
             columns);
    ctx.fail(Error::MemoryAllocationFailed);
    ok = false;
    return Matrix();
  };
  if (!bytes.fits<size_t>()) return refuse();
  // A factorization passes over the matrix once for each of its rows or columns.
  ctx.add_steps(steps_of(cpu::Size(rows) * columns * std::min(rows, columns)));
  auto memory = ctx.allocate_temp(static_cast<size_t>(bytes.value()), alignof(double));
  if (!memory.ok()) return refuse();
  return {static_cast<double*>(memory.get()), rows, columns};
}

int64_t Batch::count() const {
  cpu::Size n = 1;
  for (int64_t d = 0; d < outer(); ++d) n *= t.size(d);
  return n.value_or(0);
}

int64_t Batch::offset(int64_t i, const Batch& whole) const {
  int64_t at = 0;
  for (int64_t d = 1; d <= whole.outer(); ++d) {
    const int64_t extent = whole.t.size(whole.outer() - d);
    if (d <= outer() && t.size(outer() - d) != 1) at += i % extent * stride(outer() - d);
    i /= extent;
  }
  return at;
}

void Batch::read(int64_t i, const Batch& whole, const Matrix& m) const {
  const int64_t first = offset(i, whole);
  const int64_t down = inner > 1 ? stride(t.dim() - 2) : 0;
  const int64_t right = inner > 0 ? stride(t.dim() - 1) : 0;
  for (int64_t r = 0; m.columns > 0 && r < m.rows; ++r) {
    const char* row = static_cast<const char*>(t.const_data_ptr()) +
                      (first + r * down) * static_cast<int64_t>(t.element_size());
    load(row, t.scalar_type(), right, m.columns, m[r]);
  }
}

void Batch::write(int64_t i, const Matrix& m) const {
  const int64_t first = offset(i, *this);
  const int64_t down = inner > 1 ? stride(t.dim() - 2) : 0;
  const int64_t right = inner > 0 ? stride(t.dim() - 1) : 0;
  for (int64_t r = 0; m.columns > 0 && r < m.rows; ++r) {
    char* row = static_cast<char*>(t.mutable_data_ptr()) +
                (first + r * down) * static_cast<int64_t>(t.element_size());
    store(m[r], m.columns, row, t.scalar_type(), right);
  }
}

bool require_matrices(KernelRuntimeContext& ctx, const char* op, const Tensor& t, bool square) {
  ET_REQUIRE(ctx, is_float(t.scalar_type()) && t.dim() >= 2, InvalidArgument, false,
             "%s: floating matrices were expected; found %s of shape %s", op,
             toString(t.scalar_type()), ShapeText(t).c_str());
  ET_REQUIRE(ctx, !square || t.size(t.dim() - 1) == t.size(t.dim() - 2), InvalidArgument, false,
             "%s: square matrices were expected; the shape is %s", op, ShapeText(t).c_str());
  return true;
}

bool broadcast_batches(KernelRuntimeContext& ctx, const char* op, const Batch& a, const Batch& b,
                       Shape& shape) {
  for (int64_t d = std::max(a.outer(), b.outer()); d > 0; --d) {
    const int64_t x = d <= a.outer() ? a.t.size(a.outer() - d) : 1;
    const int64_t y = d <= b.outer() ? b.t.size(b.outer() - d) : 1;
    ET_REQUIRE(ctx, x == y || x == 1 || y == 1, InvalidArgument, false,
               "%s: batches %s and %s do not broadcast", op, ShapeText(a.t).c_str(),
               ShapeText(b.t).c_str());
    shape.push(x == 1 ? y : x);
  }
  return true;
}

bool shape_like(KernelRuntimeContext& ctx, const char* op, const Tensor& t,
                std::initializer_list<int64_t> inner, Tensor& out) {
  Shape shape(t);
  for (int drop = 0; drop < 2; ++drop) shape.erase(shape.ndim() - 1);
  for (int64_t n : inner) shape.push(n);
  return resize_out(ctx, op, out, shape);
}

void transpose(const Matrix& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < r; ++c) std::swap(a[r][c], a[c][r]);
  }
}

}  // namespace torch::executor::native::internal
