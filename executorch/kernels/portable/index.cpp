#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/index_value.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/placed_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>

// Advanced indexing, x[i, :, mask, ...]: a list with one entry per dim of x, each an integer
// tensor, a mask over one or more dims, or nothing for a dim kept whole. The index tensors
// broadcast to one shape; a mask counts as the 1-d list of its true positions. The result has that
// shape where the indexed dims were, or in front if they are not neighbours.
namespace torch::executor::native {

using namespace internal;
using OptionalTensors = ArrayRef<std::optional<Tensor>>;

namespace {

bool is_mask(const Tensor& t) {
  return t.scalar_type() == ScalarType::Bool || t.scalar_type() == ScalarType::Byte;
}

bool is_set(const Tensor& mask, int64_t offset) {  // Bool and Byte are one byte each
  return static_cast<const uint8_t*>(mask.const_data_ptr())[offset] != 0;
}

// The offset of the element at a row-major position.
int64_t offset_at(const Layout& layout, int64_t position) {
  int64_t offset = layout.offset;
  for (int64_t d = layout.shape.ndim() - 1; d >= 0; --d) {
    offset += position % layout.shape[d] * layout.strides[d];
    position /= layout.shape[d];
  }
  return offset;
}

// One index tensor and its place in the list.
struct Term {
  const Tensor* tensor = nullptr;
  Layout layout;                                // of the tensor
  Layout covered;                               // of the dims of x that a mask covers
  int64_t entry = 0;                            // in the list of indices
  int64_t dim = 0;                              // first dim of x that it indexes
  int64_t n_true = -1;                          // of a mask; -1 for integers
  const int64_t* places = nullptr;              // of the true ones in x, where asked more than once
  int64_t strides[kTensorDimensionLimit] = {};  // over the broadcast shape; for integers

  int64_t n_dims() const { return n_true < 0 ? 1 : layout.shape.ndim(); }
};

class AdvancedIndex {
 public:
  // Reads the list; false, with a message, if it does not fit `x`.
  explicit AdvancedIndex(KernelRuntimeContext& ctx) : scratch_(ctx) {}

  bool parse(KernelRuntimeContext& ctx, const char* op, const Tensor& x, OptionalTensors indices);

  // The shape of x[indices].
  const Shape& result() const { return result_; }

  // Calls f(places) for blocks of positions of the index tensors, with their offsets into x and
  // into `other`, which has strides over result(): in row-major order if `in_order`, otherwise
  // maybe on several threads. False, with a message, at a bad index value.
  template <class F>
  bool visit(KernelRuntimeContext& ctx, const char* op, const Layout& x, const Layout& other,
             bool in_order, F&& f) const;

  // The dims of x that are not indexed, as operands x and other.
  Loop rest(const Layout& x, const Layout& other) const;

 private:
  bool add_term(KernelRuntimeContext& ctx, const char* op, const Tensor& x, const Tensor& t,
                int64_t entry, int64_t& dim);
  bool broadcast_terms(KernelRuntimeContext& ctx, const char* op, const Tensor& x);
  bool list_places(KernelRuntimeContext& ctx, const char* op, Term& term);
  int64_t add_values(const Term& term, const Layout& x, int64_t position, Places& places) const;
  void add_true(const Term& term, int64_t position, int64_t& mask_position, Places& places) const;
  void fail(KernelRuntimeContext& ctx, const char* op, const Layout& x, int64_t position) const;

