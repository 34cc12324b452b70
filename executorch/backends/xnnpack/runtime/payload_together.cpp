/// Several fields of a valid payload changed at once.
#include <executorch/backends/xnnpack/runtime/payload_fields.h>
#include <executorch/backends/xnnpack/runtime/payload_window.h>

#include <algorithm>
#include <map>

namespace executorch::backends::xnnpack::testing {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

fb::XNNTensorValueT* tensor_of(fb::XValueT& value) {
  auto* quantized = value.xvalue_union.AsXNNQuantizedTensorValue();
  return quantized != nullptr ? quantized->tensor_value.get()
                              : value.xvalue_union.AsXNNTensorValue();
}

class Graph {
 public:
  explicit Graph(fb::XNNGraphT& graph) : graph_(graph) {
    for (const auto& value : graph.xvalues) {
      if (auto* tensor = value == nullptr ? nullptr : tensor_of(*value)) {
        tensors_[tensor->id_out] = tensor;
      }
    }
  }

  fb::XNNTensorValueT* tensor(uint32_t id) const {
    const auto found = tensors_.find(id);
    return found == tensors_.end() ? nullptr : found->second;
  }

  /// Leaves that node, and what converts its inputs for it: its inputs and outputs are the graph's.
  void isolate(size_t index) {
    std::vector<std::unique_ptr<fb::XNodeT>> kept;
    const Fields of = fields_of(graph_.xnodes[index]->xnode_union);
    for (size_t i = 0; i < index; ++i) {
      const Fields before = fields_of(graph_.xnodes[i]->xnode_union);
      if (before.outputs.empty()) continue;
      const auto* result = tensor(*before.outputs[0]);
      const bool is_read = std::any_of(of.inputs.begin(), of.inputs.end(), [&](const uint32_t* id) {
        return *id == *before.outputs[0];
      });
      if (is_read && result != nullptr && result->datatype == fb::XNNDatatype::qdint8) {
        kept.push_back(std::move(graph_.xnodes[i]));
      }
    }
    kept.push_back(std::move(graph_.xnodes[index]));
    graph_.xnodes = std::move(kept);
    make_external();
  }

  void change_extents(const Linear& linear, Random& random) {
    for (const auto& [id, tensor] : tensors_) {
      const bool is_input = tensor->flags == 1;
      if (!is_input || tensor->dims.empty() || one_in(2, random)) continue;
      auto& extent = any_of(tensor->dims, random);
      extent = one_in(2, random) ? below(6, random) : linear();
      // The product stays small where another is 0 or all are 1.
      if (one_in(2, random)) any_of(tensor->dims, random) = below(2, random);
    }
  }

 private:
  void make_external() {
    for (const auto& [id, tensor] : tensors_) {
      tensor->flags = 0;
      tensor->external_id = kNone;
    }
    std::vector<uint32_t> computed;
    for (const auto& node : graph_.xnodes) {
      for (const uint32_t* id : fields_of(node->xnode_union).outputs) computed.push_back(*id);
    }
    graph_.num_externs = 0;
    const auto give_slot = [&](uint32_t id, uint32_t flags) {
      auto* const tensor = this->tensor(id);
      if (tensor == nullptr || tensor->constant_buffer_idx != 0 || tensor->flags != 0) return;
      tensor->flags = flags;
      tensor->external_id = graph_.num_externs++;
    };
    for (const auto& node : graph_.xnodes) {
      for (const uint32_t* id : fields_of(node->xnode_union).inputs) {
        if (std::find(computed.begin(), computed.end(), *id) == computed.end()) give_slot(*id, 1);
      }
    }
    for (const uint32_t* id : fields_of(graph_.xnodes.back()->xnode_union).outputs) {
      give_slot(*id, 2);
    }
  }

  fb::XNNGraphT& graph_;
  std::map<uint32_t, fb::XNNTensorValueT*> tensors_;
};

void couple_window(fb::XNodeUnionUnion& node, const Graph& graph, Random& random) {
  const Fields fields = fields_of(node);
  const auto* x = fields.inputs.empty() ? nullptr : graph.tensor(*fields.inputs[0]);
  const Operation* const operation = find_operation(node.type);
  if (operation == nullptr || x == nullptr || x->dims.size() != 4) return;
  const bool any_size = one_in(2, random);
  for (int d = 0; d < 2; ++d) {
    const uint32_t in = x->dims[static_cast<size_t>(d) + 1];
    switch (operation->form) {
      case Form::Convolution:
        couple(axis_of(*static_cast<fb::_XNNNodeConvT*>(node.value),
                       node.type == fb::XNodeUnion::XNNConvTranspose2d, d),
               in, false, random);
        break;
      case Form::Pooling:
        couple(axis_of(*static_cast<fb::_XNNPooling2DT*>(node.value), d), in, any_size, random);
        break;
      case Form::ArgMaxPooling:
        couple(axis_of(*node.AsXNNArgMaxPooling2d(), d), in, any_size, random);
        break;
      default:
        break;
    }
  }
}

}  // namespace

Bytes mutate_together(const Bytes& payload, Random& random) {
  const UnpackedPayload parts = unpack_payload(payload);
  fb::XNNGraphT& table = *parts.graph;
  if (table.xnodes.empty()) return payload;
  Graph graph(table);
  const size_t index = random() % table.xnodes.size();
  const bool alone = !one_in(3, random);
  if (alone) graph.isolate(index);
  auto& node = (alone ? table.xnodes.back() : table.xnodes[index])->xnode_union;
  const Linear linear(random);
  if (one_in(2, random)) graph.change_extents(linear, random);
  couple_window(node, graph, random);
  Fields fields = fields_of(node);
  const uint64_t rarely = one_in(2, random) ? 2 : 16;
  for (uint32_t* amount : fields.amounts) {
    // Windows go together already, and channels with the filter's shape.
    if (one_in(4 * rarely, random)) *amount = linear();
  }
  for (auto* list : fields.lists) {
    for (uint32_t& entry : *list) {
      if (one_in(rarely, random)) entry = one_in(3, random) ? below(4, random) : linear();
    }
  }
  return pack_payload(table, parts.constants.data(), parts.constants.size());
}

}  // namespace executorch::backends::xnnpack::testing
