#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/read_nodes.h>
#include <executorch/backends/xnnpack/runtime/runs.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

namespace fb = fb_xnnpack;
using Kind = fb::XNodeUnion;

template <class T>
void read_unary(const T& from, Node& node) {
  node.input[0] = from.input_id();
  node.n_inputs = 1;
  node.output[0] = from.output_id();
  node.flags = from.flags();
}

void read_binary(const fb::_XNNNode2x1& from, Node& node) {
  node.input[0] = from.input1_id();
  node.input[1] = from.input2_id();
  node.n_inputs = 2;
  node.output[0] = from.output_id();
  node.flags = from.flags();
}

/// Operands of a product with a filter and, if there is one, a bias.
template <class T>
void read_filtered(const T& from, Node& node) {
  node.input[0] = from.input1_id();
  node.input[1] = from.filter_id();
  node.input[2] = from.bias_id();
  node.n_inputs = 3;
  node.output[0] = from.output_id();
  node.flags = from.flags();
}

template <class T>
void read_padding(const T& from, Window& window) {
  window.before[0] = from.padding_top();
  window.before[1] = from.padding_left();
  window.after[0] = from.padding_bottom();
  window.after[1] = from.padding_right();
}

bool read_list(const flatbuffers::Vector<uint32_t>* from, uint32_t n, Node& node,
               std::array<uint32_t, kMaxRank>& list) {
  if ((from == nullptr ? 0 : from->size()) != n || n > kMaxRank) return false;
  for (uint32_t i = 0; i < n; ++i) list[i] = from->Get(i);
  node.n_list = n;
  return true;
}

void read_pooling(const fb::_XNNPooling2D& from, Node& node) {
  read_unary(from, node);
  Window& w = node.window;
  read_padding(from, w);
  w.size[0] = from.pooling_height();
  w.size[1] = from.pooling_width();
  w.stride[0] = from.stride_height();
  w.stride[1] = from.stride_width();
  // Payloads write 0 for the dilation of an average pooling, which has none.
  w.dilation[0] = std::max(from.dilation_height(), 1u);
  w.dilation[1] = std::max(from.dilation_width(), 1u);
}

void read_arg_max(const fb::XNNArgMaxPooling2d& from, Node& node) {
  node.input[0] = from.input_id();
  node.n_inputs = 1;
  node.output[0] = from.output_value_id();
  node.output[1] = from.output_index_id();
  node.n_outputs = 2;
  read_padding(from, node.window);
  node.window.size[0] = node.window.stride[0] = from.pooling_height();
  node.window.size[1] = node.window.stride[1] = from.pooling_width();
}

void read_convolution(const fb::_XNNNodeConv& from, Node& node) {
  read_filtered(from, node);
  Window& w = node.window;
  read_padding(from, w);
  w.size[0] = from.kernel_height();
  w.size[1] = from.kernel_width();
  w.stride[0] = from.subsampling_height();
  w.stride[1] = from.subsampling_width();
  w.dilation[0] = from.dilation_height();
  w.dilation[1] = from.dilation_width();
  w.adjustment[0] = from.adjustment_height();
  w.adjustment[1] = from.adjustment_width();
  node.groups = from.groups();
  node.group_inputs = from.group_input_channels();
  node.group_outputs = from.group_output_channels();
}

void read_concatenate(const fb::_XNNCat& from, Node& node) {
  const uint32_t ids[] = {from.input1_id(), from.input2_id(), from.input3_id(), from.input4_id(),
                          from.input5_id()};
  node.n_inputs = node.kind == Kind::XNNConcatenate2   ? 2
                  : node.kind == Kind::XNNConcatenate3 ? 3
                  : node.kind == Kind::XNNConcatenate4 ? 4
                                                       : 5;
  for (uint32_t i = 0; i < node.n_inputs; ++i) node.input[i] = ids[i];
  node.output[0] = from.output_id();
  node.axis = from.axis();
}