  Term terms_[kTensorDimensionLimit];
  int64_t n_terms_ = 0;
  bool is_indexed_[kTensorDimensionLimit] = {};
  bool neighbours_ = true;
  Shape broadcast_;
  int64_t broadcast_at_ = 0;  // first broadcast dim in the result
  Shape result_;
  EngineScratch scratch_;  // for places
};

bool require_indices_apart(KernelRuntimeContext& ctx, const char* op, OptionalTensors indices,
                           const Tensor& out) {
  for (const auto& index : indices) {
    if (index.has_value() && !require_apart(ctx, op, *index, out)) return false;
  }
  return true;
}

bool has_tensor(OptionalTensors indices) {
  return std::any_of(indices.begin(), indices.end(),
                     [](const std::optional<Tensor>& index) { return index.has_value(); });
}

bool AdvancedIndex::add_term(KernelRuntimeContext& ctx, const char* op, const Tensor& x,
                             const Tensor& t, int64_t entry, int64_t& dim) {
  Term& term = terms_[n_terms_++];
  term.tensor = &t;
  term.layout = Layout(t);
  term.entry = entry;
  term.dim = dim;
  if (is_mask(t)) {
    bool fits = t.dim() > 0 && dim + t.dim() <= x.dim();
    for (int64_t d = 0; fits && d < t.dim(); ++d) fits = t.size(d) == x.size(dim + d);
    ET_REQUIRE(ctx, fits, InvalidArgument, false,
               "%s: mask of shape %s at indices[%" PRId64
               "] does not match shape %s from dim %" PRId64,
               op, ShapeText(t).c_str(), entry, ShapeText(x).c_str(), dim);
    term.n_true = 0;
    for (int64_t i = 0; i < t.numel(); ++i) term.n_true += is_set(t, i);
    for (int64_t d = 0; d < t.dim(); ++d) {
      term.covered.push(x.size(dim + d), x.strides()[static_cast<size_t>(dim + d)]);
    }
  } else if (!require_index_dtype(ctx, op, t)) {
    return false;
  }
  ET_REQUIRE(ctx, dim + term.n_dims() <= x.dim(), InvalidArgument, false,
             "%s: too many indices for a tensor of shape %s", op, ShapeText(x).c_str());
  for (int64_t d = 0; d < term.n_dims(); ++d) is_indexed_[dim++] = true;
  return true;
}

// Computes the common shape of the index tensors, and the strides of each over it.
bool AdvancedIndex::broadcast_terms(KernelRuntimeContext& ctx, const char* op, const Tensor& x) {
  const auto shape_of_term = [](const Term& term) {
    Shape shape = term.layout.shape;
    if (term.n_true >= 0) {
      shape = Shape();
      shape.push(term.n_true);
    }
    return shape;
  };
  int64_t ndim = 0;
  for (int64_t t = 0; t < n_terms_; ++t) ndim = std::max(ndim, shape_of_term(terms_[t]).ndim());
  for (int64_t d = 0; d < ndim; ++d) broadcast_.push(1);
  for (int64_t t = 0; t < n_terms_; ++t) {
    Term& term = terms_[t];
    const Shape shape = shape_of_term(term);
    const int64_t lead = broadcast_.ndim() - shape.ndim();
    for (int64_t d = 0; d < shape.ndim(); ++d) {
      const SizesType common = broadcast_[lead + d];
      const SizesType own = shape[d];
      ET_REQUIRE(ctx, own == common || own == 1 || common == 1, InvalidArgument, false,
                 "%s: index tensors for shape %s do not broadcast: indices[%" PRId64
                 "] has %d positions in a dim of %d",
                 op, ShapeText(x).c_str(), term.entry, static_cast<int>(own),
                 static_cast<int>(common));
      if (common == 1) broadcast_.set(lead + d, own);
      if (own != 1 && term.n_true < 0) term.strides[lead + d] = term.layout.strides[d];
    }
  }
  return true;
}

bool AdvancedIndex::list_places(KernelRuntimeContext& ctx, const char* op, Term& term) {
  executorch::cpu::Scratch& scratch = scratch_;
  int64_t* const places = scratch.array<int64_t>(term.n_true);
  ET_REQUIRE(ctx, places != nullptr, MemoryAllocationFailed, false,
             "%s: no temporary memory for the %" PRId64 " positions of a mask", op, term.n_true);
  for (int64_t i = 0, found = 0; found < term.n_true; ++i) {
    if (is_set(*term.tensor, offset_at(term.layout, i)))
      places[found++] = offset_at(term.covered, i);
  }
  term.places = places;
  return true;
}

bool AdvancedIndex::parse(KernelRuntimeContext& ctx, const char* op, const Tensor& x,
                          OptionalTensors indices) {
  int64_t dim = 0;
  int64_t first = -1, last = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].has_value()) {
      ++dim;
      continue;
    }
    neighbours_ = neighbours_ && (last < 0 || last == dim);
    if (first < 0) first = dim;
    ET_REQUIRE(ctx, n_terms_ < kMaxDims, InvalidArgument, false, "%s: too many indices", op);
    if (!add_term(ctx, op, x, *indices[i], static_cast<int64_t>(i), dim)) return false;
    last = dim;
  }
  ET_REQUIRE(ctx, n_terms_ > 0 && dim <= x.dim(), InvalidArgument, false,
             "%s: %s for a tensor of shape %s", op,
             n_terms_ == 0 ? "at least one index tensor was expected" : "too many indices",
             ShapeText(x).c_str());
  if (!broadcast_terms(ctx, op, x)) return false;
  broadcast_at_ = neighbours_ ? first : 0;
  int64_t n_rest = 0;
  for (int64_t d = 0; d < x.dim(); ++d) n_rest += !is_indexed_[d];
  ET_REQUIRE(ctx, n_rest + broadcast_.ndim() <= kMaxDims, InvalidArgument, false,
             "%s: the result has too many dims", op);
  for (int64_t d = 0; d <= x.dim(); ++d) {
    if (result_.ndim() == broadcast_at_ && d == (neighbours_ ? first : 0)) {
      for (int64_t b = 0; b < broadcast_.ndim(); ++b) result_.push(broadcast_[b]);
    }
    if (d < x.dim() && !is_indexed_[d]) result_.push(x.size(d));
  }
  for (int64_t t = 0; t < n_terms_; ++t) {
    const Term& term = terms_[t];
    ET_REQUIRE(ctx, x.size(term.dim) > 0 || broadcast_.numel().value_or(1) == 0, InvalidArgument,
               false,
               "%s: indices[%" PRId64 "] points into dim %" PRId64 " of shape %s, which is empty",
               op, term.entry, term.dim, ShapeText(x).c_str());
  }
  const Size positions = broadcast_.numel();
  for (int64_t t = 0; t < n_terms_; ++t) {
    Term& term = terms_[t];
    if (term.n_true > 0 && !positions.within(term.n_true) && !list_places(ctx, op, term)) {
      return false;
    }
  }
  return true;
}

