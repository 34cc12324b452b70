#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/memory/svg.h>
#include <executorch/devtools/report/report.h>

#include <algorithm>
#include <map>
#include <set>

namespace executorch::devtools {
namespace {

constexpr double kBoxWidth = 236, kBoxHeight = 40, kColumn = 256, kRowGap = 22, kMargin = 16;
constexpr double kInnerLine = 15;
constexpr size_t kMaxInner = 12;
constexpr size_t kMaxNodes = 1500;
// More than any picture shows: of edges, and of values that are looked at to find them.
constexpr size_t kMaxEdges = 20000;
constexpr size_t kMaxSteps = 4u << 20;
constexpr int kSweeps = 6;

struct Node {
  const ProfiledInstruction* row;
  std::set<size_t> from = {};
  std::set<size_t> to = {};
  size_t layer = 0;
  double column = 0;  ///< middle, in columns from the drawing's middle
  double y = 0;
  double height = kBoxHeight;
};

using Place = std::pair<uint32_t, uint32_t>;

/// Which instruction computes each value, and which fused instruction runs in place of it.
class Dependences {
 public:
  Dependences(const Profile& profile, const Json& method) : method_(method) {
    for (const ProfiledInstruction& row : profile.instructions) {
      rows_[{row.chain, row.instruction}] = &row;
    }
    for (size_t c = 0; c < method["chains"].size(); ++c) {
      for (size_t i = 0; i < method["chains"][c].size(); ++i) {
        add_makers({static_cast<uint32_t>(c), static_cast<uint32_t>(i)});
      }
    }
    for (const Json& input : method["inputs"]) makers_.erase(input.get<int64_t>());
  }

  /// The instructions that compute the operands of `row`; a view counts as the value it is a view
  /// of.
  std::set<const ProfiledInstruction*> before(const ProfiledInstruction& row) const {
    std::set<const ProfiledInstruction*> found;
    std::vector<uint32_t> own = row.original_numbers;
    if (own.empty()) own = {row.instruction};
    std::vector<uint32_t> open = own;
    std::set<uint32_t> seen(own.begin(), own.end());
    while (!open.empty()) {
      const uint32_t number = open.back();
      open.pop_back();
      for (const int64_t value : values_of(row.chain, number)) {
        const auto maker = makers_.find(value);
        if (maker == makers_.end() || maker->second.first != row.chain ||
            !seen.insert(maker->second.second).second) {
          continue;
        }
        const auto made_by = rows_.find(maker->second);
        if (made_by != rows_.end() && made_by->second->family != Family::View) {
          found.insert(made_by->second);
        } else {
          open.push_back(maker->second.second);
        }
      }
    }
    return found;
  }

 private:
  std::vector<int64_t> values_of(size_t chain, size_t number) const {
    std::vector<int64_t> out;
    const Json& instruction = method_["chains"][chain][number];
    for (const Json& arg : instruction.value("args", Json::array())) add(arg.get<int64_t>(), out);
    if (instruction.contains("from")) {
      add(instruction["from"].get<int64_t>(), out);
      add(instruction["to"].get<int64_t>(), out);
    }
    return out;
  }

  void add(int64_t index, std::vector<int64_t>& out) const {
    if (index < 0 || n_steps_++ > kMaxSteps) return;
    const Json& value = method_["values"][static_cast<size_t>(index)];
    out.push_back(index);
    if (value["type"] == "TensorList" || value["type"] == "OptionalTensorList") {
      for (const Json& item : value["items"]) add(item.get<int64_t>(), out);
    }
  }

  // A value that a kernel mentions first without writing it is a view of static shape: the
  // instruction that last wrote the same memory counts as its maker.
  void add_makers(Place place) {
    const Json& instruction = method_["chains"][place.first][place.second];
    std::vector<int64_t> written;
    if (instruction["type"] == "kernel" && !instruction["args"].empty()) {
      add(instruction["args"].back().get<int64_t>(), written);
    } else {
      written = values_of(place.first, place.second);
    }
    for (const int64_t value : values_of(place.first, place.second)) {
      const bool writes = std::find(written.begin(), written.end(), value) != written.end();
      const auto before = last_writers_.find(address(value));
      makers_.try_emplace(value, !writes && before != last_writers_.end() ? before->second : place);
    }
    for (const int64_t value : written) {
      const auto maker = makers_.find(value);
      if (maker != makers_.end() && maker->second == place) last_writers_[address(value)] = place;
    }
  }

