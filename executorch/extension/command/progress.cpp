#include <executorch/extension/command/progress.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace executorch::extension::command {

void Progress::show(double done) {
  constexpr int kWidth = 40;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  if (!isatty(2)) {
    next_ = now + std::chrono::seconds(5);
    std::fprintf(stderr, "%s: %.0f %%\n", what_.c_str(), 100 * std::clamp(done, 0.0, 1.0));
    return;
  }
  shown_ = true;
  const int filled = std::clamp(static_cast<int>(done * kWidth), 0, kWidth);
  std::fprintf(stderr, "\r%s [%s%s] %3.0f %%", what_.c_str(), std::string(filled, '#').c_str(),
               std::string(kWidth - filled, ' ').c_str(), 100 * std::clamp(done, 0.0, 1.0));
  std::fflush(stderr);
}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

}  // namespace executorch::extension::command