// Adds to the places of the positions from `position` on where in x an integer term points to.
// Returns the first position whose value is bad, or -1.
int64_t AdvancedIndex::add_values(const Term& term, const Layout& x, int64_t position,
                                  Places& places) const {
  const int64_t extent = x.shape[term.dim], step = x.strides[term.dim];
  Loop loop(broadcast_);
  loop.add(term.strides);
  loop.collapse();
  int64_t bad = -1;
  with_index_values(*term.tensor, [&](const auto* values) {
    int64_t* at = places.at;
    for_each_piece(loop, 0, position, places.n, [&](int64_t offset, int64_t n, int64_t stride) {
      bool all = true;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t value = values[offset + i * stride];
        const bool good = value >= -extent && value < extent;
        all &= good;
        at[i] += good ? (value < 0 ? value + extent : value) * step : 0;
      }
      for (int64_t i = 0; !all && bad < 0 && i < n; ++i) {
        const int64_t value = values[offset + i * stride];
        if (value < -extent || value >= extent) bad = position + (at - places.at) + i;
      }
      at += n;
    });
  });
  return bad;
}

// The same for a mask: the k-th position along the last broadcast dim is the k-th true element.
// `mask_position` is the position that the scan of the mask has reached.
void AdvancedIndex::add_true(const Term& term, int64_t position, int64_t& mask_position,
                             Places& places) const {
  for (int64_t i = 0; i < places.n; ++i) {
    if (term.places != nullptr) {
      const int64_t k = (position + i) % broadcast_[broadcast_.ndim() - 1];
      places.at[i] += term.places[term.n_true == 1 ? 0 : k];
      continue;
    }
    do {
      ++mask_position;
    } while (!is_set(*term.tensor, offset_at(term.layout, mask_position)));
    places.at[i] += offset_at(term.covered, mask_position);
  }
}

