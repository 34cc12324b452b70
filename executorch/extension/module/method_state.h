#pragma once

#include <executorch/extension/module/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace executorch::extension {

/// What the named mutable buffers of a method hold, such as the keys and values of a language model
/// that remembers its text. Copies of it cost what was written, not what there is room for.
///
///   const auto question = MethodState::save(module);      // after the prompt was computed
///   module.forward(...);                                  // one answer
///   question->restore(module);                            // another; or in a second module of the
///   question->restore(other);                             // same program: a fork
///
/// An incremental program compares the tokens it is given with those it remembers, so a shorter or
/// another text needs neither trim nor reset; it is right in any state.
class MethodState {
 public:
  /// Loads the method if it is not. NotSupported where the program names no mutable buffers:
  /// export it with emit_mutable_buffer_names; programs of make_incremental name theirs.
  static runtime::Result<MethodState> save(Module& module,
                                           const std::string& method_name = "forward");

  /// Gives the buffers the values that they had in save(). Loads the method if it is not loaded.
  /// InvalidArgument, with nothing changed, if the method has other buffers. Copying allocates
  /// nothing.
  ET_NODISCARD runtime::Error restore(Module& module) const;

  /// Puts the buffers back to their initial values by loading the method anew, and gives its memory
  /// back to the system. Tensors among the method's outputs become invalid.
  ET_NODISCARD static runtime::Error reset(Module& module,
                                           const std::string& method_name = "forward");

  /// The size of this copy in bytes.
  size_t nbytes() const { return bytes_.size(); }

 private:
  struct Buffer {
    std::string name;
    size_t nbytes = 0;
    /// The pieces that are not all zeros, in order; their bytes follow one another in bytes_.
    std::vector<uint32_t> pieces;
  };

  std::string method_name_;
  std::vector<Buffer> buffers_;
  std::vector<uint8_t> bytes_;
};

}  // namespace executorch::extension
