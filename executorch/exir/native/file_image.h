#pragma once

#include <executorch/exir/native/borrowed_bytes.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// A file as a list of pieces: written without first being assembled in memory, so that weights
/// go from the tensors that own them straight to disk, transposed on the way where wanted.
namespace executorch::exir {

class TransposedBytes;

/// `data` is null for zeros, and for bytes that `computed` gives; `owner` keeps the bytes alive.
struct Piece {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
  const TransposedBytes* computed = nullptr;
};

class FileImage {
 public:
  uint64_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  void append(nanobind::handle buffer);
  void append(std::string bytes);
  void append(const FileImage& other);
  /// Appends zeros until the size is a multiple of `alignment`.
  void align(uint64_t alignment);
  /// Appends zeros until the size is `size`, which is not below the present one.
  void pad_to(uint64_t size);

  /// The whole file as one bytes object.
  nanobind::bytes to_bytes() const;

  /// Writes a schema::OutputFile. `progress(done, total)` is called about every 64 MiB, unless it
  /// is None. Throws OSError with errno and the path; `path` is then as it was.
  void save(const std::string& path, nanobind::handle progress) const;

  /// Calls `write(memoryview)`, the method of a Python file object, for one block after the other.
  void write_to(nanobind::handle file) const;

 private:
  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace executorch::exir
