#include <executorch/kernels/portable/internal/shape.h>
#include <executorch/kernels/prim_ops/arguments.h>
#include <executorch/kernels/prim_ops/tables.h>

#include <cinttypes>
#include <cstring>
#include <limits>

namespace torch::executor::function {
namespace {

using executorch::aten::ArrayRef;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using native::internal::Shape;
using native::internal::ShapeText;

bool check_tensor(KernelRuntimeContext& ctx, const char* op, const EValue& value) {
  return value.isTensor() || fail_type(ctx, op, "a Tensor", value);
}

bool check_int(KernelRuntimeContext& ctx, const char* op, const EValue& value) {
  return value.isInt() || fail_type(ctx, op, "an Int", value);
}

/// (tensor, dim, result): reads one entry of the tensor's sizes or strides.
template <class Entry>
void entry_of_dim(KernelRuntimeContext& ctx, const char* op, Span<EValue*> args, Entry entry) {
  if (!check_number_call(ctx, op, args, 3) || !check_tensor(ctx, op, *args[0]) ||
      !check_int(ctx, op, *args[1])) {
    return;
  }
  const Tensor& t = args[0]->toTensor();
  int64_t dim = args[1]->toInt();
  const int64_t rank = t.dim();
  ET_REQUIRE(ctx, dim >= -rank && dim < rank, InvalidArgument, ,
             "%s: dim %" PRId64 " is out of range for a tensor of rank %" PRId64, op, dim, rank);
  if (dim < 0) dim += rank;
  *args[2] = EValue(static_cast<int64_t>(entry(t, static_cast<size_t>(dim))));
}

void sym_size(KernelRuntimeContext& ctx, Span<EValue*> args) {
  entry_of_dim(ctx, "aten::sym_size.int", args,
               [](const Tensor& t, size_t dim) { return t.sizes()[dim]; });
}

void sym_stride(KernelRuntimeContext& ctx, Span<EValue*> args) {
  entry_of_dim(ctx, "aten::sym_stride.int", args,
               [](const Tensor& t, size_t dim) { return t.strides()[dim]; });
}

void sym_numel(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "aten::sym_numel";
  if (!check_number_call(ctx, kName, args, 2) || !check_tensor(ctx, kName, *args[0])) return;
  *args[1] = EValue(static_cast<int64_t>(args[0]->toTensor().numel()));
}

// Data pointers are those of first elements, whatever storage eager had around them.
void sym_storage_offset(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "aten::sym_storage_offset";
  if (!check_number_call(ctx, kName, args, 2) || !check_tensor(ctx, kName, *args[0])) return;
  *args[1] = EValue(int64_t{0});
}

template <class T>
void set_number(KernelRuntimeContext& ctx, const char* op, T value, EValue& result) {
  if constexpr (std::is_same_v<T, bool>) {
    result = EValue(value);
  } else if constexpr (executorch::runtime::is_floating_point<T>::value) {
    result = EValue(static_cast<double>(value));
  } else {
    ET_REQUIRE(ctx, std::is_signed_v<T> || static_cast<uint64_t>(value) <= INT64_MAX,
               InvalidArgument, , "%s: %" PRIu64 " is beyond the integers of a program", op,
               static_cast<uint64_t>(value));
    result = EValue(static_cast<int64_t>(value));
  }
}

void local_scalar_dense(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "aten::_local_scalar_dense";
  if (!check_number_call(ctx, kName, args, 2) || !check_tensor(ctx, kName, *args[0])) return;
  const Tensor& t = args[0]->toTensor();
  const ScalarType type = t.scalar_type();
  ET_REQUIRE(ctx, t.numel() >= 1, InvalidArgument, , "%s: the tensor of shape %s has no element",
             kName, ShapeText(t).c_str());
  if (type == ScalarType::Bool) {  // any byte but 0 is true
    *args[1] = EValue(*static_cast<const uint8_t*>(t.const_data_ptr()) != 0);
    return;
  }
  ET_SWITCH_REALHBBF16_AND_UINT_TYPES(
      type, ctx, kName, T, [&] { set_number(ctx, kName, *t.const_data_ptr<T>(), *args[1]); });
}

/// Whether the elements of `self` in row-major order, seen as `shape`, lie where a tensor with the
/// dim order of `out` has them.
bool is_view_of(const Tensor& self, const Shape& shape, const Tensor& out) {
  int64_t place[executorch::runtime::kTensorDimensionLimit] = {};  // strides of `out`
  int64_t stride = 1;
  for (int64_t d = shape.ndim() - 1; d >= 0; --d) {
    const auto dim = out.dim_order()[static_cast<size_t>(d)];
    place[dim] = stride;
    stride *= shape[dim];
  }
  // Both are cut into blocks, from the last dim on, that hold as many elements and have one stride.
  int64_t a = self.dim(), b = shape.ndim();
  const auto next_a = [&] {
    do --a;
    while (a >= 0 && self.size(a) == 1);
    return a >= 0;
  };
  const auto next_b = [&] {
    do --b;
    while (b >= 0 && shape[b] == 1);
    return b >= 0;
  };
  for (;;) {
    const bool more_a = next_a(), more_b = next_b();
    if (!more_a || !more_b) break;
    const int64_t step = self.strides()[static_cast<size_t>(a)];
    if (step != place[b]) return false;
    int64_t n_a = self.size(a), n_b = shape[b];
    while (n_a != n_b) {
      if (n_a < n_b) {
        if (!next_a() || self.strides()[static_cast<size_t>(a)] != step * n_a) return false;
        n_a *= self.size(a);
      } else {
        if (!next_b() || place[b] != step * n_b) return false;
        n_b *= shape[b];
      }
    }
  }
  return a < 0 && b < 0;
}

/// `size` with its -1, if any, replaced by what makes it hold `numel` elements.
bool infer_view_shape(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
                      ArrayRef<int64_t> size, Shape& shape) {
  int64_t known = 1, inferred = -1;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] == -1) {
      ET_REQUIRE(ctx, inferred < 0, InvalidArgument, false, "%s: %s has more than one -1", op,
                 ShapeText(size).c_str());
      inferred = static_cast<int64_t>(d);
    } else {
      ET_REQUIRE(ctx, size[d] >= 0 && !__builtin_mul_overflow(known, size[d], &known),
                 InvalidArgument, false, "%s: %s is not a shape", op, ShapeText(size).c_str());
    }
    shape.push(size[d] == -1 ? 0 : size[d]);
  }
  const int64_t numel = self.numel();
  if (inferred >= 0) {
    ET_REQUIRE(ctx, known > 0 && numel % known == 0, InvalidArgument, false,
               "%s: the -1 of %s cannot be inferred for a tensor of shape %s", op,
               ShapeText(size).c_str(), ShapeText(self).c_str());
    shape.set(inferred, numel / known);
  } else {
    ET_REQUIRE(ctx, known == numel, InvalidArgument, false,
               "%s: a tensor of shape %s cannot be seen as %s: %" PRId64 " elements, not %" PRId64,
               op, ShapeText(self).c_str(), ShapeText(size).c_str(), numel, known);
  }
  return true;
}

