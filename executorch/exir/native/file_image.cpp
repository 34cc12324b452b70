#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/transposed_bytes.h>
#include <executorch/schema/output_file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace executorch::exir {
namespace {

constexpr uint64_t kStepBytes = uint64_t{64} << 20;

void check(int error, const std::string& path) {
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw nb::python_error();
  }
}

// The image, block by block. Blocks are whole huge pages of the file, written by one call each: so the
// system caches the file in such pages, which are read faster than pages of 4 KiB are.
class BlockReader {
 public:
  BlockReader(const std::vector<Piece>& pieces, uint64_t size)
      : pieces_(pieces), left_(size), buffer_(std::min(size, kBlockBytes)) {}

  uint64_t left() const { return left_; }

  /// The next block, which is used before the one after it is asked for.
  std::pair<const uint8_t*, uint64_t> next() {
    const uint64_t size = std::min(left_, kBlockBytes);
    left_ -= size;
    skip_empty();
    const Piece& piece = pieces_[piece_];
    if (piece.data != nullptr && piece.size - done_ >= size) {
      done_ += size;
      return {piece.data + done_ - size, size};
    }
    for (uint64_t at = 0; at < size;) at += copy(buffer_.data() + at, size - at);
    return {buffer_.data(), size};
  }

 private:
  static constexpr uint64_t kBlockBytes = uint64_t{4} << 20;

  void skip_empty() {
    for (; done_ == pieces_[piece_].size; ++piece_) done_ = 0;
  }

  // At most n bytes of one piece.
  uint64_t copy(uint8_t* to, uint64_t n) {
    skip_empty();
    const Piece& piece = pieces_[piece_];
    n = std::min(n, piece.size - done_);
    if (piece.computed != nullptr) {
      piece.computed->read(done_, n, to);
    } else if (piece.data == nullptr) {
      std::memset(to, 0, n);
    } else {
      std::memcpy(to, piece.data + done_, n);
    }
    done_ += n;
    return n;
  }

  const std::vector<Piece>& pieces_;
  size_t piece_ = 0;
  uint64_t done_ = 0;  // of the piece
  uint64_t left_;
  std::vector<uint8_t> buffer_;
};

}  // namespace

void FileImage::append(nb::handle buffer) {
  if (nb::isinstance<TransposedBytes>(buffer)) {
    const auto* computed = nb::cast<const TransposedBytes*>(buffer);
    auto owner = std::shared_ptr<PyObject>(buffer.inc_ref().ptr(), [](PyObject* object) {
      nb::gil_scoped_acquire gil;
      Py_DECREF(object);
    });
    pieces_.push_back({nullptr, computed->size(), std::move(owner), computed});
    size_ += computed->size();
    return;
  }
  auto bytes = std::make_shared<BorrowedBytes>(buffer);
  if (bytes->size() > 0) {
    pieces_.push_back({bytes->data(), bytes->size(), bytes, nullptr});
    size_ += bytes->size();
  }
}

void FileImage::append(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  pieces_.push_back(
      {reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner, nullptr});
  size_ += owner->size();
}

void FileImage::append(const FileImage& other) {
  pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
  size_ += other.size_;
}

void FileImage::align(uint64_t alignment) {
  pad_to((size_ + alignment - 1) / alignment * alignment);
}

void FileImage::pad_to(uint64_t size) {
  if (size > size_) {
    pieces_.push_back({nullptr, size - size_, nullptr, nullptr});
    size_ = size;
  }
}

nb::bytes FileImage::to_bytes() const {
  nb::object result = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size_)));
  if (!result.is_valid()) throw nb::python_error();
  char* out = PyBytes_AS_STRING(result.ptr());
  for (const Piece& piece : pieces_) {
    if (piece.computed != nullptr) {
      piece.computed->read(0, piece.size, reinterpret_cast<uint8_t*>(out));
    } else if (piece.data == nullptr) {
      std::memset(out, 0, piece.size);
    } else {
      std::memcpy(out, piece.data, piece.size);
    }
    out += piece.size;
  }
  return nb::borrow<nb::bytes>(result);
}

void FileImage::save(const std::string& path, nb::handle progress) const {
  schema::OutputFile file;
  check(file.open(path), path);
  BlockReader reader(pieces_, size_);
  uint64_t reported = 0;
  const auto report = [&] {
    reported = size_ - reader.left();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(reported, size_);
  };
  while (reader.left() > 0) {
    int error = 0;
    {
      nb::gil_scoped_release release;
      const auto [data, size] = reader.next();
      error = file.write(data, size);
    }
    check(error, path);
    if (size_ - reader.left() - reported >= kStepBytes) report();
  }
  report();
  check(file.keep(), path);
}

void FileImage::write_to(nb::handle file) const {
  const nb::object write = file.attr("write");
  BlockReader reader(pieces_, size_);
  while (reader.left() > 0) {
    auto [data, size] = reader.next();
    while (size > 0) {
      char* const bytes = reinterpret_cast<char*>(const_cast<uint8_t*>(data));
      const nb::object view =
          nb::steal(PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(size), PyBUF_READ));
      const nb::object written = write(view);
      view.attr("release")();
      // An unbuffered file may take a part only; other objects may return nothing.
      const int64_t n = nb::isinstance<nb::int_>(written) ? nb::cast<int64_t>(written)
                                                          : static_cast<int64_t>(size);
      if (n <= 0) {
        errno = EIO;
        PyErr_SetString(PyExc_OSError, "write_to_file: the file object accepts no more bytes");
        throw nb::python_error();
      }
      const uint64_t taken = std::min(static_cast<uint64_t>(n), size);
      data += taken;
      size -= taken;
    }
  }
}

}  // namespace executorch::exir
