#include <executorch/backends/xnnpack/runtime/executor.h>
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/work.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/exec_aten/util/writable_data.h>
#include <executorch/runtime/platform/platform.h>

#include <cinttypes>
#include <cstring>

namespace executorch::backends::xnnpack {
namespace {

using aten::ScalarType;
using aten::Tensor;

/// Whether a tensor of that type holds this value. Indices are computed as int32 and widened where
/// an output's tensor is of Long.
bool holds(ScalarType tensor, const Value& value) {
  switch (value.type) {
    case Type::fp32:
      return tensor == ScalarType::Float;
    case Type::fp16:
      return tensor == ScalarType::Half;
    case Type::bf16:
      return tensor == ScalarType::BFloat16;
    case Type::qint8:
      return tensor == ScalarType::Char;
    case Type::quint8:
      return tensor == ScalarType::Byte;
    case Type::int32:
      return tensor == ScalarType::Int ||
             (tensor == ScalarType::Long && value.place == Value::Place::Output);
    default:
      return false;
  }
}

runtime::Result<const Tensor*> tensor_of(runtime::Span<runtime::EValue*> args, uint32_t slot,
                                         const Value& value) {
  ET_CHECK_OR_RETURN_ERROR(args[slot]->isTensor(), InvalidArgument,
                           "XnnpackBackend: argument %u of %zu is not a tensor", slot, args.size());
  const Tensor& tensor = args[slot]->toTensor();
  ET_CHECK_OR_RETURN_ERROR(holds(tensor.scalar_type(), value), InvalidArgument,
                           "XnnpackBackend: argument %u is of type %s, expected %s", slot,
                           runtime::toString(tensor.scalar_type()), name_of(value.type));
  const auto rank = static_cast<uint32_t>(tensor.dim());
  ET_CHECK_OR_RETURN_ERROR(rank == value.shape.rank || (rank == 0 && value.shape.numel() == 1),
                           InvalidArgument, "XnnpackBackend: argument %u has rank %u, expected %u",
                           slot, rank, value.shape.rank);
  return &tensor;
}

void widen_to_long(int32_t* data, int64_t n) {
  auto* wide = reinterpret_cast<char*>(data);
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t value = data[i];
    std::memcpy(wide + i * 8, &value, 8);
  }
}

}  // namespace

Executor::Executor(std::unique_ptr<Graph> graph)
    : graph_(std::move(graph)),
      groups_(find_row_groups(choose_planar_values(*graph_))),
      plan_(*graph_) {
  // Plan for the payload's shapes, so that calls with smaller ones need no new layout. A failure is
  // no error yet: those may be too large where the shapes of calls are not.
  (void)plan_.fit(*graph_, max_arena_bytes(*graph_));
}

bool Executor::writes_argument(size_t index) const {
  const uint32_t id = graph_->externals[index];
  return id != kNoId && graph_->values[id].place == Value::Place::Output;
}

Error Executor::bind_inputs(runtime::Span<runtime::EValue*> args, bool& changed) {
  for (uint32_t slot = 0; slot < graph_->n_externals; ++slot) {
    if (graph_->externals[slot] == kNoId) continue;
    Value& value = graph_->values[graph_->externals[slot]];
    if (value.place != Value::Place::Input) continue;
    auto tensor = tensor_of(args, slot, value);
    ET_CHECK_OK_OR_RETURN_ERROR(tensor.error());
    value.data = const_cast<void*>((*tensor)->const_data_ptr());
    const auto sizes = (*tensor)->sizes();
    const auto order = (*tensor)->dim_order();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t extent = sizes[order[i]];
      changed |= extent != value.shape[i];
      value.shape[i] = extent;
    }
    ET_CHECK_OR_RETURN_ERROR(
        is_sane(value.shape) && (value.data != nullptr || value.shape.numel() == 0),
        InvalidArgument, "XnnpackBackend: argument %u has no data", slot);
  }
  return Error::Ok;
}

Error Executor::bind_outputs(runtime::Span<runtime::EValue*> args) {
  for (uint32_t slot = 0; slot < graph_->n_externals; ++slot) {
    if (graph_->externals[slot] == kNoId) continue;
    Value& value = graph_->values[graph_->externals[slot]];
    if (value.place != Value::Place::Output) continue;
    auto found = tensor_of(args, slot, value);
    ET_CHECK_OK_OR_RETURN_ERROR(found.error());
    const Tensor& tensor = **found;
    const auto order = tensor.dim_order();
    aten::SizesType sizes[kMaxRank];
    for (size_t i = 0; i < order.size(); ++i) {
      ET_CHECK_OR_RETURN_ERROR(value.shape[i] <= INT32_MAX, InvalidArgument,
                               "XnnpackBackend: output %u has an extent of %" PRId64, slot,
                               value.shape[i]);
      sizes[order[i]] = static_cast<aten::SizesType>(value.shape[i]);
    }
    const Error error = runtime::resize_tensor(tensor, {sizes, order.size()});
    ET_CHECK_OK_OR_RETURN_ERROR(error, "XnnpackBackend: output %u cannot take its shape", slot);
    auto data = runtime::internal::writable_data(tensor);
    ET_CHECK_OK_OR_RETURN_ERROR(data.error(), "XnnpackBackend: output %u cannot be written", slot);
    value.data = *data;
  }
  return Error::Ok;
}

