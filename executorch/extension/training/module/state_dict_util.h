#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <map>
#include <string>

namespace executorch::extension::training {

/// All tensors of a .ptd file (FlatTensorDataMap), copied: what is returned needs the map no more.
/// The map's own errors, and InvalidArgument where a key is no tensor but plain bytes.
ET_EXPERIMENTAL runtime::Result<std::map<std::string, TensorPtr>> load_state_dict(
    const runtime::NamedDataMap& data);

}  // namespace executorch::extension::training
