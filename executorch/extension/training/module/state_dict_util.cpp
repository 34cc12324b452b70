#include <executorch/extension/training/module/state_dict_util.h>

#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::extension::training {

using runtime::Result;
using StateDict = std::map<std::string, TensorPtr>;

namespace {

Result<TensorPtr> load(const runtime::NamedDataMap& data, const char* key) {
  ET_ASSIGN_OR_RETURN(const auto layout, data.get_tensor_layout(key), "%s cannot be loaded", key);
  const auto sizes = layout.sizes();
  const auto order = layout.dim_order();
  const std::shared_ptr<void> bytes(::operator new(layout.nbytes()),
                                    [](void* p) { ::operator delete(p); });
  ET_CHECK_OK_OR_RETURN_ERROR(data.load_data_into(key, bytes.get(), layout.nbytes()),
                              "%s cannot be loaded", key);
  ET_ASSIGN_OR_RETURN(
      auto tensor,
      extension::internal::try_make_tensor_ptr(bytes, bytes.get(), {sizes.begin(), sizes.end()},
                                               {order.begin(), order.end()}, layout.scalar_type(),
                                               aten::TensorShapeDynamism::STATIC),
      "%s cannot be loaded", key);
  return tensor;
}

}  // namespace

Result<StateDict> load_state_dict(const runtime::NamedDataMap& data) {
  return runtime::catch_allocation_failure("load_state_dict", [&]() -> Result<StateDict> {
    ET_ASSIGN_OR_RETURN(const uint32_t n_keys, data.get_num_keys());
    StateDict tensors;
    for (uint32_t i = 0; i < n_keys; ++i) {
      ET_ASSIGN_OR_RETURN(const char* const key, data.get_key(i));
      ET_ASSIGN_OR_RETURN(tensors[key], load(data, key));
    }
    return tensors;
  });
}

}  // namespace executorch::extension::training
