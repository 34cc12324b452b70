#pragma once

#include <string>
#include <vector>

namespace executorch::devtools {

/// A drawing in SVG. Looks are classes, so that a page or the file itself gives colours for light
/// and dark: ink, muted, grid, accent, peak, box, and f-<family> of operators. Units are pixels,
/// the origin is above left.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  /// `tip` is shown when the mouse rests on it.
  void rect(double x, double y, double width, double height, const std::string& style,
            const std::string& tip = "");
  void circle(double x, double y, double radius, const std::string& style,
              const std::string& tip = "");
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  /// `d` as SVG writes paths.
  void path(const std::string& d, const std::string& style);
  /// `anchor`: start, middle or end.
  void text(double x, double y, const std::string& text, const std::string& style,
            const char* anchor = "start");
  /// Text that reads upwards, in the middle of `y`.
  void vertical_text(double x, double y, const std::string& text, const std::string& style);

  /// `title` is for readers that cannot see it. Not embedded: a file with colours of its own.
  std::string finish(const std::string& title, bool embedded) const;

 private:
  double width_;
  double height_;
  std::string body_;
};

/// The style sheet of the classes above, for a page or a file.
const char* svg_style();

/// "12.5"; no more digits than a pixel needs.
std::string pixels(double value);
/// `text` as XML or HTML.
std::string escaped(const std::string& text);
/// Steps of 1, 2 or 5 times a power of ten from 0 to `largest`, about `count`.
std::vector<double> ticks(double largest, size_t count);

}  // namespace executorch::devtools
