#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/training/module/state_dict_util.h>
#include <gtest/gtest.h>

#include <sstream>

// What is experimental says so by a warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training {
namespace {

using aten::ScalarType;
using runtime::Error;

TEST(StateDict, HasCopiesOfAllTensors) {
  std::map<std::string, TensorPtr> saved = {
      {"a", make_tensor_ptr({2, 2}, std::vector<float>{1, 2, 3, 4}, {1, 0})},
      {"b", make_tensor_ptr({3}, std::vector<int64_t>{5, 6, 7})},
      {"empty", make_tensor_ptr({0, 2}, std::vector<float>{})},
      {"number", make_tensor_ptr({}, std::vector<double>{0.5})}};
  std::map<std::string, aten::Tensor> handles;
  for (const auto& [name, tensor] : saved) handles.emplace(name, *tensor);
  std::ostringstream out;
  ASSERT_EQ(flat_tensor::save_ptd(out, handles, 16), Error::Ok);
  std::string bytes = out.str();
  std::map<std::string, TensorPtr> loaded;
  {
    BufferDataLoader loader(bytes.data(), bytes.size());
    const auto map = FlatTensorDataMap::load(&loader);
    ASSERT_EQ(map.error(), Error::Ok);
    const auto found = load_state_dict(*map);
    ASSERT_EQ(found.error(), Error::Ok);
    loaded = *found;
  }
  bytes.assign(bytes.size(), '\0');
  ASSERT_EQ(loaded.size(), 4u);
  for (const auto& [name, tensor] : saved) {
    const aten::Tensor& copy = *loaded.at(name);
    EXPECT_EQ(copy.scalar_type(), tensor->scalar_type()) << name;
    EXPECT_EQ(copy.sizes(), tensor->sizes()) << name;
    EXPECT_EQ(copy.dim_order(), tensor->dim_order()) << name;
    ASSERT_EQ(copy.nbytes(), tensor->nbytes()) << name;
    if (copy.nbytes() == 0) continue;
    EXPECT_EQ(std::memcmp(copy.const_data_ptr(), tensor->const_data_ptr(), copy.nbytes()), 0);
  }
}

/// A map whose layout promises more than it has.
class Liar final : public runtime::NamedDataMap {
 public:
  explicit Liar(std::vector<int32_t> sizes) : sizes_(std::move(sizes)), order_(sizes_.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint8_t>(i);
  }
  runtime::Result<const runtime::TensorLayout> get_tensor_layout(std::string_view) const override {
    return runtime::TensorLayout::create({sizes_.data(), sizes_.size()},
                                         {order_.data(), order_.size()}, ScalarType::Float);
  }
  runtime::Result<runtime::FreeableBuffer> get_data(std::string_view) const override {
    return Error::NotFound;
  }
  Error load_data_into(std::string_view, void*, size_t size) const override {
    return size <= 4 ? Error::Ok : Error::InvalidArgument;
  }
  runtime::Result<uint32_t> get_num_keys() const override { return 1u; }
  runtime::Result<const char*> get_key(uint32_t) const override { return "k"; }

 private:
  std::vector<int32_t> sizes_;
  std::vector<uint8_t> order_;
};

TEST(StateDict, PassesErrorsOn) {
  EXPECT_EQ(load_state_dict(Liar({1})).error(), Error::Ok);
  EXPECT_EQ(load_state_dict(Liar({2})).error(), Error::InvalidArgument);
  EXPECT_EQ(load_state_dict(Liar({-2})).error(), Error::InvalidArgument);
  EXPECT_EQ(load_state_dict(Liar(std::vector<int32_t>(3, INT32_MAX))).error(),
            Error::InvalidArgument);
  EXPECT_EQ(load_state_dict(Liar(std::vector<int32_t>(40, 1))).error(), Error::InvalidArgument);
  EXPECT_EQ(load_state_dict(Liar({0, INT32_MAX, INT32_MAX})).error(), Error::Ok);
}

}  // namespace
}  // namespace executorch::extension::training