void AdvancedIndex::fail(KernelRuntimeContext& ctx, const char* op, const Layout& x,
                         int64_t position) const {
  for (int64_t t = 0; t < n_terms_; ++t) {
    const Term& term = terms_[t];
    if (term.n_true >= 0) continue;
    const int64_t extent = x.shape[term.dim];
    Loop loop(broadcast_);
    loop.add(term.strides);
    const int64_t value = IndexValues(*term.tensor)[loop.offset(0, position)];
    if (value >= -extent && value < extent) continue;
    return fail_index(ctx, op, value, position, -extent, extent, term.dim);
  }
}

template <class F>
bool AdvancedIndex::visit(KernelRuntimeContext& ctx, const char* op, const Layout& x,
                          const Layout& other, bool in_order, F&& f) const {
  ET_REQUIRE(ctx, broadcast_.numel().ok(), InvalidArgument, false,
             "%s: the index tensors broadcast to %s, too many positions", op,
             ShapeText(broadcast_.ref()).c_str());
  Loop loop(broadcast_);
  loop.add(other.strides + broadcast_at_);
  loop.collapse();
  const int64_t row = loop.ndim > 0 ? loop.sizes[loop.ndim - 1] : 1;
  for (int64_t t = 0; t < n_terms_; ++t) {
    in_order = in_order || (terms_[t].n_true >= 0 && terms_[t].places == nullptr);
  }
  FirstBad bad;
  const auto some = [&](int64_t position, int64_t end) {
    Places places;
    places.step = loop.inner_stride(0);
    int64_t mask_positions[kTensorDimensionLimit];
    std::fill_n(mask_positions, n_terms_, int64_t{-1});
    for (bool good = true; good && position < end; position += places.n) {
      places.n = std::min({Places::kMost, end - position, row - position % row});
      places.begin = other.offset + loop.offset(0, position);
      std::fill_n(places.at, places.n, x.offset);
      for (int64_t t = 0; t < n_terms_; ++t) {
        if (terms_[t].n_true >= 0) {
          add_true(terms_[t], position, mask_positions[t], places);
        } else if (const int64_t at = add_values(terms_[t], x, position, places); at >= 0) {
          bad.see(at);
          good = false;
        }
      }
      if (good) f(places);
    }
  };
  // Threads share the positions if there are many; otherwise f may share what lies at them.
  const int64_t n = broadcast_.numel().value();
  const bool shared = !in_order && n >= 4 * Places::kMost;
  executorch::cpu::parallel_for(n, shared ? Places::kMost : std::max<int64_t>(n, 1), some);
  if (bad.position()) fail(ctx, op, x, *bad.position());
  return !bad.position();
}

Loop AdvancedIndex::rest(const Layout& x, const Layout& other) const {
  Layout kept, beside;
  int64_t result_dim = 0;
  for (int64_t d = 0; d < x.shape.ndim(); ++d) {
    if (is_indexed_[d]) continue;
    if (result_dim == broadcast_at_) result_dim += broadcast_.ndim();
    kept.push(x.shape[d], x.strides[d]);
    beside.push(x.shape[d], other.strides[result_dim++]);
  }
  Loop loop(kept.shape);
  loop.add(kept.strides).add(beside.strides);
  loop.order_by(0);
  loop.collapse();
  return loop;
}

}  // namespace

Tensor& index_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, OptionalTensors indices,
                         Tensor& out) {
  constexpr const char* kOp = "index.Tensor_out";
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, out,
             "%s: out has dtype %s; that of the input, %s, was expected", kOp,
             toString(out.scalar_type()), toString(self.scalar_type()));
  AdvancedIndex index(ctx);
  if (!require_indices_apart(ctx, kOp, indices, out)) return out;
  if (static_cast<ssize_t>(indices.size()) <= self.dim() && !has_tensor(indices)) {
    copy_view(ctx, kOp, self, Layout(self), out);
    return out;
  }
  if (!index.parse(ctx, kOp, self, indices)) return out;
  if (!resize_out(ctx, kOp, out, index.result()) || out.numel() == 0) return out;
  const Layout from(self), to(out);
  const Loop rest = index.rest(from, to);
  with_element_size(static_cast<size_t>(out.element_size()), [&](auto tag) {
    using T = decltype(tag);
    const T* src = static_cast<const T*>(self.const_data_ptr());
    T* dst = static_cast<T*>(out.mutable_data_ptr());
    index.visit(ctx, kOp, from, to, false,
                [&](const Places& places) { take_places(rest, places, src, dst); });
  });
  return out;
}

