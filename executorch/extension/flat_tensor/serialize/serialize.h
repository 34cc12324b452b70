#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>

namespace executorch::extension::flat_tensor {

constexpr uint32_t kSchemaVersion = 0;

/// Writes named tensors as a .ptd file: one segment per tensor in the order of the names, every
/// segment at a multiple of `tensor_alignment`, a power of two up to 1 GiB.
/// A failure leaves `path` as it was.
/// InvalidArgument when the alignment is wrong, a name is empty or holds a zero byte, or a tensor
/// has no data or a dim order that is no permutation; AccessFailed when writing fails.
ET_EXPERIMENTAL runtime::Error save_ptd(
    const std::string& path, const std::map<std::string, executorch::aten::Tensor>& tensor_map,
    const size_t tensor_alignment);

ET_EXPERIMENTAL runtime::Error save_ptd(
    std::ostream& out, const std::map<std::string, executorch::aten::Tensor>& tensor_map,
    const size_t tensor_alignment);

}  // namespace executorch::extension::flat_tensor