  // Memory id and offset of a planned value; for others, a pair that no other value has.
  std::pair<int64_t, int64_t> address(int64_t value) const {
    const Json& entry = method_["values"][static_cast<size_t>(value)];
    return entry.contains("memory")
               ? std::pair{entry["memory"].get<int64_t>(), entry["offset"].get<int64_t>()}
               : std::pair{int64_t{-1}, value};
  }

  const Json& method_;
  mutable size_t n_steps_ = 0;
  std::map<Place, const ProfiledInstruction*> rows_;
  std::map<int64_t, Place> makers_;
  std::map<std::pair<int64_t, int64_t>, Place> last_writers_;
};

class Drawing {
 public:
  Drawing(const Profile& profile, const Json& method) : profile_(profile) {
    std::map<const ProfiledInstruction*, size_t> numbers;
    for (const ProfiledInstruction& row : profile.instructions) {
      if (row.family == Family::View || nodes_.size() == kMaxNodes) continue;
      numbers[&row] = nodes_.size();
      nodes_.push_back({.row = &row});
    }
    const Dependences dependences(profile, method);
    size_t n_edges = 0;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const ProfiledInstruction* before : dependences.before(*nodes_[n].row)) {
        const auto found = numbers.find(before);
        // What a loop hands back to its beginning is not drawn.
        if (found == numbers.end() || found->second >= n || n_edges >= kMaxEdges) continue;
        ++n_edges;
        nodes_[n].from.insert(found->second);
        nodes_[found->second].to.insert(n);
      }
    }
    find_layers();
    order_layers();
    place();
  }

  std::string draw() {
    if (nodes_.empty()) return "";
    Svg svg(width_, height_);
    for (const Node& node : nodes_) {
      for (const size_t from : node.from) draw_edge(svg, nodes_[from], node);
    }
    for (const Node& node : nodes_) draw_node(svg, node);
    return svg.finish("Graph of what ran", true);
  }

 private:
  // The longest way from the beginning.
  void find_layers() {
    for (Node& node : nodes_) {
      for (const size_t from : node.from) node.layer = std::max(node.layer, nodes_[from].layer + 1);
    }
    for (size_t n = 0; n < nodes_.size(); ++n) {
      layers_.resize(std::max(layers_.size(), nodes_[n].layer + 1));
      layers_[nodes_[n].layer].push_back(n);
    }
  }

  // Next to the middle of their neighbours, from above and from below in turns.
  void order_layers() {
    for (auto& layer : layers_) set_columns(layer);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < layers_.size(); ++i) {
        auto& layer = layers_[down ? i : layers_.size() - 1 - i];
        std::map<size_t, double> wanted;
        for (const size_t n : layer) {
          const auto& neighbours = down ? nodes_[n].from : nodes_[n].to;
          double sum = 0;
          for (const size_t other : neighbours) sum += nodes_[other].column;
          wanted[n] =
              neighbours.empty() ? nodes_[n].column : sum / static_cast<double>(neighbours.size());
        }
        std::stable_sort(layer.begin(), layer.end(),
                         [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
        set_columns(layer);
      }
    }
  }

  void set_columns(const std::vector<size_t>& layer) {
    const double middle = (static_cast<double>(layer.size()) - 1) / 2;
    for (size_t i = 0; i < layer.size(); ++i) {
      nodes_[layer[i]].column = static_cast<double>(i) - middle;
    }
  }