/// False when a list's length differs from what another field of the node says.
bool read_fields(const fb::XNode& entry, Node& node) {
  const void* const table = entry.xnode_union();
  switch (node.operation->form) {
    case Form::Unary:
    case Form::GlobalPooling:
      read_unary(*static_cast<const fb::_XNNNode1x1*>(table), node);
      return true;
    case Form::Slope:
      read_unary(*static_cast<const fb::XNNLeakyReLU*>(table), node);
      node.number = static_cast<const fb::XNNLeakyReLU*>(table)->negative_slope();
      return true;
    case Form::Alpha:
      read_unary(*static_cast<const fb::XNNELU*>(table), node);
      node.number = static_cast<const fb::XNNELU*>(table)->alpha();
      return true;
    case Form::Binary:
    case Form::BatchMatrixMultiply:
      read_binary(*static_cast<const fb::_XNNNode2x1*>(table), node);
      return true;
    case Form::FullyConnected:
      read_filtered(*static_cast<const fb::XNNFullyConnected*>(table), node);
      return true;
    case Form::Concatenate:
      read_concatenate(*static_cast<const fb::_XNNCat*>(table), node);
      return true;
    case Form::Convolution:
      read_convolution(*static_cast<const fb::_XNNNodeConv*>(table), node);
      return true;
    case Form::Pooling:
      read_pooling(*static_cast<const fb::_XNNPooling2D*>(table), node);
      return true;
    case Form::ArgMaxPooling:
      read_arg_max(*static_cast<const fb::XNNArgMaxPooling2d*>(table), node);
      return true;
    case Form::Transpose: {
      const auto& from = *static_cast<const fb::XNNStaticTranspose*>(table);
      read_unary(from, node);
      return read_list(from.perm(), from.num_dims(), node, node.list);
    }
    case Form::Reshape: {
      const auto& from = *static_cast<const fb::XNNStaticReshape*>(table);
      read_unary(from, node);
      return read_list(from.new_shape(), from.num_dims(), node, node.list);
    }
    case Form::Slice: {
      const auto& from = *static_cast<const fb::XNNStaticSlice*>(table);
      read_unary(from, node);
      return read_list(from.offsets(), from.num_dims(), node, node.list) &&
             read_list(from.sizes(), from.num_dims(), node, node.list2);
    }
    case Form::Resize: {
      const auto& from = *static_cast<const fb::XNNStaticResizeBilinear2D*>(table);
      read_unary(from, node);
      node.list = {from.new_height(), from.new_width()};
      return true;
    }
    case Form::Pad: {
      const auto& from = *static_cast<const fb::XNNStaticConstantPad*>(table);
      read_unary(from, node);
      node.number = from.padding_value();
      const uint32_t n = from.pre_paddings() == nullptr ? 0 : from.pre_paddings()->size();
      return read_list(from.pre_paddings(), n, node, node.list) &&
             read_list(from.post_paddings(), n, node, node.list2);
    }
  }
  return false;
}