Error Executor::run_node(size_t i, cpu::Scratch& scratch) {
  Node& node = graph_->nodes[i];
  if (plan_.is_elided(i)) return Error::Ok;
  const Value& out = graph_->out(node);
  // A qdint8 value without elements still has the scale and zero point of each row.
  if (out.shape.numel() == 0 && out.type != Type::qdint8) return Error::Ok;
  if (!node.prepared && node.operation->prepare != nullptr) node.operation->prepare(*graph_, node);
  node.prepared = true;
  const cpu::Scratch::Frame frame(scratch);
  ET_CHECK_OR_RETURN_ERROR(node.operation->run(*graph_, node, scratch), MemoryAllocationFailed,
                           "XnnpackBackend: %s #%u: no scratch memory for these sizes",
                           node.operation->name(), node.index);
  return Error::Ok;
}

Error Executor::run_traced(size_t i, runtime::EventTracer* tracer, cpu::Scratch& scratch) {
  if (tracer == nullptr || plan_.is_elided(i)) return run_node(i, scratch);
  const auto start = runtime::pal_current_ticks();
  ET_CHECK_OK_OR_RETURN_ERROR(run_node(i, scratch));
  ET_CHECK_OR_RETURN_ERROR(reports_.log(*tracer, *graph_, i, start, scratch),
                           MemoryAllocationFailed,
                           "XnnpackBackend: no scratch memory to log what a node gave");
  return Error::Ok;
}

Error Executor::run_group(const RowGroup& group, runtime::EventTracer* tracer,
                          cpu::Scratch& scratch) {
  const SelectedRows rows(*graph_, group, scratch);
  for (size_t i = group.first; i <= group.multiply && !rows.none(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(run_traced(i, tracer, scratch));
  }
  return Error::Ok;
}

Error Executor::run_nodes(runtime::EventTracer* given, cpu::Scratch& scratch) {
  runtime::EventTracer* const tracer = runtime::internal::attached(given);
  // Who compares what nodes give with another program's wants all rows.
  const bool selects = tracer == nullptr || !tracer->intermediate_outputs_logging_status();
  if (tracer != nullptr) reports_.prepare(*graph_);
  auto group = groups_.begin();
  for (size_t i = 0; i < graph_->nodes.size(); ++i) {
    if (group == groups_.end() || group->first != i) {
      ET_CHECK_OK_OR_RETURN_ERROR(run_traced(i, tracer, scratch));
      continue;
    }
    if (selects && group->fits) {
      ET_CHECK_OK_OR_RETURN_ERROR(run_group(*group, tracer, scratch));
      i = group->multiply;
    } else {
      ET_CHECK_OK_OR_RETURN_ERROR(run_traced(i, tracer, scratch));
    }
    ++group;
  }
  return Error::Ok;
}

Error Executor::fit_shapes() {
  reports_.forget();
  ET_CHECK_OK_OR_RETURN_ERROR(infer_shapes(*graph_));
  const runtime::Result<uint64_t> steps = check_work(*graph_);
  ET_CHECK_OK_OR_RETURN_ERROR(steps.error());
  steps_ = *steps;
  const int64_t most = max_arena_bytes(*graph_);
  ET_CHECK_OR_RETURN_ERROR(plan_.fit(*graph_, most), MemoryAllocationFailed,
                           "XnnpackBackend: results inside the graph need more than %" PRId64
                           " bytes, out of all proportion to its operands",
                           most);
  fit_row_groups(*graph_, groups_);
  user_.set_bytes(static_cast<size_t>(plan_.arena_bytes()));
  return Error::Ok;
}

Error Executor::execute(runtime::Span<runtime::EValue*> args, runtime::EventTracer* tracer,
                        cpu::Scratch& scratch) {
  ET_CHECK_OR_RETURN_ERROR(args.size() == graph_->n_externals, InvalidArgument,
                           "XnnpackBackend: %zu arguments, expected %u", args.size(),
                           graph_->n_externals);
  bool changed = !fitted_;
  fitted_ = false;
  ET_CHECK_OK_OR_RETURN_ERROR(bind_inputs(args, changed));
  if (changed) ET_CHECK_OK_OR_RETURN_ERROR(fit_shapes());
  fitted_ = true;
  ET_CHECK_OK_OR_RETURN_ERROR(bind_outputs(args));
  const SharedArena arena(user_);
  ET_CHECK_OR_RETURN_ERROR(arena.data() != nullptr, MemoryAllocationFailed,
                           "XnnpackBackend: no memory for %" PRId64 " bytes of results",
                           plan_.arena_bytes());
  plan_.resolve(*graph_, arena.data());
  ET_CHECK_OK_OR_RETURN_ERROR(run_nodes(tracer, scratch));
  for (uint32_t slot = 0; slot < graph_->n_externals; ++slot) {
    if (graph_->externals[slot] == kNoId) continue;
    const Value& value = graph_->values[graph_->externals[slot]];
    if (value.place == Value::Place::Output && value.type == Type::int32 &&
        args[slot]->toTensor().scalar_type() == ScalarType::Long) {
      widen_to_long(value.as<int32_t>(), value.shape.numel());
    }
  }
  return Error::Ok;
}

}  // namespace executorch::backends::xnnpack