  void place() {
    double y = kMargin;
    size_t widest = 1;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const size_t n : layer) {
        Node& node = nodes_[n];
        const size_t inner = std::min(node.row->nodes.size(), kMaxInner + 1);
        node.y = y;
        if (inner > 0) node.height += kInnerLine * static_cast<double>(inner) + 6;
        height = std::max(height, node.height);
      }
      y += height + kRowGap;
      widest = std::max(widest, layer.size());
    }
    width_ = std::max(2 * kMargin + kColumn * static_cast<double>(widest), 420.0);
    height_ = y - kRowGap + kMargin;
  }

  double middle(const Node& node) const { return width_ / 2 + kColumn * node.column; }

  // Past the boxes in between on the side where there is room.
  void draw_edge(Svg& svg, const Node& from, const Node& to) {
    const double x1 = middle(from), y1 = from.y + from.height, x2 = middle(to), y2 = to.y;
    const bool skips = to.layer > from.layer + 1;
    const double aside = skips ? kBoxWidth / 2 + 14 : 0;
    const double bend = std::min((y2 - y1) / 2, 60.0);
    std::string d = "M" + pixels(x1) + " " + pixels(y1);
    if (skips) {
      const double x = std::min(x1, x2) - aside;
      d += "C" + pixels(x1) + " " + pixels(y1 + 20) + " " + pixels(x) + " " + pixels(y1) + " " +
           pixels(x) + " " + pixels(y1 + bend) + "L" + pixels(x) + " " + pixels(y2 - bend) + "C" +
           pixels(x) + " " + pixels(y2) + " " + pixels(x2) + " " + pixels(y2 - 20) + " " +
           pixels(x2) + " " + pixels(y2);
    } else {
      d += "C" + pixels(x1) + " " + pixels(y1 + bend) + " " + pixels(x2) + " " + pixels(y2 - bend) +
           " " + pixels(x2) + " " + pixels(y2);
    }
    svg.path(d, "edge");
  }

  void draw_node(Svg& svg, const Node& node) {
    const ProfiledInstruction& row = *node.row;
    const double x = middle(node) - kBoxWidth / 2;
    const double share = row.seconds / profile_.seconds;
    std::string tip = std::to_string(row.instruction) + ": " + row.op + "\n" + row.shapes + "\n" +
                      format_seconds(row.seconds) + ", " + format_percent(share);
    for (const std::string& original : row.originals) tip += "\n" + original;
    if (!row.module.empty()) tip += "\n" + row.module;
    if (!row.place.empty()) tip += "\n" + row.place;
    svg.rect(x, node.y, kBoxWidth, node.height, "node", tip);
    svg.rect(x, node.y, 5, node.height, to_string(row.family));
    // How much of the time, as a line along the lower edge.
    svg.rect(x + 5, node.y + node.height - 3, std::max((kBoxWidth - 5) * std::min(share, 1.0), 0.5),
             3, to_string(row.family));
    const std::string time = format_percent(share);
    svg.text(x + 14, node.y + 16, shorten(row.op, 24), "strong");
    svg.text(x + kBoxWidth - 8, node.y + 16, time, "muted small", "end");
    svg.text(x + 14, node.y + 31, shorten(row.module.empty() ? row.shapes : row.module, 36),
             "muted small");
    if (row.family == Family::Delegate) {
      svg.rect(x - 4, node.y - 4, kBoxWidth + 8, node.height + 8, "frame");
    }
    draw_inner(svg, node, x);
  }

  void draw_inner(Svg& svg, const Node& node, double x) {
    std::vector<const ProfiledNode*> inner;
    for (const ProfiledNode& item : node.row->nodes) inner.push_back(&item);
    double y = node.y + kBoxHeight + 8;
    for (size_t i = 0; i < inner.size(); ++i, y += kInnerLine) {
      if (i == kMaxInner) {
        svg.text(x + 14, y, "and " + std::to_string(inner.size() - i) + " more", "muted small");
        return;
      }
      svg.text(x + 14, y, shorten(inner[i]->op, 28), "small");
      svg.text(x + kBoxWidth - 8, y, format_percent(inner[i]->seconds / profile_.seconds),
               "muted small", "end");
    }
  }

  const Profile& profile_;
  std::vector<Node> nodes_;
  std::vector<std::vector<size_t>> layers_;
  double width_ = 0;
  double height_ = 0;
};

}  // namespace

std::string graph_svg(const Profile& profile, const Json& method) {
  return Drawing(profile, method).draw();
}

}  // namespace executorch::devtools
