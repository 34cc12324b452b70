#include <executorch/extension/pybindings/log_capture.h>

#include <cstdio>
#include <new>
#include <stdexcept>

namespace executorch::extension::pybindings {
namespace {

// More than any failure says of itself.
constexpr size_t kMostLines = 256;

thread_local LogCapture* innermost = nullptr;
runtime::pal_emit_log_message_method emit_elsewhere = nullptr;

}  // namespace

LogCapture::LogCapture(Untaken untaken) : untaken_(untaken), outer_(innermost) {
  innermost = this;
}

LogCapture::~LogCapture() {
  innermost = outer_;
  for (const Line& l : lines_) {
    if (untaken_ == kDropped) break;
    const std::string& m = l.message;
    emit_elsewhere(l.timestamp, ::kError, l.file, l.function, l.line, m.data(), m.size());
  }
}

void LogCapture::fail(const std::string& what, runtime::Error error) {
  const std::string name = runtime::to_string(error);
  char code[16];
  std::snprintf(code, sizeof(code), " (0x%02x)", static_cast<unsigned>(error));
  std::string text = what + ": " + name.substr(name.rfind(':') + 1) + code;
  for (const Line& l : lines_) {
    text += "\n  " + l.message + " [" + l.file + ":" + std::to_string(l.line) + "]";
  }
  lines_.clear();
  // A name from Python may hold a zero byte, which would end the text of the exception.
  for (size_t at = 0; (at = text.find('\0', at)) != text.npos; at += 2) text.replace(at, 1, "\\0");
  throw std::runtime_error(text);
}

void LogCapture::install() {
  emit_elsewhere = runtime::get_pal_impl()->emit_log_message;
  runtime::register_pal(runtime::PalImpl::create(&LogCapture::emit, __FILE__));
}

void LogCapture::emit(et_timestamp_t timestamp, et_pal_log_level_t level, const char* file,
                      const char* function, size_t line, const char* message, size_t length) {
  // The runtime, which calls this, knows no exceptions.
  try {
    if (innermost != nullptr && level == ::kError && innermost->lines_.size() < kMostLines) {
      innermost->lines_.push_back({timestamp, file, function, line, std::string(message, length)});
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  emit_elsewhere(timestamp, level, file, function, line, message, length);
}

}  // namespace executorch::extension::pybindings