bool is_sane(const Window& w, Form form) {
  // A convolution may copy its image together with the padding, so extents are bounded more
  // tightly.
  const int64_t most = form == Form::Convolution ? 1 << 16 : INT32_MAX;
  for (int i = 0; i < 2; ++i) {
    if (w.size[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1) return false;
    for (const int64_t extent :
         {w.size[i], w.stride[i], w.dilation[i], w.before[i], w.after[i], w.adjustment[i]}) {
      if (extent > most) return false;
    }
  }
  return true;
}

/// Inserts a node that converts `input` to the type of `like` before the next node, and returns the
/// id of its result. Exporters write nodes that only move elements with different quantizations of
/// input and output.
uint32_t convert_first(Graph& graph, uint32_t index, uint32_t input, const Value& like) {
  const auto id = static_cast<uint32_t>(graph.values.size());
  Value converted = like;
  converted.shape = graph.values[input].shape;
  converted.place = Value::Place::Internal;
  converted.external = kNoId;
  graph.values.push_back(converted);
  graph.nodes.push_back(make_conversion(input, id));
  graph.nodes.back().index = index;
  return id;
}

bool only_moves(const Operation& operation) {
  switch (operation.form) {
    case Form::Concatenate:
    case Form::Transpose:
    case Form::Reshape:
    case Form::Slice:
    case Form::Pad:
      return true;
    default:
      return operation.is_view;
  }
}

/// Checks that every node reads what an earlier node computed, and writes what none has written.
class Order {
 public:
  explicit Order(const Graph& graph) : graph_(graph), known_(graph.values.size()) {
    for (size_t i = 0; i < known_.size(); ++i) {
      const auto place = graph.values[i].place;
      known_[i] = place == Value::Place::Constant || place == Value::Place::Input;
    }
    for (const Node& node : graph.nodes) known_[node.output[0]] = true;
  }

  Error check(const Node& node) {
    for (uint32_t i = 0; i < node.n_inputs; ++i) {
      const uint32_t id = node.input[i];
      const bool is_bias = i == 2 && node.operation->form != Form::Concatenate;
      if (id == kNoId && is_bias) continue;
      ET_XNN_REQUIRE(id < known_.size() && known_[id], node,
                     "input %u is value %u, which no earlier node computes; there are %zu values",
                     i, id, known_.size());
    }
    for (uint32_t i = 0; i < node.n_outputs; ++i) {
      const uint32_t id = node.output[i];
      ET_XNN_REQUIRE(id < known_.size() && !known_[id], node,
                     "output %u is value %u, which is an input, a constant, already computed or "
                     "not one of the %zu values",
                     i, id, known_.size());
      known_[id] = true;
    }
    return Error::Ok;
  }

  Error end() const {
    for (size_t i = 0; i < known_.size(); ++i) {
      ET_CHECK_OR_RETURN_ERROR(known_[i] || graph_.values[i].place != Value::Place::Output,
                               InvalidProgram,
                               "XnnpackBackend: no node computes value %zu, an external output", i);
    }
    return Error::Ok;
  }

 private:
  const Graph& graph_;
  std::vector<bool> known_;
};

Error read_node(const fb::XNode* entry, uint32_t index, Order& order, Graph& graph) {
  Node node;
  node.index = index;
  if (entry != nullptr) node.kind = entry->xnode_union_type();
  ET_CHECK_OR_RETURN_ERROR(
      entry != nullptr && entry->xnode_union() != nullptr && node.kind <= Kind::MAX, InvalidProgram,
      "XnnpackBackend: node %u is of no known kind (%u)", index, static_cast<unsigned>(node.kind));
  node.operation = find_operation(node.kind);
  ET_CHECK_OR_RETURN_ERROR(node.operation != nullptr, NotSupported, "XnnpackBackend: node %u: %s",
                           index, fb::EnumNameXNodeUnion(node.kind));
  if (const auto* bounds = entry->output_min_max()) {
    node.low = bounds->output_min();
    node.high = bounds->output_max();
  }
  ET_XNN_REQUIRE(node.low <= node.high, node, "node %u: bounds %g, %g", index,
                 static_cast<double>(node.low), static_cast<double>(node.high));
  ET_XNN_REQUIRE(read_fields(*entry, node), node,
                 "node %u: the length of a list differs from the number of dims, or exceeds %zu",
                 index, kMaxRank);
  // kPlanar is the runtime's own flag, so a payload must not have it.
  ET_XNN_REQUIRE((node.flags & kPlanar) == 0, node, "node %u: unknown flags 0x%x", index,
                 node.flags);
  ET_XNN_REQUIRE(is_sane(node.window, node.operation->form), node,
                 "node %u: an extent of the window is 0 or too large", index);
  Error error = order.check(node);
  for (uint32_t i = 0; error == Error::Ok && only_moves(*node.operation) && i < node.n_inputs;
       ++i) {
    const Value &from = graph.in(node, i), &to = graph.out(node);
    const bool convertible = is_affine(from.type) || is_affine(to.type);
    if (!convertible || same_type(from, to)) continue;
    ET_XNN_REQUIRE(has_runs(from.type) && has_runs(to.type), node, "%s to %s", name_of(from.type),
                   name_of(to.type));
    node.input[i] = convert_first(graph, index, node.input[i], Value(to));
  }
  if (error == Error::Ok) error = node.operation->check(graph, node);
  ET_CHECK_OK_OR_RETURN_ERROR(error, "XnnpackBackend: node %u is refused", index);
  graph.nodes.push_back(std::move(node));
  return Error::Ok;
}

}  // namespace

Node make_conversion(uint32_t input, uint32_t output) {
  Node node;
  node.inserted = true;
  node.kind = Kind::XNNConvert;
  node.operation = find_operation(node.kind);
  node.input[0] = input;
  node.n_inputs = 1;
  node.output[0] = output;
  return node;
}

Error read_nodes(const fb::XNNGraph& fb, Graph& graph) {
  const uint32_t n = fb.xnodes() == nullptr ? 0 : fb.xnodes()->size();
  Order order(graph);
  for (uint32_t i = 0; i < n; ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(read_node(fb.xnodes()->Get(i), i, order, graph));
  }
  return order.end();
}

}  // namespace executorch::backends::xnnpack
