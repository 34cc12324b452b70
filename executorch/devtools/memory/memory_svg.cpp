#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/memory/memory_plan.h>
#include <executorch/devtools/memory/svg.h>

#include <algorithm>

namespace executorch::devtools {
namespace {

constexpr double kWidth = 1000, kLeft = 92, kRight = 20, kTop = 34;
constexpr double kPlanHeight = 340, kGap = 34, kLiveHeight = 80, kBottom = 46;
// Smaller boxes have no room for a name.
constexpr double kLabelWidth = 70, kLabelHeight = 15;

/// The picture of one arena.
class Drawing {
 public:
  Drawing(const MemoryPlan& plan, const MemoryArena& arena)
      : plan_(plan),
        arena_(arena),
        svg_(kWidth, kTop + kPlanHeight + kGap + kLiveHeight + kBottom),
        bytes_(static_cast<double>(std::max<uint64_t>(arena.bytes, 1))) {}

  std::string draw(bool embedded) {
    const std::string title = "Arena " + std::to_string(arena_.id) + " of " + plan_.method + ": " +
                              format_bytes(static_cast<double>(arena_.bytes)) + ", " +
                              std::to_string(arena_.tensors.size()) + " tensors";
    svg_.text(kLeft, 18, title, "strong");
    draw_axes();
    for (const PlannedTensor& tensor : arena_.tensors) draw_tensor(tensor);
    draw_live();
    draw_peak();
    return svg_.finish(title, embedded);
  }

 private:
  double x(int64_t step) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(step) /
                       static_cast<double>(plan_.n_steps);
  }
  double y(double address) const { return kTop + kPlanHeight * (1 - address / bytes_); }
  double live_y(double bytes) const { return live_bottom() - kLiveHeight * bytes / bytes_; }
  double live_bottom() const { return kTop + kPlanHeight + kGap + kLiveHeight; }

  void draw_axes() {
    for (const double tick : ticks(bytes_, 5)) {
      svg_.line(kLeft, y(tick), kWidth - kRight, y(tick), "grid");
      svg_.text(kLeft - 8, y(tick) + 4, format_bytes(tick), "muted small", "end");
    }
    for (const double tick : ticks(bytes_, 2)) {
      svg_.line(kLeft, live_y(tick), kWidth - kRight, live_y(tick), "grid");
      svg_.text(kLeft - 8, live_y(tick) + 4, format_bytes(tick), "muted small", "end");
    }
    const auto last = static_cast<double>(plan_.n_steps);
    for (const double tick : ticks(last, 10)) {
      const double at = x(static_cast<int64_t>(tick));
      if (tick != static_cast<double>(static_cast<int64_t>(tick))) continue;
      svg_.line(at, live_bottom(), at, live_bottom() + 4, "axis");
      svg_.text(at, live_bottom() + 18, std::to_string(static_cast<int64_t>(tick)), "muted small",
                "middle");
    }
    svg_.vertical_text(18, kTop + kPlanHeight / 2, "address in the arena", "muted");
    svg_.vertical_text(18, live_bottom() - kLiveHeight / 2, "in use", "muted");
    svg_.text((kLeft + kWidth - kRight) / 2, live_bottom() + 38, "instruction", "muted", "middle");
  }

  void draw_tensor(const PlannedTensor& tensor) {
    const bool at_peak = tensor.first <= arena_.peak_step && arena_.peak_step <= tensor.last;
    const double left = x(tensor.first), right = x(tensor.last + 1);
    const double top = y(static_cast<double>(tensor.offset + tensor.bytes));
    const double bottom = y(static_cast<double>(tensor.offset));
    const std::string name = "%" + std::to_string(tensor.value) + " " + tensor.name;
    svg_.rect(left, top, right - left, std::max(bottom - top, 0.5), at_peak ? "atpeak" : "rest",
              name + "\n" + tensor.type + ", " + format_bytes(static_cast<double>(tensor.bytes)) +
                  " at " + std::to_string(tensor.offset) + "\nsteps " +
                  std::to_string(tensor.first) + " to " + std::to_string(tensor.last) +
                  (tensor.module.empty() ? "" : "\n" + tensor.module));
    if (right - left >= kLabelWidth && bottom - top >= kLabelHeight) {
      svg_.text(left + 5, (top + bottom) / 2 + 4,
                shorten(name, static_cast<size_t>((right - left - 10) / 6.5)), "onbox");
    }
  }

  void draw_live() {
    std::string d = "M" + pixels(x(0)) + " " + pixels(live_bottom());
    for (int64_t step = 0; step < plan_.n_steps; ++step) {
      const std::string height =
          pixels(live_y(static_cast<double>(arena_.live_bytes[static_cast<size_t>(step)])));
      d += "L" + pixels(x(step)) + " " + height + "L" + pixels(x(step + 1)) + " " + height;
    }
    svg_.path(d + "L" + pixels(x(plan_.n_steps)) + " " + pixels(live_bottom()) + "Z", "live");
  }

  void draw_peak() {
    const double at = (x(arena_.peak_step) + x(arena_.peak_step + 1)) / 2;
    const std::string& op = plan_.operators[static_cast<size_t>(arena_.peak_step)];
    svg_.line(at, kTop - 4, at, live_bottom(), "peak");
    svg_.text(std::clamp(at, kLeft + 160, kWidth - kRight - 160), kTop + kPlanHeight + 20,
              "peak: " + format_bytes(static_cast<double>(arena_.peak_bytes)) + " in use at " +
                  std::to_string(arena_.peak_step) + (op.empty() ? "" : ", " + op),
              "peaktext", "middle");
  }

  const MemoryPlan& plan_;
  const MemoryArena& arena_;
  Svg svg_;
  double bytes_;
};

}  // namespace

std::string to_svg(const MemoryPlan& plan, const MemoryArena& arena, bool embedded) {
  return Drawing(plan, arena).draw(embedded);
}

}  // namespace executorch::devtools
