/// Tensors for tests. A factory owns the memory of every tensor it made; they die with it.
///
///   TensorFactory<ScalarType::Float> tf;
///   Tensor t = tf.make({2, 2}, {1.0, 2.0, 3.0, 4.0});
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/tensor_shape_dynamism.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime::testing {
namespace internal {

inline size_t sizes_to_numel(const std::vector<int32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{1},
                         [](size_t n, int32_t size) { return n * static_cast<size_t>(size); });
}

/// {0, 1, ... rank - 1}.
inline std::vector<uint8_t> contiguous_dim_order(size_t rank) {
  std::vector<uint8_t> order(rank);
  std::iota(order.begin(), order.end(), uint8_t{0});
  return order;
}

/// {0, 2, 3, 1} or {0, 2, 3, 4, 1}.
inline std::vector<uint8_t> channels_last_dim_order(size_t rank) {
  ET_CHECK_MSG(rank == 4 || rank == 5, "channels last has 4 or 5 dimensions, not %zu", rank);
  std::vector<uint8_t> order = contiguous_dim_order(rank);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

/// Of more dimensions, too, than kernels take, so that tests can see them refused.
inline std::vector<int32_t> strides_of(const std::vector<int32_t>& sizes,
                                       const std::vector<uint8_t>& dim_order) {
  std::vector<uint8_t> sorted = dim_order;
  std::sort(sorted.begin(), sorted.end());
  ET_CHECK_MSG(sorted == contiguous_dim_order(sizes.size()), "invalid dim order");
  std::vector<int32_t> strides(sizes.size());
  dim_order_to_stride_nocheck(sizes.data(), dim_order.data(), sizes.size(), strides.data());
  return strides;
}

/// The order of a dense tensor's dimensions in memory. Where strides are equal, all sizes but one
/// are 1 or 0, and that one is outermost. Stops at strides of any other tensor.
inline std::vector<uint8_t> dim_order_of(const std::vector<int32_t>& sizes,
                                         const std::vector<int32_t>& strides) {
  ET_CHECK_MSG(strides.size() == sizes.size(), "%zu strides for %zu sizes", strides.size(),
               sizes.size());
  std::vector<uint8_t> order = contiguous_dim_order(sizes.size());
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : sizes[a] > sizes[b];
  });
  int64_t dense = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const uint8_t d = order[i];
    ET_CHECK_MSG(strides[d] == dense,
                 "dimension %u has the stride %d; in a dense tensor it is %lld", unsigned{d},
                 static_cast<int>(strides[d]), static_cast<long long>(dense));
    dense *= std::max(sizes[d], 1);
  }
  return order;
}

/// The type that tests write elements of DTYPE in: uint8_t for Bool, because of std::vector<bool>,
/// and the plain integer of a quantized type and of Bits16.
template <aten::ScalarType DTYPE>
struct ScalarTypeToCppTypeWrapper {
  using ctype = typename ScalarTypeToCppType<DTYPE>::type;
};
template <>
struct ScalarTypeToCppTypeWrapper<aten::ScalarType::Bool> {
  using ctype = uint8_t;
};
#define ET_PLAIN_INTEGER(type, name)                          \
  template <>                                                 \
  struct ScalarTypeToCppTypeWrapper<aten::ScalarType::name> { \
    using ctype = type::underlying;                           \
  };
ET_FORALL_QINT_TYPES(ET_PLAIN_INTEGER)
ET_PLAIN_INTEGER(::executorch::runtime::etensor::bits16, Bits16)
#undef ET_PLAIN_INTEGER

}  // namespace internal

template <aten::ScalarType DTYPE>
class TensorFactory {
 public:
  using true_ctype = typename ScalarTypeToCppType<DTYPE>::type;
  using ctype = typename internal::ScalarTypeToCppTypeWrapper<DTYPE>::ctype;

  TensorFactory() = default;
  TensorFactory(const TensorFactory&) = delete;
  TensorFactory& operator=(const TensorFactory&) = delete;

  /// `data` in memory order. Strides, in elements, must be those of a dense tensor, and are kept;
  /// without them it is contiguous.
  aten::Tensor make(const std::vector<int32_t>& sizes, const std::vector<ctype>& data,
                    const std::vector<int32_t>& strides = {},
                    TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    if (strides.empty()) return make_with_dimorder(sizes, data, {}, dynamism);
    return keep(sizes, data, internal::dim_order_of(sizes, strides), strides, dynamism);
  }

  aten::Tensor make_with_dimorder(const std::vector<int32_t>& sizes, const std::vector<ctype>& data,
                                  const std::vector<uint8_t>& dim_order = {},
                                  TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    const std::vector<uint8_t> order =
        dim_order.empty() ? internal::contiguous_dim_order(sizes.size()) : dim_order;
    return keep(sizes, data, order, internal::strides_of(sizes, order), dynamism);
  }

  /// `data` in memory order, that is with channels innermost.
  aten::Tensor make_channels_last(const std::vector<int32_t>& sizes, const std::vector<ctype>& data,
                                  const std::vector<uint8_t>& dim_order = {},
                                  TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return make_with_dimorder(
        sizes, data,
        dim_order.empty() ? internal::channels_last_dim_order(sizes.size()) : dim_order, dynamism);
  }