/// (self, size, out): out becomes another shape on self's memory.
void et_view(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::et_view.default";
  if (!check_count(ctx, kName, args, 3) || !check_tensor(ctx, kName, *args[0]) ||
      !check_tensor(ctx, kName, *args[2])) {
    return;
  }
  if (!args[1]->isIntList()) return void(fail_type(ctx, kName, "an Int list", *args[1]));
  const Tensor& self = args[0]->toTensor();
  Tensor& out = args[2]->toTensor();
  const auto size_list = args[1]->tryToIntList();
  ET_REQUIRE(ctx, size_list.ok(), InvalidType, , "%s: the size list does not hold Ints", kName);
  const ArrayRef<int64_t> size = *size_list;
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, ,
             "%s: self is %s and out %s; a view has one type", kName,
             executorch::runtime::toString(self.scalar_type()),
             executorch::runtime::toString(out.scalar_type()));
  ET_REQUIRE(ctx, static_cast<int64_t>(size.size()) == out.dim(), InvalidArgument, ,
             "%s: the shape %s has rank %zu, out has rank %zd", kName, ShapeText(size).c_str(),
             size.size(), static_cast<ssize_t>(out.dim()));
  Shape shape;
  if (!infer_view_shape(ctx, kName, self, size, shape)) return;
  ET_REQUIRE(ctx, self.numel() == 0 || is_view_of(self, shape, out), InvalidArgument, ,
             "%s: the memory of self, of shape %s, does not hold its elements in the order of %s",
             kName, ShapeText(self).c_str(), ShapeText(size).c_str());
  ET_REQUIRE(ctx, self.const_data_ptr() != nullptr || self.numel() == 0, InvalidState, ,
             "%s: self has no memory", kName);
  const auto& base = *self.unsafeGetTensorImpl();
  auto& seen = *out.unsafeGetTensorImpl();
  void* const own = seen.mutable_data();
  const size_t own_capacity = seen.capacity();
  const bool own_read_only = seen.is_read_only();
  seen.borrow_data(base.mutable_data(), base.capacity(), base.is_read_only());
  if (!native::internal::resize_out(ctx, kName, out, shape)) {
    seen.borrow_data(own, own_capacity, own_read_only);  // its old shape may not fit the new memory
  }
}

