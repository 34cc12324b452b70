#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/transposed_bytes.h>
#include <executorch/schema/output_file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace nb = nanobind;

namespace executorch::exir {
namespace {

constexpr uint64_t kStepBytes = uint64_t{64} << 20;
constexpr uint8_t kZeros[kZerosBytes] = {};

void check(int error, const std::string& path) {
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw nb::python_error();
  }
}

// Enough rows for blocks of whole cache lines, little enough to stay in the second cache's reach.
constexpr uint64_t kComputedBytes = uint64_t{4} << 20;

// Gives the bytes of pieces, step by step; computed ones lie in a buffer until the next step.
class PieceReader {
 public:
  static uint64_t step(const Piece& piece, uint64_t done) {
    const uint64_t most = piece.computed != nullptr ? kComputedBytes
                          : piece.data == nullptr   ? kZerosBytes
                                                    : kStepBytes;
    return std::min(piece.size - done, most);
  }

  const uint8_t* data(const Piece& piece, uint64_t done, uint64_t step) {
    if (piece.computed != nullptr) {
      buffer_.resize(kComputedBytes);
      piece.computed->read(done, step, buffer_.data());
      return buffer_.data();
    }
    return piece.data == nullptr ? kZeros : piece.data + done;
  }

 private:
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
  if (!result.is_valid()) {
    throw nb::python_error();
  }
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
  PieceReader reader;
  uint64_t done = 0;
  uint64_t reported = 0;
  const auto report = [&] {
    reported = done;
    if (PyErr_CheckSignals() != 0) {
      throw nb::python_error();
    }
    if (!progress.is_none()) {
      progress(done, size_);
    }
  };
  for (const Piece& piece : pieces_) {
    for (uint64_t at = 0; at < piece.size;) {
      const uint64_t step = PieceReader::step(piece, at);
      int error = 0;
      {
        nb::gil_scoped_release release;
        error = file.write(reader.data(piece, at, step), step);
      }
      check(error, path);
      at += step;
      done += step;
      if (done - reported >= kStepBytes) {
        report();
      }
    }
  }
  report();
  check(file.keep(), path);
}

void FileImage::write_to(nb::handle file) const {
  const nb::object write = file.attr("write");
  PieceReader reader;
  for (const Piece& piece : pieces_) {
    for (uint64_t at = 0; at < piece.size;) {
      const uint64_t step = PieceReader::step(piece, at);
      char* data = reinterpret_cast<char*>(const_cast<uint8_t*>(reader.data(piece, at, step)));
      const nb::object view =
          nb::steal(PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(step), PyBUF_READ));
      const nb::object written = write(view);
      view.attr("release")();
      // An unbuffered file may take a part only; other objects may return nothing.
      const int64_t n = nb::isinstance<nb::int_>(written) ? nb::cast<int64_t>(written)
                                                          : static_cast<int64_t>(step);
      if (n <= 0) {
        errno = EIO;
        PyErr_SetString(PyExc_OSError, "write_to_file: the file object accepts no more bytes");
        throw nb::python_error();
      }
      at += std::min(static_cast<uint64_t>(n), step);
    }
  }
}

}  // namespace executorch::exir
