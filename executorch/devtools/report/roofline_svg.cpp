#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/memory/svg.h>
#include <executorch/devtools/report/report.h>

#include <algorithm>
#include <cmath>

namespace executorch::devtools {
namespace {

constexpr double kWidth = 1000, kHeight = 420, kLeft = 76, kRight = 24, kTop = 20, kBottom = 56;

/// A logarithmic axis over whole powers of ten.
struct Axis {
  double low, high;  // exponents
  double from, to;   // pixels

  static Axis over(double least, double most, double from, double to) {
    return {std::floor(std::log10(least)), std::ceil(std::log10(most)), from, to};
  }
  double at(double value) const {
    return from + (to - from) * (std::log10(value) - low) / (high - low);
  }
};

std::string power_text(double exponent) {
  const double value = std::pow(10, exponent);
  char text[32];
  std::snprintf(text, sizeof(text), value >= 1 ? "%.0f" : "%g", value);
  return text;
}

}  // namespace

std::string roofline_svg(const Profile& profile) {
  const double peak = profile.roofline.flops, bandwidth = profile.roofline.bytes_per_second;
  std::vector<ProfileGroup> dots = by_shapes(profile);
  std::erase_if(dots, [](const auto& g) { return g.flop <= 0 || g.bytes <= 0 || g.seconds <= 0; });
  if (dots.empty() || peak <= 0 || bandwidth <= 0) return "";

  const double ridge = peak / bandwidth;
  double least_x = ridge / 100, most_x = ridge * 30, least_y = peak / 1000, most_y = peak * 1.5;
  for (const ProfileGroup& dot : dots) {
    least_x = std::min(least_x, dot.flop / dot.bytes);
    most_x = std::max(most_x, dot.flop / dot.bytes);
    least_y = std::min(least_y, dot.flop / dot.seconds);
    most_y = std::max(most_y, dot.flop / dot.seconds);
  }
  const Axis x = Axis::over(least_x, most_x, kLeft, kWidth - kRight);
  const Axis y = Axis::over(least_y, most_y, kHeight - kBottom, kTop);

  Svg svg(kWidth, kHeight);
  for (double e = x.low; e <= x.high; ++e) {
    const double at = x.at(std::pow(10, e));
    svg.line(at, kTop, at, kHeight - kBottom, "grid");
    svg.text(at, kHeight - kBottom + 18, power_text(e), "muted small", "middle");
  }
  for (double e = y.low; e <= y.high; ++e) {
    const double at = y.at(std::pow(10, e));
    svg.line(kLeft, at, kWidth - kRight, at, "grid");
    svg.text(kLeft - 8, at + 4, power_text(e - 9), "muted small", "end");
  }
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 12, "FLOP per byte", "muted", "middle");
  svg.vertical_text(18, (kTop + kHeight - kBottom) / 2, "GFLOP/s", "muted");

  // The roof: up the bandwidth's slope, or from where that enters the picture, to the peak.
  const double start = std::max(std::pow(10, x.low), std::pow(10, y.low) / bandwidth);
  svg.path("M" + pixels(x.at(start)) + " " + pixels(y.at(start * bandwidth)) + "L" +
               pixels(x.at(ridge)) + " " + pixels(y.at(peak)) + "L" + pixels(kWidth - kRight) +
               " " + pixels(y.at(peak)),
           "accentline");
  svg.text(kWidth - kRight - 4, y.at(peak) - 8, format_number(peak / 1e9) + " GFLOP/s", "strong",
           "end");
  svg.text(x.at(ridge) - 10, y.at(peak) - 8, format_number(bandwidth / 1e9) + " GB/s", "strong",
           "end");

  std::stable_sort(dots.begin(), dots.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (const ProfileGroup& dot : dots) {
    const double share = dot.seconds / profile.seconds;
    svg.circle(x.at(dot.flop / dot.bytes), y.at(dot.flop / dot.seconds), 3 + 30 * std::sqrt(share),
               std::string("dot ") + to_string(dot.example->family),
               dot.name + "\n" + format_seconds(dot.seconds) + " (" + format_percent(share) +
                   "), " + format_number(dot.flop / 1e9 / dot.seconds) + " GFLOP/s, " +
                   format_number(dot.bytes / 1e9 / dot.seconds) + " GB/s, " +
                   format_percent(dot.bound / dot.seconds) + " of the roofline");
  }
  return svg.finish("Roofline", true);
}

}  // namespace executorch::devtools
