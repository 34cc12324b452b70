#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/selected_rows.h>

#include <algorithm>
#include <cstring>
#include <queue>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

bool is_bounded(const Node& node) {
  return node.low != -std::numeric_limits<float>::infinity() ||
         node.high != std::numeric_limits<float>::infinity();
}

int64_t rows_of(const Value& value) {
  return value.shape.rank == 0 ? 1 : value.shape.product(0, value.shape.rank - 1);
}

/// Whether a row of the result depends on the same row of the operands that are no constants.
bool is_by_row(const Graph& graph, const Node& node) {
  const Value& out = graph.out(node);
  if (node.n_outputs != 1 || node.operation->is_view || out.planar) return false;
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    if (!graph.has_input(node, i)) continue;
    const Value& in = graph.in(node, i);
    if (in.planar || (in.type == Type::qdint8 && in.row_dims != 1)) return false;
  }
  switch (node.kind) {
    case Kind::XNNFullyConnected:
      return graph.in(node, 1).place == Value::Place::Constant &&
             (!graph.has_input(node, 2) || graph.in(node, 2).place == Value::Place::Constant);
    case Kind::XNNConvert:
      return out.type != Type::qdint8 || out.row_dims == 1;
    case Kind::XNNStaticSlice: {
      const Shape& x = graph.in(node).shape;
      for (uint32_t d = 0; d + 1 < x.rank && d < node.n_list; ++d) {
        if (node.list[d] != 0 || node.list2[d] != 0) return false;
      }
      return node.n_list == x.rank && x.rank > 0;
    }
    default:
      break;
  }
  if (!node.operation->is_elementwise) return false;
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    const Value& in = graph.in(node, i);
    const bool is_constant = in.place == Value::Place::Constant;
    if (is_constant ? rows_of(in) != 1 : in.shape.rank != out.shape.rank) return false;
  }
  return true;
}

/// Readers and writers of values.
struct Uses {
  std::vector<uint32_t> readers;            // how many reads by nodes
  std::vector<size_t> writer, last_reader;  // nodes, or SIZE_MAX

  explicit Uses(const Graph& graph)
      : readers(graph.values.size(), 0),
        writer(graph.values.size(), SIZE_MAX),
        last_reader(writer) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (uint32_t j = 0; j < node.n_inputs; ++j) {
        if (node.input[j] == kNoId) continue;
        ++readers[node.input[j]];
        last_reader[node.input[j]] = i;
      }
      for (uint32_t j = 0; j < node.n_outputs; ++j) writer[node.output[j]] = i;
    }
  }
};

/// The nodes of groups, by the number of the group.
class Finder {
 public:
  explicit Finder(Graph& graph)
      : graph_(graph), uses_(graph), group_of_(graph.nodes.size(), kNoId), seen_(uses_.readers) {}

