#include <executorch/kernels/optimized/view.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

// More elements than memory can hold. Sizes in arguments come from the program, so larger products
// are refused lest they overflow.
constexpr int64_t kMostElements = int64_t{1} << 56;

bool normalize(int64_t& dim, int64_t n) {
  if (dim < 0) dim += n;
  return dim >= 0 && dim < n;
}

}  // namespace

View::View(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  if (sizes.size() > kMaxDims || tensor.numel() <= 0) return;
  ndim_ = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    push({sizes[d], strides[d]});
    close_dim();
  }
}

View::View(const int64_t* sizes, int n) {
  int64_t stride = 1;
  if (n > kMaxDims) return;
  for (int d = 0; d < n; ++d) {
    if (sizes[d] <= 0 || sizes[d] > kMostElements / stride) return;
    stride *= sizes[d];
  }
  ndim_ = 0;
  for (int d = 0; d < n; ++d) {
    stride /= sizes[d];
    push({sizes[d], stride});
    close_dim();
  }
}

// Adds a factor to the dimension under construction, which follows those that close_dim() has
// ended.
bool View::push(Factor factor) {
  if (factor.size == 1) return true;
  int& end = end_[ndim_];
  const int first = begin(ndim_);
  if (end < first) end = first;
  if (end > first) {
    Factor& last = factors_[end - 1];
    if (last.stride == factor.size * factor.stride) {
      last = {last.size * factor.size, factor.stride};
      return true;
    }
  }
  if (end == kMaxFactors) return false;
  factors_[end++] = factor;
  return true;
}

bool View::close_dim() {
  if (ndim_ == kMaxDims) return false;
  end_[ndim_] = std::max(end_[ndim_], begin(ndim_));
  ++ndim_;
  if (ndim_ < kMaxDims) end_[ndim_] = end_[ndim_ - 1];
  return true;
}

int64_t View::size(int dim) const {
  int64_t size = 1;
  for (int i = begin(dim); i < end_[dim]; ++i) size *= factors_[i].size;
  return size;
}

bool View::stride(int dim, int64_t& stride) const {
  const int n = n_factors(dim);
  stride = n == 0 ? 0 : factor(dim, 0).stride;
  return n <= 1;
}

bool View::same_sizes(const View& other) const {
  if (!valid() || !other.valid() || ndim_ != other.ndim_) return false;
  for (int d = 0; d < ndim_; ++d) {
    if (size(d) != other.size(d)) return false;
  }
  return true;
}

bool View::reshape(const int64_t* sizes, int n) {
  if (!valid() || n > kMaxDims) return false;
  int64_t numel = 1, known = 1;
  for (int i = 0; i < (ndim_ == 0 ? 0 : end_[ndim_ - 1]); ++i) numel *= factors_[i].size;
  int inferred = -1;
  for (int d = 0; d < n; ++d) {
    if (sizes[d] == -1 && inferred < 0) {
      inferred = d;
    } else if (sizes[d] <= 0 || sizes[d] > numel / known) {
      return false;
    } else {
      known *= sizes[d];
    }
  }
  if (numel % known != 0 || (inferred < 0 && numel != known)) return false;

  // Treat all factors as one dimension, so that neighbours in memory are merged.
  View flat;
  flat.ndim_ = 0;
  flat.offset_ = offset_;
  for (int i = 0; i < (ndim_ == 0 ? 0 : end_[ndim_ - 1]); ++i) flat.push(factors_[i]);
  const int count = flat.end_[0];
  View out;
  out.ndim_ = 0;
  out.offset_ = offset_;
  int at = 0;
  for (int d = 0; d < n; ++d) {
    int64_t need = d == inferred ? numel / known : sizes[d];
    while (need > 1) {
      if (at == count) return false;
      Factor& f = flat.factors_[at];
      if (need % f.size == 0) {
        if (!out.push(f)) return false;
        need /= f.size;
        ++at;
      } else if (f.size % need == 0) {
        f.size /= need;
        if (!out.push({need, f.size * f.stride})) return false;
        need = 1;
      } else {
        return false;
      }
    }
    out.close_dim();
  }
  *this = out;
  return true;
}

bool View::permute(const int64_t* dims, int n) {
  if (!valid() || n != ndim_) return false;
  View out;
  out.ndim_ = 0;
  out.offset_ = offset_;
  uint32_t seen = 0;
  for (int d = 0; d < n; ++d) {
    int64_t from = dims[d];
    if (!normalize(from, n) || (seen >> from & 1) != 0) return false;
    seen |= 1u << from;
    for (int i = 0; i < n_factors(static_cast<int>(from)); ++i) {
      if (!out.push(factor(static_cast<int>(from), i))) return false;
    }
    out.close_dim();
  }
  *this = out;
  return true;
}