/// (to, from, index): to[index] = from, growing `to` to index + 1 rows. The first row says how large
/// all are.
void et_copy_index(KernelRuntimeContext& ctx, Span<EValue*> args) {
  constexpr const char* kName = "executorch_prim::et_copy_index.tensor";
  if (!check_count(ctx, kName, args, 3) || !check_tensor(ctx, kName, *args[0]) ||
      !check_tensor(ctx, kName, *args[1]) || !check_int(ctx, kName, *args[2])) {
    return;
  }
  Tensor& to = args[0]->toTensor();
  const Tensor& from = args[1]->toTensor();
  const int64_t index = args[2]->toInt();
  ET_REQUIRE(ctx, index >= 0 && index < std::numeric_limits<int32_t>::max(), InvalidArgument, ,
             "%s: index %" PRId64 " is out of range", kName, index);
  ET_REQUIRE(ctx, !to.unsafeGetTensorImpl()->is_read_only(), InvalidProgram, ,
             "%s: the tensor to copy to is a constant", kName);
  bool matches = to.scalar_type() == from.scalar_type() && to.dim() == from.dim() + 1;
  Shape shape(to);
  for (ssize_t d = 0; matches && d < from.dim(); ++d) {
    if (index == 0) shape.set(d + 1, from.size(d));
    matches = shape[d + 1] == from.size(d);
  }
  ET_REQUIRE(ctx, matches, InvalidArgument, , "%s: rows of %s cannot hold a %s (types %s and %s)",
             kName, ShapeText(to).c_str(), ShapeText(from).c_str(),
             executorch::runtime::toString(to.scalar_type()),
             executorch::runtime::toString(from.scalar_type()));
  shape.set(0, index + 1);
  if (!native::internal::resize_out(ctx, kName, to, shape)) return;
  if (from.nbytes() == 0) return;
  ET_REQUIRE(ctx, to.const_data_ptr() != nullptr && from.const_data_ptr() != nullptr, InvalidState,
             , "%s: a tensor has no memory", kName);
  memmove(static_cast<char*>(to.mutable_data_ptr()) + static_cast<size_t>(index) * from.nbytes(),
          from.const_data_ptr(), from.nbytes());
}

const Kernel kTensorOps[] = {
    Kernel("aten::sym_size.int", sym_size),
    Kernel("aten::sym_stride.int", sym_stride),
    Kernel("aten::sym_numel", sym_numel),
    Kernel("aten::sym_storage_offset", sym_storage_offset),
    Kernel("aten::_local_scalar_dense", local_scalar_dense),
    Kernel("executorch_prim::et_view.default", et_view),
    Kernel("executorch_prim::et_copy_index.tensor", et_copy_index),
};

}  // namespace

Span<const Kernel> tensor_ops() {
  return kTensorOps;
}

}  // namespace torch::executor::function