namespace {

// x[indices] = values or +=, in place.
void put(KernelRuntimeContext& ctx, const char* op, Tensor& x, OptionalTensors indices,
         const Tensor& values, bool accumulate) {
  ET_REQUIRE(ctx, x.scalar_type() == values.scalar_type(), InvalidArgument, ,
             "%s: values have dtype %s; that of the input, %s, was expected", op,
             toString(values.scalar_type()), toString(x.scalar_type()));
  AdvancedIndex index(ctx);
  if (!require_indices_apart(ctx, op, indices, x) || !index.parse(ctx, op, x, indices)) return;
  const Shape& shape = index.result();
  const Layout own(values);
  const int64_t lead = shape.ndim() - own.shape.ndim();
  bool fits = lead >= 0;
  Layout expanded;
  for (int64_t d = 0; fits && d < shape.ndim(); ++d) {
    const SizesType size = d < lead ? 1 : own.shape[d - lead];
    fits = size == 1 || size == shape[d];
    expanded.push(shape[d], size == 1 ? 0 : own.strides[d - lead]);
  }
  ET_REQUIRE(ctx, fits, InvalidArgument, , "%s: values of shape %s do not broadcast to %s", op,
             ShapeText(values).c_str(), ShapeText(shape.ref()).c_str());
  if (shape.numel().within(0)) return;
  // The values, and the index tensors, may be broadcast.
  if (!require_affordable(ctx, op, shape.numel(), elements_of(x, values))) return;
  const Layout to(x);
  const Loop rest = index.rest(to, expanded);
  const auto run = [&](auto tag, auto add) {
    using T = StoredAs<decltype(tag)>;
    T* dst = static_cast<T*>(x.mutable_data_ptr());
    const T* src = static_cast<const T*>(values.const_data_ptr());
    index.visit(ctx, op, to, expanded, true, [&](const Places& places) {
      put_places<decltype(add)::value>(rest, places, src, dst);
    });
  };
  if (!accumulate) {
    with_element_size(static_cast<size_t>(x.element_size()),
                      [&](auto tag) { run(tag, std::false_type()); });
    return;
  }
  const bool known = with_dtype(x.scalar_type(), [&](auto tag) { run(tag, std::true_type()); });
  ET_REQUIRE(ctx, known, InvalidArgument, , "%s: cannot accumulate dtype %s", op,
             toString(x.scalar_type()));
}

}  // namespace

Tensor& index_put_out(KernelRuntimeContext& ctx, const Tensor& self, OptionalTensors indices,
                      const Tensor& values, bool accumulate, Tensor& out) {
  constexpr const char* kOp = "index_put.out";
  const bool in_place = self.const_data_ptr() == out.const_data_ptr() && same_layout(self, out);
  if (!in_place && !copy_view(ctx, kOp, self, Layout(self), out)) return out;
  put(ctx, kOp, out, indices, values, accumulate);
  return out;
}

Tensor& index_put_(KernelRuntimeContext& ctx, Tensor& self, OptionalTensors indices,
                   const Tensor& values, bool accumulate) {
  put(ctx, "index_put_", self, indices, values, accumulate);
  return self;
}

namespace {
constexpr Kernel kIndexOps[] = {
    ET_OP("aten::index.Tensor_out", index_Tensor_out, select),
    ET_OP("aten::index_put.out", index_put_out),
    ET_OP("aten::index_put_", index_put_),
};
}  // namespace

Span<const Kernel> index_ops() {
  return kIndexOps;
}

}  // namespace torch::executor::native
