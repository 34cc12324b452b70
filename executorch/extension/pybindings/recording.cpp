#include <executorch/extension/pybindings/recording.h>
#include <executorch/schema/output_file.h>

#include <nanobind/nanobind.h>

#include <cerrno>
#include <stdexcept>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
namespace {

void write_file(const std::string& path, const void* data, size_t n_bytes) {
  if (const int error = schema::write_file(path, data, n_bytes)) {
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw nb::python_error();
  }
}

}  // namespace

// Not initialised: a large buffer costs what is written to it.
Recording::Recording(size_t debug_buffer_bytes)
    : debug_buffer_(new uint8_t[debug_buffer_bytes]), debug_buffer_bytes_(debug_buffer_bytes) {
  if (debug_buffer_bytes_ > 0) {
    set_debug_buffer();
    gen_.set_event_tracer_debug_level(runtime::EventTracerDebugLogLevel::kIntermediateOutputs);
  }
}

void Recording::set_debug_buffer() {
  (void)gen_.set_debug_buffer({debug_buffer_.get(), debug_buffer_bytes_});
}

void Recording::write(const std::string& path,
                      const std::optional<std::string>& debug_buffer_path) {
  const runtime::Error lost = write_files(path, debug_buffer_path);
  // Where this calls back to Python, that may run the method.
  if (lost != runtime::Error::Ok &&
      PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                       "%s is not complete (%s): the debug buffer of %zu bytes was too small, or a "
                       "value of a type that readers do not know",
                       path.c_str(), runtime::to_string(lost), debug_buffer_bytes_) < 0) {
    throw nb::python_error();
  }
}

runtime::Error Recording::write_files(const std::string& path,
                                      const std::optional<std::string>& debug_buffer_path) {
  const std::lock_guard<std::mutex> turn(mutex_);
  const runtime::Error lost = gen_.error();
  const etdump::ETDumpResult result = gen_.get_etdump_data();
  if (result.buf != nullptr) {
    dump_.reset(result.buf);
    dump_bytes_ = result.size;
    lost_ = lost;
  }
  if (dump_ == nullptr) {
    throw std::runtime_error("ETDump: nothing was recorded since the last one was written");
  }
  write_file(path, dump_.get(), dump_bytes_);
  if (debug_buffer_path && debug_buffer_bytes_ > 0) {
    write_file(*debug_buffer_path, debug_buffer_.get(), gen_.get_data_sink()->get_used_bytes());
    set_debug_buffer();
  }
  dump_.reset();
  return lost_;
}

}  // namespace executorch::extension::pybindings