  /// The values of a contiguous tensor, element by element, in channels-last memory.
  aten::Tensor channels_last_like(const aten::Tensor& contiguous,
                                  TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    const std::vector<int32_t> sizes = sizes_of(contiguous);
    ET_CHECK_MSG(sizes.size() == 4 || sizes.size() == 5, "channels last has 4 or 5 dimensions");
    const size_t outer = static_cast<size_t>(sizes[0]);
    const size_t channels = static_cast<size_t>(sizes[1]);
    const size_t inner = std::accumulate(sizes.begin() + 2, sizes.end(), size_t{1},
                                         [](size_t n, int32_t size) { return n * size; });
    const auto* source = static_cast<const ctype*>(contiguous.const_data_ptr());
    std::vector<ctype> data;
    for (size_t n = 0; n < outer; ++n) {
      for (size_t i = 0; i < inner; ++i) {
        for (size_t c = 0; c < channels; ++c) {
          data.push_back(source[(n * channels + c) * inner + i]);
        }
      }
    }
    return make_channels_last(sizes, data, {}, dynamism);
  }

  aten::Tensor full(const std::vector<int32_t>& sizes, ctype value,
                    TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return make(sizes, filled(sizes, value), {}, dynamism);
  }
  aten::Tensor full_channels_last(const std::vector<int32_t>& sizes, ctype value,
                                  TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return make_channels_last(sizes, filled(sizes, value), {}, dynamism);
  }
  /// Of the sizes and dim order of `input`.
  aten::Tensor full_like(const aten::Tensor& input, ctype value,
                         TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    const std::vector<int32_t> sizes = sizes_of(input);
    std::vector<uint8_t> order;
    if (input.dim_order().data() != nullptr) {
      order.assign(input.dim_order().begin(), input.dim_order().end());
    }
    return make_with_dimorder(sizes, filled(sizes, value), order, dynamism);
  }

  aten::Tensor zeros(const std::vector<int32_t>& sizes,
                     TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full(sizes, ctype(0), dynamism);
  }
  aten::Tensor zeros_channels_last(const std::vector<int32_t>& sizes,
                                   TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full_channels_last(sizes, ctype(0), dynamism);
  }
  aten::Tensor zeros_like(const aten::Tensor& input,
                          TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full_like(input, ctype(0), dynamism);
  }
  aten::Tensor ones(const std::vector<int32_t>& sizes,
                    TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full(sizes, ctype(1), dynamism);
  }
  aten::Tensor ones_channels_last(const std::vector<int32_t>& sizes,
                                  TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full_channels_last(sizes, ctype(1), dynamism);
  }
  aten::Tensor ones_like(const aten::Tensor& input,
                         TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC) {
    return full_like(input, ctype(1), dynamism);
  }

 private:
  struct Memory {
    Memory(const std::vector<int32_t>& sizes_, const std::vector<ctype>& data_,
           const std::vector<uint8_t>& dim_order_, const std::vector<int32_t>& strides_,
           TensorShapeDynamism dynamism)
        : sizes(sizes_),
          data(stored(data_)),
          dim_order(dim_order_),
          strides(strides_),
          impl(DTYPE, static_cast<ssize_t>(sizes.size()), sizes.data(), data.data(),
               dim_order.data(), strides.data(), dynamism) {}

    std::vector<int32_t> sizes;
    std::vector<ctype> data;
    std::vector<uint8_t> dim_order;
    std::vector<int32_t> strides;
    aten::TensorImpl impl;
  };

  aten::Tensor keep(const std::vector<int32_t>& sizes, const std::vector<ctype>& data,
                    const std::vector<uint8_t>& dim_order, const std::vector<int32_t>& strides,
                    TensorShapeDynamism dynamism) {
    ET_CHECK_MSG(data.size() == internal::sizes_to_numel(sizes), "%zu values for %zu elements",
                 data.size(), internal::sizes_to_numel(sizes));
    made_.push_back(std::make_unique<Memory>(sizes, data, dim_order, strides, dynamism));
    return aten::Tensor(&made_.back()->impl);
  }

  /// Elements of Bool are 0 or 1 whatever a test writes, as a conversion to bool makes them.
  static std::vector<ctype> stored(std::vector<ctype> data) {
    if constexpr (DTYPE == aten::ScalarType::Bool) {
      std::replace_if(
          data.begin(), data.end(), [](ctype x) { return x != 0; }, ctype{1});
    }
    return data;
  }
  static std::vector<ctype> filled(const std::vector<int32_t>& sizes, ctype value) {
    return std::vector<ctype>(internal::sizes_to_numel(sizes), value);
  }
  static std::vector<int32_t> sizes_of(const aten::Tensor& t) {
    return {t.sizes().begin(), t.sizes().end()};
  }

  std::vector<std::unique_ptr<Memory>> made_;
};

/// Lists of tensors, each of the sizes and dim order of one of `templates`.
template <aten::ScalarType DTYPE>
class TensorListFactory final {
 public:
  using ctype = typename TensorFactory<DTYPE>::ctype;

  aten::TensorList zeros_like(const std::vector<aten::Tensor>& templates) {
    return full_like(templates, ctype(0));
  }
  aten::TensorList ones_like(const std::vector<aten::Tensor>& templates) {
    return full_like(templates, ctype(1));
  }

 private:
  aten::TensorList full_like(const std::vector<aten::Tensor>& templates, ctype value) {
    auto list = std::make_unique<std::vector<aten::Tensor>>();
    for (const aten::Tensor& t : templates) list->push_back(tensors_.full_like(t, value));
    lists_.push_back(std::move(list));
    return {lists_.back()->data(), lists_.back()->size()};
  }

  TensorFactory<DTYPE> tensors_;
  std::vector<std::unique_ptr<std::vector<aten::Tensor>>> lists_;
};

}  // namespace executorch::runtime::testing

namespace torch::executor::testing {
using ::executorch::runtime::testing::TensorFactory;
using ::executorch::runtime::testing::TensorListFactory;
}  // namespace torch::executor::testing
