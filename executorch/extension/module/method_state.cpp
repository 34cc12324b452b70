#include <executorch/extension/module/method_state.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstring>

namespace executorch::extension {
namespace {

using aten::Tensor;
using runtime::Error;
using runtime::Method;
using runtime::Result;

// A page of memory: one that was never written is not read into memory by a test for zeros.
constexpr size_t kPiece = 4096;

struct Named {
  std::string name;
  uint8_t* data;
  size_t nbytes;
};

bool is_zero(const uint8_t* bytes, size_t n) {
  return n == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, n - 1) == 0);
}

size_t piece_size(size_t nbytes, size_t piece) {
  return std::min(kPiece, nbytes - piece * kPiece);
}

// The mutable buffers of a method, which is loaded if it is not.
Result<std::vector<Named>> named_buffers(Module& module, const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(module.load_method(method_name));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ET_ASSIGN_OR_RETURN(Method* const method, module.method(method_name));
#pragma GCC diagnostic pop
  const runtime::MethodMeta meta = method->method_meta();
  std::vector<Named> found;
  for (size_t i = 0; i < meta.num_attributes(); ++i) {
    ET_ASSIGN_OR_RETURN(const runtime::TensorInfo info, meta.attribute_tensor_meta(i));
    if (!info.is_memory_planned()) continue;  // a constant, or not this method's memory
    ET_ASSIGN_OR_RETURN(const Tensor tensor, method->get_attribute(info.name()));
    if (tensor.unsafeGetTensorImpl()->is_read_only()) continue;
    const auto data = runtime::internal::writable_data(tensor);
    ET_CHECK_OK_OR_RETURN_ERROR(data.error(), "%s: buffer %.*s", method_name.c_str(),
                                static_cast<int>(info.name().size()), info.name().data());
    found.push_back({std::string(info.name()), static_cast<uint8_t*>(*data), tensor.nbytes()});
  }
  return found;
}

}  // namespace

Result<MethodState> MethodState::save(Module& module, const std::string& method_name) {
  MethodState state;
  const Error error = runtime::catch_allocation_failure("MethodState::save", [&] {
    ET_ASSIGN_OR_RETURN(const std::vector<Named> buffers, named_buffers(module, method_name));
    ET_CHECK_OR_RETURN_ERROR(!buffers.empty(), NotSupported,
                             "%s names no mutable buffers; export with emit_mutable_buffer_names",
                             method_name.c_str());
    state.method_name_ = method_name;
    for (const Named& buffer : buffers) {
      state.buffers_.push_back({buffer.name, buffer.nbytes, {}});
      for (size_t piece = 0; piece * kPiece < buffer.nbytes; ++piece) {
        const uint8_t* const bytes = buffer.data + piece * kPiece;
        const size_t n = piece_size(buffer.nbytes, piece);
        if (is_zero(bytes, n)) continue;
        ET_CHECK_OR_RETURN_ERROR(piece <= UINT32_MAX, NotSupported, "buffer %s: %zu bytes",
                                 buffer.name.c_str(), buffer.nbytes);
        state.buffers_.back().pieces.push_back(static_cast<uint32_t>(piece));
        state.bytes_.insert(state.bytes_.end(), bytes, bytes + n);
      }
    }
    return Error::Ok;
  });
  ET_CHECK_OK_OR_RETURN_ERROR(error);
  return state;
}

Error MethodState::restore(Module& module) const {
  ET_CHECK_OR_RETURN_ERROR(!method_name_.empty(), InvalidState,
                           "a state that nothing was saved to");
  ET_ASSIGN_OR_RETURN(const std::vector<Named> buffers, named_buffers(module, method_name_));
  const bool same = std::equal(
      buffers.begin(), buffers.end(), buffers_.begin(), buffers_.end(),
      [](const Named& a, const Buffer& b) { return a.name == b.name && a.nbytes == b.nbytes; });
  ET_CHECK_OR_RETURN_ERROR(same, InvalidArgument,
                           "%s has other mutable buffers than the method whose state was saved",
                           method_name_.c_str());
  const uint8_t* from = bytes_.data();
  for (size_t i = 0; i < buffers.size(); ++i) {
    auto next = buffers_[i].pieces.begin();
    for (size_t piece = 0; piece * kPiece < buffers[i].nbytes; ++piece) {
      uint8_t* const to = buffers[i].data + piece * kPiece;
      const size_t n = piece_size(buffers[i].nbytes, piece);
      if (next != buffers_[i].pieces.end() && *next == piece) {
        std::memcpy(to, from, n);
        from += n;
        ++next;
      } else if (!is_zero(to, n)) {  // else its page may have no memory yet
        std::memset(to, 0, n);
      }
    }
  }
  return Error::Ok;
}

Error MethodState::reset(Module& module, const std::string& method_name) {
  module.unload_method(method_name);
  return module.load_method(method_name);
}

}  // namespace executorch::extension
