#include <executorch/devtools/memory/svg.h>

#include <cmath>
#include <cstdio>

namespace executorch::devtools {
namespace {

#define ET_LIGHT_COLOURS                                                                   \
  "--paper:#ffffff;--raised:#f7f8fa;--ink:#1c2330;--muted:#667085;--grid:#e4e7ec;"         \
  "--accent:#3366cc;--soft:#c9d6f0;--peak:#c2410c;--matmul:#3366cc;--convolution:#7048c6;" \
  "--attention:#b83280;--normalization:#1f8a7d;--pooling:#6f8020;--reduction:#a8681a;"     \
  "--elementwise:#d1742a;--copy:#8b93a1;--view:#b7bdc8;--delegate:#2b8fb8;--other:#5d6675;"
#define ET_DARK_COLOURS                                                                    \
  "--paper:#14181f;--raised:#1b212b;--ink:#e6e9ef;--muted:#98a2b3;--grid:#2d3440;"         \
  "--accent:#7ea2ee;--soft:#34456b;--peak:#fb923c;--matmul:#7ea2ee;--convolution:#a98bec;" \
  "--attention:#e07ab5;--normalization:#4fc3b3;--pooling:#b0c25a;--reduction:#dba45a;"     \
  "--elementwise:#f0a060;--copy:#8b93a1;--view:#5d6675;--delegate:#62bfe3;--other:#aab2c0;"

// A page may force one of both by data-theme.
constexpr char kStyle[] =
    ":root{" ET_LIGHT_COLOURS
    "color-scheme:light}\n"
    "@media (prefers-color-scheme:dark){:root{" ET_DARK_COLOURS
    "color-scheme:dark}}\n"
    ":root[data-theme=light]{" ET_LIGHT_COLOURS
    "color-scheme:light}\n"
    ":root[data-theme=dark]{" ET_DARK_COLOURS
    "color-scheme:dark}\n"
    R"(svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
svg .muted{fill:var(--muted)} svg .small{font-size:11px} svg .strong{font-weight:600}
svg .peaktext{fill:var(--peak);font-weight:600} svg .onbox{fill:var(--ink);font-size:11px}
svg .grid{stroke:var(--grid);stroke-width:1;fill:none} svg .axis{stroke:var(--muted);fill:none}
svg .accentline{stroke:var(--accent);stroke-width:2;fill:none}
svg .peak{stroke:var(--peak);stroke-width:1.5;stroke-dasharray:4 3;fill:none}
svg .edge{stroke:var(--muted);stroke-opacity:.45;fill:none}
svg .live{fill:var(--soft);stroke:var(--accent)} svg .atpeak{fill:var(--accent);fill-opacity:.75}
svg .rest{fill:var(--soft)} svg .atpeak,svg .rest{stroke:var(--paper);stroke-width:.5}
svg .node{fill:var(--paper);stroke:var(--grid)} svg .frame{fill:none;stroke:var(--delegate);
stroke-width:1.5;stroke-dasharray:5 3}
svg .matmul{fill:var(--matmul)} svg .convolution{fill:var(--convolution)}
svg .attention{fill:var(--attention)} svg .normalization{fill:var(--normalization)}
svg .pooling{fill:var(--pooling)} svg .reduction{fill:var(--reduction)}
svg .elementwise{fill:var(--elementwise)} svg .copy{fill:var(--copy)} svg .view{fill:var(--view)}
svg .delegate{fill:var(--delegate)} svg .other{fill:var(--other)} svg .dot{fill-opacity:.7}
)";

}  // namespace

const char* svg_style() {
  return kStyle;
}

std::string pixels(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  std::string out = text;
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in XML.
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::vector<double> ticks(double largest, size_t count) {
  if (!(largest > 0)) return {0};
  const double rough = largest / static_cast<double>(count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < rough) step = factor * power;
  }
  std::vector<double> out;
  for (int i = 0; i * step <= largest * (1 + 1e-9); ++i) out.push_back(i * step);
  return out;
}

void Svg::rect(double x, double y, double width, double height, const std::string& style,
               const std::string& tip) {
  body_ += "<rect x='" + pixels(x) + "' y='" + pixels(y) + "' width='" + pixels(width) +
           "' height='" + pixels(height) + "' class='" + style + "'";
  body_ += tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></rect>\n";
}

void Svg::circle(double x, double y, double radius, const std::string& style,
                 const std::string& tip) {
  body_ += "<circle cx='" + pixels(x) + "' cy='" + pixels(y) + "' r='" + pixels(radius) +
           "' class='" + style + "'><title>" + escaped(tip) + "</title></circle>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& style) {
  body_ += "<line x1='" + pixels(x1) + "' y1='" + pixels(y1) + "' x2='" + pixels(x2) + "' y2='" +
           pixels(y2) + "' class='" + style + "'/>\n";
}

void Svg::path(const std::string& d, const std::string& style) {
  body_ += "<path d='" + d + "' class='" + style + "'/>\n";
}

void Svg::text(double x, double y, const std::string& text, const std::string& style,
               const char* anchor) {
  body_ += "<text x='" + pixels(x) + "' y='" + pixels(y) + "' class='" + style + "' text-anchor='" +
           anchor + "'>" + escaped(text) + "</text>\n";
}

void Svg::vertical_text(double x, double y, const std::string& text, const std::string& style) {
  body_ += "<text transform='translate(" + pixels(x) + " " + pixels(y) + ") rotate(-90)' class='" +
           style + "' text-anchor='middle'>" + escaped(text) + "</text>\n";
}

std::string Svg::finish(const std::string& title, bool embedded) const {
  const std::string size = "viewBox='0 0 " + pixels(width_) + " " + pixels(height_) + "'";
  std::string out = "<svg xmlns='http://www.w3.org/2000/svg' " + size + " width='" +
                    pixels(width_) + "' height='" + pixels(height_) + "' role='img'>\n<title>" +
                    escaped(title) + "</title>\n";
  if (!embedded) {
    out += "<style>" + std::string(kStyle) + "</style>\n<rect width='100%' height='100%' " +
           "style='fill:var(--paper)'/>\n";
  }
  return out + body_ + "</svg>\n";
}

}  // namespace executorch::devtools