bool View::transpose(int64_t dim0, int64_t dim1) {
  if (!valid() || !normalize(dim0, ndim_) || !normalize(dim1, ndim_)) return false;
  int64_t dims[kMaxDims];
  for (int d = 0; d < ndim_; ++d) dims[d] = d;
  std::swap(dims[dim0], dims[dim1]);
  return permute(dims, ndim_);
}

bool View::unsqueeze(int64_t dim) {
  if (!valid() || ndim_ == kMaxDims || !normalize(dim, ndim_ + 1)) return false;
  for (int d = ndim_; d > dim; --d) end_[d] = end_[d - 1];
  end_[dim] = dim == 0 ? 0 : end_[dim - 1];
  ++ndim_;
  return true;
}

bool View::squeeze(int64_t dim) {
  if (!valid()) return false;
  if (ndim_ == 0) return dim == 0 || dim == -1;
  if (!normalize(dim, ndim_)) return false;
  if (size(static_cast<int>(dim)) != 1) return true;
  for (int d = static_cast<int>(dim); d + 1 < ndim_; ++d) end_[d] = end_[d + 1];
  --ndim_;
  return true;
}

bool View::expand(const int64_t* sizes, int n) {
  if (!valid() || n < ndim_ || n > kMaxDims) return false;
  View out;
  out.ndim_ = 0;
  out.offset_ = offset_;
  const int added = n - ndim_;
  int64_t numel = 1;
  for (int d = 0; d < n; ++d) {
    const int64_t old = d < added ? 1 : size(d - added);
    const int64_t wanted = sizes[d] == -1 && d >= added ? old : sizes[d];
    if (wanted <= 0 || (old != wanted && old != 1) || wanted > kMostElements / numel) return false;
    numel *= wanted;
    if (old == wanted) {
      for (int i = 0; d >= added && i < n_factors(d - added); ++i) {
        if (!out.push(factor(d - added, i))) return false;
      }
    } else if (!out.push({wanted, 0})) {
      return false;
    }
    out.close_dim();
  }
  *this = out;
  return true;
}

bool View::expand_as(const View& other) {
  int64_t sizes[kMaxDims];
  for (int d = 0; d < other.ndim_; ++d) sizes[d] = other.size(d);
  return other.valid() && expand(sizes, other.ndim_);
}

bool View::slice(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (!valid() || !normalize(dim, ndim_) || step <= 0) return false;
  const int d = static_cast<int>(dim);
  const int64_t length = size(d);
  start = std::clamp<int64_t>(start < 0 ? start + length : start, 0, length);
  end = std::clamp<int64_t>(end < 0 ? end + length : end, start, length);
  const int64_t taken = (end - start) / step + ((end - start) % step == 0 ? 0 : 1);
  if (taken == length) return true;
  int64_t stride_of_dim = 0;
  if (taken <= 0 || !stride(d, stride_of_dim)) return false;
  offset_ += start * stride_of_dim;
  Factor& f = factors_[begin(d)];
  if (taken > 1) {
    f = {taken, stride_of_dim * step};
    return true;
  }
  std::move(&f + 1, factors_ + end_[ndim_ - 1], &f);
  for (int i = d; i < ndim_; ++i) --end_[i];
  return true;
}

bool View::select(int64_t dim, int64_t index) {
  if (!valid() || !normalize(dim, ndim_)) return false;
  const int64_t length = size(static_cast<int>(dim));
  if (!normalize(index, length)) return false;
  return slice(dim, index, index + 1, 1) && squeeze(dim);
}

namespace {

// Reads the arguments of operators that make views.
struct Arguments {
  Span<EValue*> values;

