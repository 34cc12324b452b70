#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/transposed_bytes.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

namespace nb = nanobind;

namespace executorch::exir {
namespace {

constexpr uint64_t kStepBytes = uint64_t{64} << 20;
constexpr uint8_t kZeros[kZerosBytes] = {};

[[noreturn]] void throw_errno(int error, const std::string& path) {
  errno = error;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

// Owns a descriptor and, until `keep`, the temporary file behind it.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : target_(path) {
    struct stat status;
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
      open(path, O_WRONLY | O_TRUNC, 0);
      return;
    }
    if (exists) {  // a symbolic link stays one: its destination is replaced
      char resolved[PATH_MAX];
      if (::realpath(path.c_str(), resolved) == nullptr) {
        throw_errno(errno, path);
      }
      target_ = resolved;
    }
    temporary_ = target_ + ".tmp" + std::to_string(::getpid());
    // Permissions of the replaced file, else the process's default for new files.
    open(temporary_, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (exists) {
      (void)::fchmod(descriptor_, status.st_mode & 07777);
    }
  }
  ~OutputFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    if (!temporary_.empty()) {
      ::unlink(temporary_.c_str());
    }
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Returns 0 or errno. Touches no Python object.
  int write(const uint8_t* data, uint64_t size) {
    while (size > 0) {
      const ssize_t n = ::write(descriptor_, data, size);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n < 0) {
        return errno;
      }
      data += n;
      size -= static_cast<uint64_t>(n);
    }
    return 0;
  }

  void keep(const std::string& path) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) {
      throw_errno(errno, path);
    }
    if (!temporary_.empty()) {
      if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
        throw_errno(errno, path);
      }
      temporary_.clear();
    }
  }

 private:
  void open(const std::string& path, int flags, mode_t mode) {
    descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (descriptor_ < 0) {
      const int error = errno;
      temporary_.clear();
      throw_errno(error, target_);
    }
  }

  std::string target_;
  std::string temporary_;
  int descriptor_ = -1;
};

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
  OutputFile file(path);
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
      if (error != 0) {
        throw_errno(error, path);
      }
      at += step;
      done += step;
      if (done - reported >= kStepBytes) {
        report();
      }
    }
  }
  report();
  file.keep(path);
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