  std::vector<RowGroup> find() {
    std::vector<RowGroup> groups;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.kind != Kind::XNNMultiply || !is_summed(node)) continue;
      for (const uint32_t factor : {node.input[1], node.input[0]}) {
        if (!is_factor(node, factor)) continue;
        RowGroup group;
        group.multiply = i;
        group.factor = factor;
        if (!collect(group, static_cast<uint32_t>(groups.size()))) continue;
        groups.push_back(std::move(group));
        break;
      }
    }
    return groups;
  }

  /// Moves the nodes of each group directly in front of its product.
  void order(std::vector<RowGroup>& groups) {
    std::vector<std::vector<size_t>> of_group(groups.size());
    for (size_t i = 0; i < group_of_.size(); ++i) {
      if (group_of_[i] != kNoId) of_group[group_of_[i]].push_back(i);
    }
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (size_t i = 0; i < group_of_.size(); ++i) {
      if (group_of_[i] == kNoId) {
        nodes.push_back(std::move(graph_.nodes[i]));
        continue;
      }
      RowGroup& group = groups[group_of_[i]];
      if (i != group.multiply) continue;
      group.first = nodes.size();
      for (const size_t each : of_group[group_of_[i]]) {
        nodes.push_back(std::move(graph_.nodes[each]));
      }
      group.multiply = nodes.size() - 1;
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  /// Whether the result is only a term of a sum, in floats.
  bool is_summed(const Node& node) const {
    const Value& out = graph_.out(node);
    const size_t reader = uses_.last_reader[node.output[0]];
    if (reader == SIZE_MAX || graph_.nodes[reader].kind != Kind::XNNAdd) return false;
    return out.place == Value::Place::Internal && is_float(out.type) && !is_bounded(node) &&
           out.shape.rank > 0 && uses_.readers[node.output[0]] == 1 && is_by_row(graph_, node);
  }

  bool is_factor(const Node& node, uint32_t id) const {
    const Value& value = graph_.values[id];
    return is_float(value.type) && value.place != Value::Place::Constant &&
           value.shape.rank == graph_.out(node).shape.rank && value.shape.last() == 1 &&
           graph_.out(node).shape.last() != 1;
  }

  /// Collects what only the product reads, from the last node to the first. False if there is no
  /// layer among it.
  bool collect(RowGroup& group, uint32_t number) {
    std::priority_queue<size_t> pending;
    std::vector<size_t> nodes;
    std::vector<uint32_t> read;  // values of which readers were counted
    const auto add = [&](size_t i) {
      nodes.push_back(i);
      const Node& node = graph_.nodes[i];
      for (uint32_t j = 0; j < node.n_inputs; ++j) {
        const uint32_t id = node.input[j];
        if (id == kNoId || id == group.factor) continue;
        read.push_back(id);
        if (--seen_[id] == 0 && uses_.writer[id] != SIZE_MAX) pending.push(uses_.writer[id]);
      }
    };
    bool has_layer = false;
    add(group.multiply);
    while (!pending.empty()) {
      const size_t i = pending.top();
      pending.pop();
      const Node& node = graph_.nodes[i];
      const bool is_own = group_of_[i] == kNoId && is_by_row(graph_, node) &&
                          graph_.out(node).place == Value::Place::Internal;
      if (!is_own) continue;
      has_layer |= node.kind == Kind::XNNFullyConnected;
      add(i);
    }
    for (const uint32_t id : read) seen_[id] = uses_.readers[id];
    if (has_layer) take(group, number, nodes);
    return has_layer;
  }

  void take(RowGroup& group, uint32_t number, const std::vector<size_t>& nodes) {
    for (const size_t i : nodes) {
      group_of_[i] = number;
      group.results.push_back(graph_.nodes[i].output[0]);
    }
    group.sources.push_back(group.factor);
    for (const size_t i : nodes) {
      const Node& node = graph_.nodes[i];
      for (uint32_t j = 0; j < node.n_inputs; ++j) {
        const uint32_t id = node.input[j];
        const bool is_source =
            id != kNoId && graph_.values[id].place != Value::Place::Constant &&
            std::find(group.results.begin(), group.results.end(), id) == group.results.end();
        const auto& known = group.sources;
        if (is_source && std::find(known.begin(), known.end(), id) == known.end()) {
          group.sources.push_back(id);
        }
      }
    }
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<uint32_t> group_of_;  // by node
  std::vector<uint32_t> seen_;      // readers that are in no group so far
};

int64_t row_bytes(const Value& value) {
  return value.shape.last() * static_cast<int64_t>(element_size(value.type));
}

bool is_zero(const Value& value, int64_t row) {
  switch (value.type) {
    case Type::fp32:
      return value.as<float>()[row] == 0;
    default:  // 16 bits, of which the first is the sign
      return (value.as<uint16_t>()[row] & 0x7FFF) == 0;
  }
}

void set_rows(Value& value, int64_t count) {
  for (uint32_t d = 0; d + 1 < value.shape.rank; ++d) {
    value.shape[d] = d + 2 == value.shape.rank ? count : 1;
  }
}

}  // namespace

std::vector<RowGroup> find_row_groups(Graph& graph) {
  Finder finder(graph);
  std::vector<RowGroup> groups = finder.find();
  finder.order(groups);
  return groups;
}

void fit_row_groups(const Graph& graph, std::span<RowGroup> groups) {
  for (RowGroup& group : groups) {
    const int64_t n = rows_of(graph.values[group.factor]);
    const auto has_rows = [&](uint32_t id) { return rows_of(graph.values[id]) == n; };
    group.fits = n > 0 && graph.values[group.factor].shape.last() == 1 &&
                 std::all_of(group.sources.begin(), group.sources.end(), has_rows) &&
                 std::all_of(group.results.begin(), group.results.end(), has_rows);
  }
}

SelectedRows::SelectedRows(Graph& graph, const RowGroup& group, cpu::Scratch& scratch)
    : graph_(graph), group_(group), frame_(scratch), n_(rows_of(graph.values[group.factor])) {
  if (!choose(scratch) || (count_ > 0 && count_ < n_ && !gather(scratch))) count_ = n_;
}

bool SelectedRows::choose(cpu::Scratch& scratch) {
  rows_ = scratch.array<int64_t>(n_);
  if (rows_ == nullptr) return false;
  const Value& factor = graph_.values[group_.factor];
  for (int64_t i = 0; i < n_; ++i) {
    if (!is_zero(factor, i)) rows_[count_++] = i;
  }
  return true;
}

/// Copies the rows of the sources. Nothing is changed where memory is refused.
bool SelectedRows::gather(cpu::Scratch& scratch) {
  const size_t n_values = group_.sources.size() + group_.results.size();
  saved_ = scratch.array<Saved>(static_cast<int64_t>(n_values));
  void** const copies = scratch.array<void*>(static_cast<int64_t>(group_.sources.size()));
  if (saved_ == nullptr || copies == nullptr) return false;
  for (size_t i = 0; i < group_.sources.size(); ++i) {
    Value some = graph_.values[group_.sources[i]];
    set_rows(some, count_);
    copies[i] = scratch.array<uint8_t>(nbytes(some));
    if (copies[i] == nullptr) return false;
  }
  for (size_t i = 0; i < n_values; ++i) {
    const bool is_source = i < group_.sources.size();
    const uint32_t id = is_source ? group_.sources[i] : group_.results[i - group_.sources.size()];
    Value& value = graph_.values[id];
    saved_[n_saved_++] = {id, value.shape, value.data};
    if (!is_source) {
      set_rows(value, count_);
      continue;
    }
    const Value all = value;
    set_rows(value, count_);
    value.data = copies[i];
    const int64_t bytes = row_bytes(value);
    for (int64_t r = 0; r < count_; ++r) {
      std::memcpy(value.as<uint8_t>() + r * bytes, all.as<uint8_t>() + rows_[r] * bytes,
                  static_cast<size_t>(bytes));
      if (value.type == Type::qdint8) {
        value.row_quantization()[r] = all.row_quantization()[rows_[r]];
      }
    }
  }
  return true;
}

SelectedRows::~SelectedRows() {
  for (size_t i = 0; i < n_saved_; ++i) {
    graph_.values[saved_[i].id].shape = saved_[i].shape;
    graph_.values[saved_[i].id].data = saved_[i].data;
  }
  if (count_ < n_) spread();
}

/// Moves the product's rows to their places, the last first, with zeros between them.
void SelectedRows::spread() {
  const Value& product = graph_.out(graph_.nodes[group_.multiply]);
  const int64_t bytes = row_bytes(product);
  int64_t r = count_;
  for (int64_t i = n_ - 1; i >= 0; --i) {
    uint8_t* const to = product.as<uint8_t>() + i * bytes;
    if (r > 0 && rows_[r - 1] == i) {
      --r;
      if (r != i) std::memcpy(to, product.as<uint8_t>() + r * bytes, static_cast<size_t>(bytes));
    } else {
      std::memset(to, 0, static_cast<size_t>(bytes));
    }
  }
}

}  // namespace executorch::backends::xnnpack