  int64_t integer(size_t i, int64_t otherwise = 0) const {
    return i < values.size() && values[i]->isInt() ? values[i]->toInt() : otherwise;
  }
  // Reads a list of at most as many items as a view has dimensions. The kernel refuses longer ones.
  int list(size_t i, int64_t (&items)[View::kMaxDims]) const {
    const auto found = values[i]->tryToIntList();
    if (!found.ok() || found->size() > View::kMaxDims) return -1;
    std::copy(found->begin(), found->end(), items);
    return static_cast<int>(found->size());
  }
};

bool apply_split(View& view, const Arguments& args, uint32_t part) {
  const int64_t length = args.integer(1);
  int64_t dim = args.integer(2);
  if (length <= 0 || !normalize(dim, view.ndim())) return false;
  const int64_t size = view.size(static_cast<int>(dim));
  if (part > (size - 1) / length) return false;
  const int64_t start = part * length;
  return view.slice(dim, start, start + std::min(length, size - start), 1);
}

bool apply_split_sizes(View& view, const Arguments& args, uint32_t part) {
  const auto sizes = args.values[1]->tryToIntList();
  int64_t dim = args.integer(2);
  if (!sizes.ok() || part >= sizes->size() || !normalize(dim, view.ndim())) return false;
  const int64_t size = view.size(static_cast<int>(dim));
  int64_t start = 0, total = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] < 0 || (*sizes)[i] > size - total) return false;
    start += i < part ? (*sizes)[i] : 0;
    total += (*sizes)[i];
  }
  return total == size && view.slice(dim, start, start + (*sizes)[part], 1);
}

bool squeeze_dims(View& view, const int64_t* dims, int n) {
  int64_t sizes[View::kMaxDims];
  int kept = 0;
  uint32_t dropped = 0;
  for (int i = 0; i < n; ++i) {
    int64_t dim = dims[i];
    if (!normalize(dim, view.ndim())) return false;
    dropped |= 1u << dim;
  }
  for (int d = 0; d < view.ndim(); ++d) {
    if ((dropped >> d & 1) == 0 || view.size(d) != 1) sizes[kept++] = view.size(d);
  }
  return view.reshape(sizes, kept);
}

}  // namespace

bool Step::apply(View& view) const {
  const Arguments a{args};
  int64_t items[View::kMaxDims];
  int n = 0;
  switch (kind) {
    case Kind::Same:
      return view.valid();
    case Kind::Reshape:
      return (n = a.list(1, items)) >= 0 && view.reshape(items, n);
    case Kind::ReshapeAs:
      for (const auto size : args[1]->toTensor().sizes()) {
        if (n == View::kMaxDims) return false;
        items[n++] = size;
      }
      return view.reshape(items, n);
    case Kind::Permute:
      return (n = a.list(1, items)) >= 0 && view.permute(items, n);
    case Kind::Transpose:
      return view.transpose(a.integer(1), a.integer(2));
    case Kind::Transpose2d:
      return view.ndim() == 2 && view.transpose(0, 1);
    case Kind::Unsqueeze:
      return view.unsqueeze(a.integer(1));
    case Kind::Squeeze:
      return view.squeeze(a.integer(1));
    case Kind::SqueezeDims:
      return (n = a.list(1, items)) >= 0 && squeeze_dims(view, items, n);
    case Kind::Expand:
      return (n = a.list(1, items)) >= 0 && view.expand(items, n);
    case Kind::Slice:
      return view.slice(a.integer(1), a.integer(2), a.integer(3, INT64_MAX), a.integer(4, 1));
    case Kind::Select:
      return view.select(a.integer(1), a.integer(2));
    case Kind::Split:
      return apply_split(view, a, part);
    case Kind::SplitSizes:
      return apply_split_sizes(view, a, part);
    case Kind::Unbind:
      return view.select(a.integer(1), part);
  }
  return false;
}

bool Step::keeps_order() const {
  return kind == Kind::Same || kind == Kind::Reshape || kind == Kind::ReshapeAs ||
         kind == Kind::Unsqueeze || kind == Kind::Squeeze || kind == Kind::SqueezeDims;
}

bool Step::moves_all() const {
  return keeps_order() || kind == Kind::Permute || kind == Kind::Transpose ||
         kind == Kind::Transpose2d;
}

bool Step::undo(View& after, const View& before) const {
  int64_t items[View::kMaxDims], inverse[View::kMaxDims];
  if (kind == Kind::Transpose || kind == Kind::Transpose2d) return apply(after);
  if (kind == Kind::Permute) {
    const int n = Arguments{args}.list(1, items);
    if (n != before.ndim()) return false;
    for (int d = 0; d < n; ++d) {
      if (!normalize(items[d], n)) return false;
      inverse[items[d]] = d;
    }
    return after.permute(inverse, n);
  }
  if (!before.valid()) return false;
  for (int d = 0; d < before.ndim(); ++d) items[d] = before.size(d);
  return after.reshape(items, before.ndim());
}

View Operand::view() const {
  View view(tensor());
  for (const Step& step : steps) {
    if (!view.valid() || !step.apply(view)) return View();
  }
  return view;
}

const void* Operand::data(const View& view) const {
  return static_cast<const char*>(tensor().const_data_ptr()) +
         view.offset() * tensor().element_size();
}

}  // namespace executorch::optimized
