#include <executorch/extension/command/suggest.h>

#include <algorithm>

namespace executorch::extension::command {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  std::string closest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  std::string all;
  for (const std::string& other : known) {
    const size_t distance = edit_distance(name, other);
    if (distance < least) {
      least = distance;
      closest = other;
    }
    all += (all.empty() ? "" : ", ") + other;
  }
  if (!closest.empty()) return "; did you mean '" + closest + "'?";
  return known.empty() ? "" : "; there are: " + all;
}

}  // namespace executorch::extension::command
