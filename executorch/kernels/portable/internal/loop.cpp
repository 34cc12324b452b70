#include <executorch/kernels/portable/internal/loop.h>

namespace torch::executor::native::internal {

Loop::Loop(ArrayRef<SizesType> shape) : ndim(static_cast<int>(shape.size())) {
  for (int d = 0; d < ndim; ++d) sizes[d] = shape[static_cast<size_t>(d)];
  count();
}

void Loop::count() {
  Size n = 1;
  bool empty = false;
  for (int d = 0; d < ndim; ++d) {
    n *= sizes[d];
    empty = empty || sizes[d] == 0;
  }
  numel = empty ? 0 : n.value_or(kBeyond);
}

Loop& Loop::add(const Tensor& t) {
  int64_t* s = strides[n_operands++];
  const int shift = ndim - static_cast<int>(t.dim());
  for (int d = 0; d < ndim; ++d) {
    s[d] = d < shift || t.size(d - shift) == 1
               ? 0
               : static_cast<int64_t>(t.strides()[static_cast<size_t>(d - shift)]);
  }
  return *this;
}

Loop& Loop::add(const int64_t* operand_strides) {
  for (int d = 0; d < ndim; ++d) strides[n_operands][d] = operand_strides[d];
  ++n_operands;
  return *this;
}

void Loop::take_out(int dim) {
  --ndim;
  for (int d = dim; d < ndim; ++d) {
    sizes[d] = sizes[d + 1];
    for (int k = 0; k < n_operands; ++k) strides[k][d] = strides[k][d + 1];
  }
  count();
}

void Loop::order_by(int operand) {
  const auto swap = [](int64_t& a, int64_t& b) {
    const int64_t t = a;
    a = b;
    b = t;
  };
  for (int i = 1; i < ndim; ++i) {  // insertion sort: few dims, and it is stable
    for (int j = i; j > 0 && strides[operand][j - 1] < strides[operand][j]; --j) {
      swap(sizes[j - 1], sizes[j]);
      for (int k = 0; k < n_operands; ++k) swap(strides[k][j - 1], strides[k][j]);
    }
  }
}

void Loop::collapse() {
  if (numel == 0 || numel == kBeyond) return;  // products of extents and strides may overflow
  int last = -1;                               // the last dim kept
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    bool merges = last >= 0;
    for (int k = 0; merges && k < n_operands; ++k) {
      merges = strides[k][last] == strides[k][d] * sizes[d];
    }
    if (merges) {
      sizes[last] *= sizes[d];
    } else {
      sizes[++last] = sizes[d];
    }
    for (int k = 0; k < n_operands; ++k) strides[k][last] = strides[k][d];
  }
  ndim = last + 1;
}

int64_t Loop::offset(int k, int64_t pos) const {
  int64_t result = 0;
  for (int d = ndim - 1; d > 0; --d) {
    result += pos % sizes[d] * strides[k][d];
    pos /= sizes[d];
  }
  return ndim > 0 ? result + pos * strides[k][0] : 0;
}

bool Loop::is_dense(int k) const {
  if (numel == 0 || numel == kBeyond) return numel == 0;
  int64_t expected = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[k][d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Loop::is_constant(int k) const {
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] != 1 && strides[k][d] != 0) return false;
  }
  return true;
}

template <class C>
void gather(const Loop& loop, int k, const void* data, ScalarType type, int64_t pos, int64_t n,
            C* dst) {
  const char* base = static_cast<const char*>(data);
  const int64_t size = static_cast<int64_t>(elementSize(type));
  for_each_piece(loop, k, pos, n, [&](int64_t offset, int64_t m, int64_t stride) {
    load(base + offset * size, type, stride, m, dst);
    dst += m;
  });
}

template <class C>
void scatter(const Loop& loop, int k, void* data, ScalarType type, int64_t pos, int64_t n,
             const C* src) {
  char* base = static_cast<char*>(data);
  const int64_t size = static_cast<int64_t>(elementSize(type));
  for_each_piece(loop, k, pos, n, [&](int64_t offset, int64_t m, int64_t stride) {
    store(src, m, base + offset * size, type, stride);
    src += m;
  });
}

#define ET_INSTANTIATE(C)                                                                \
  template void gather(const Loop&, int, const void*, ScalarType, int64_t, int64_t, C*); \
  template void scatter(const Loop&, int, void*, ScalarType, int64_t, int64_t, const C*);
ET_INSTANTIATE(int64_t)
ET_INSTANTIATE(int32_t)
ET_INSTANTIATE(float)
ET_INSTANTIATE(double)
ET_INSTANTIATE(bool)
#undef ET_INSTANTIATE

}  // namespace torch::executor::native::internal
