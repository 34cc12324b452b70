#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace executorch::exir {

/// A read-only view of a Python object with the buffer protocol; keeps the object alive.
class BorrowedBytes {
 public:
  /// Throws (TypeError, BufferError) if the object has no contiguous buffer.
  explicit BorrowedBytes(nanobind::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nanobind::python_error();
  }
  ~BorrowedBytes() {
    nanobind::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  BorrowedBytes(const BorrowedBytes&) = delete;
  BorrowedBytes& operator=(const BorrowedBytes&) = delete;

  const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
  uint64_t size() const { return static_cast<uint64_t>(view_.len); }
  nanobind::handle object() const { return view_.obj; }

 private:
  Py_buffer view_;
};

}  // namespace executorch::exir
