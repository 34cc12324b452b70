#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/profiler/work.h>
#include <executorch/devtools/profiler/work_rules.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <set>

namespace executorch::devtools {
namespace {

using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::Instruction;
using runtime::Span;

// More steps than this are an error, so that counting ends for endless loops, too.
constexpr size_t kMostSteps = 1000000;

/// A tensor argument, and the index of its value in the method.
struct Argument {
  const Tensor* tensor;
  int32_t value;
};

/// The arguments of a call, divided into inputs and outputs. The out arguments come last in the
/// schema, and what is returned follows them: one tensor again, or a list of them.
struct Call {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  Span<EValue*> args;

  const Tensor* input(size_t i) const {
    return i < args.size() && args[i]->isTensor() ? &args[i]->toTensor() : nullptr;
  }
  const Tensor* output() const { return outputs.empty() ? nullptr : outputs[0].tensor; }
};

template <typename F>
void for_each_tensor(EValue& arg, const F& f) {
  if (arg.isTensor()) f(&arg);
  const auto& payload = arg.payload.copyable_union;
  const auto items = [&](const auto& list) {
    for (EValue* item : list) {
      if (item != nullptr && item->isTensor()) f(item);
    }
  };
  if (arg.isTensorList()) items(payload.as_tensor_list_ptr->values());
  if (arg.isListOptionalTensor()) items(payload.as_list_optional_tensor_ptr->values());
}

Call read_call(Span<EValue*> args, Span<const EValue> values) {
  Call call{{}, {}, args};
  std::set<int32_t> seen;
  const auto add_to = [&](std::vector<Argument>& list) {
    return [&](EValue* value) {
      const auto index = static_cast<int32_t>(value - values.data());
      if (seen.insert(index).second) list.push_back({&value->toTensor(), index});
    };
  };
  if (args.empty()) return call;
  // A tensor of the last argument is an output even if it also appears before.
  for_each_tensor(*args[args.size() - 1], add_to(call.outputs));
  for (size_t i = 0; i + 1 < args.size(); ++i) for_each_tensor(*args[i], add_to(call.inputs));
  return call;
}

double numel(const Tensor* tensor) {
  return tensor == nullptr ? 0 : static_cast<double>(tensor->numel());
}

int64_t last_size(const Tensor* tensor) {
  return tensor == nullptr || tensor->dim() == 0 ? 1 : tensor->size(tensor->dim() - 1);
}

double product(const EValue& list) {
  double n = 1;
  const auto items = list.tryToIntList();
  for (size_t i = 0; items.ok() && i < items->size(); ++i) n *= static_cast<double>((*items)[i]);
  return n;
}

double matmul_flop(const Call& call, size_t a) {
  return 2 * numel(call.output()) * static_cast<double>(last_size(call.input(a)));
}

double convolution_flop(const Call& call) {
  const Tensor* const weight = call.input(1);
  if (weight == nullptr || weight->dim() == 0 || weight->size(0) == 0) return 0;
  const bool transposed = call.args.size() > 6 && call.args[6]->isBool() && call.args[6]->toBool();
  const double per_channel = numel(weight) / static_cast<double>(weight->size(0));
  return 2 * numel(transposed ? call.input(0) : call.output()) * per_channel;
}

double attention_flop(const Call& call) {
  const Tensor *const q = call.input(0), *const k = call.input(1), *const v = call.input(2);
  if (q == nullptr || k == nullptr || v == nullptr || k->dim() < 2) return 0;
  const auto keys = static_cast<double>(k->size(k->dim() - 2));
  return 2 * keys * (numel(q) + numel(call.output()));
}

double flop_of(const WorkRule& rule, const Call& call) {
  switch (rule.count) {
    case WorkRule::Count::None:
      return 0;
    case WorkRule::Count::Input:
      return rule.per * (call.inputs.empty() ? 0 : numel(call.inputs[0].tensor));
    case WorkRule::Count::Output:
      return rule.per * numel(call.output());
    case WorkRule::Count::Window:
      return call.args.size() < 2 ? 0 : numel(call.output()) * product(*call.args[1]);
    case WorkRule::Count::Matmul:
      return matmul_flop(call, static_cast<size_t>(rule.per));
    case WorkRule::Count::Convolve:
      return convolution_flop(call);
    case WorkRule::Count::Attend:
      return attention_flop(call);
  }
  return 0;
}

std::string shape_text(const Tensor& tensor) {
  std::string out = runtime::toString(tensor.scalar_type());
  out += "[";
  for (ssize_t d = 0; d < tensor.dim(); ++d) {
    out += (d == 0 ? "" : ",") + std::to_string(tensor.size(d));
  }
  return out + "]";
}

std::string shapes_text(const Call& call) {
  std::string out;
  for (const Argument& in : call.inputs) out += (out.empty() ? "" : " ") + shape_text(*in.tensor);
  if (!call.outputs.empty()) out += out.empty() ? "->" : " ->";
  for (const Argument& result : call.outputs) out += " " + shape_text(*result.tensor);
  return out;
}

double nbytes(const Argument& argument) {
  return static_cast<double>(argument.tensor->nbytes());
}

void add_accesses(const WorkRule& rule, const Call& call, Work& work) {
  double written = 0;
  for (const Argument& out : call.outputs) written += nbytes(out);
  bool first = true;
  for (const Argument& in : call.inputs) {
    const bool selected = first && rule.selects;
    work.reads.push_back({in.value, selected ? std::min(nbytes(in), written) : nbytes(in)});
    first = false;
  }
  // An in-place operator writes at most as many bytes of its operand as it reads.
  const bool in_place = !call.outputs.empty() && call.args.size() > 0 && call.args[0]->isTensor() &&
                        &call.args[0]->toTensor() == call.outputs[0].tensor && !call.inputs.empty();
  for (const Argument& out : call.outputs) {
    double given = 0;
    for (const Work::Access& read : work.reads) given += read.bytes;
    work.writes.push_back({out.value, in_place ? std::min(nbytes(out), given) : nbytes(out)});
  }
}

void add_to(Work& sum, const Work& work) {
  sum.family = work.family;
  sum.flop += work.flop;
  sum.shapes = work.shapes;
  const auto add_all = [](auto& to, const auto& from) {
    if (to.size() != from.size()) return to.insert(to.end(), from.begin(), from.end()), void();
    for (size_t i = 0; i < from.size(); ++i) to[i].bytes += from[i].bytes;
  };
  add_all(sum.reads, work.reads);
  add_all(sum.writes, work.writes);
}

}  // namespace

const char* to_string(Family family) {
  static constexpr const char* kNames[] = {"matmul",  "convolution", "attention",   "normalization",
                                           "pooling", "reduction",   "elementwise", "copy",
                                           "view",    "delegate",    "other"};
  return kNames[static_cast<size_t>(family)];
}

double Work::bytes() const {
  double sum = 0;
  for (const Access& access : reads) sum += access.bytes;
  for (const Access& access : writes) sum += access.bytes;
  return sum;
}

Work work_of_call(std::string_view op, Span<EValue*> args, Span<const EValue> values) {
  const WorkRule rule = work_rule(op);
  const Call call = read_call(args, values);
  Work work;
  work.family = rule.family;
  work.flop = flop_of(rule, call);
  work.shapes = shapes_text(call);
  add_accesses(rule, call, work);
  if (rule.family == Family::View) {
    for (auto* list : {&work.reads, &work.writes}) {
      for (Work::Access& access : *list) access.bytes = 0;
    }
  }
  return work;
}

Work work_of_delegate(Span<EValue*> args, Span<const EValue> values) {
  Work work;
  work.family = Family::Delegate;
  std::set<const EValue*> seen;
  for (EValue* arg : args) {
    for_each_tensor(*arg, [&](EValue* item) {
      if (!seen.insert(item).second) return;
      const Argument argument{&item->toTensor(), static_cast<int32_t>(item - values.data())};
      work.reads.push_back({argument.value, nbytes(argument)});
      work.shapes += (work.shapes.empty() ? "" : " ") + shape_text(*argument.tensor);
    });
  }
  return work;
}

Work combine(const std::vector<const Work*>& parts, int32_t result) {
  Work out;
  // bases: view -> the value it is a view of. made: the values that the parts compute.
  std::map<int32_t, int32_t> bases;
  std::set<int32_t> made;
  std::map<int32_t, double> reads;
  const auto base = [&](int32_t value) {
    const auto found = bases.find(value);
    return found == bases.end() ? value : found->second;
  };
  double heaviest = -1;
  for (const Work* part : parts) {
    out.flop += part->flop;
    if (part->flop > heaviest) {
      heaviest = part->flop;
      out.family = part->family;
      out.shapes = part->shapes;
    }
    for (const Work::Access& read : part->reads) {
      double& bytes = reads[base(read.value)];
      if (made.count(base(read.value)) == 0) bytes = std::max(bytes, read.bytes);
    }
    for (const Work::Access& write : part->writes) {
      if (part->family == Family::View && !part->reads.empty()) {
        bases[write.value] = base(part->reads[0].value);
        continue;
      }
      made.insert(write.value);
      if (write.value == result) out.writes.push_back(write);
    }
  }
  for (const auto& [value, bytes] : reads) {
    if (bytes > 0) out.reads.push_back({value, bytes});
  }
  return out;
}

namespace {

/// A view of static shape may have no instruction: it is a value planned where another lies, which
/// nothing writes. Its reads are reads of that other value.
class StaticViews {
 public:
  explicit StaticViews(const runtime::Method& method) : values_(method.values()) {
    for (const int32_t input : *method.plan().inputs()) written_.insert(input);
  }

  void resolve(Work& work) {
    for (Work::Access& read : work.reads) {
      const auto found = last_writer_.find(address(read.value));
      if (written_.count(read.value) == 0 && found != last_writer_.end()) {
        read.value = found->second;
      }
    }
    for (const Work::Access& write : work.writes) {
      written_.insert(write.value);
      last_writer_[address(write.value)] = write.value;
    }
  }

 private:
  const void* address(int32_t value) const {
    return values_[static_cast<size_t>(value)].toTensor().const_data_ptr();
  }

  Span<const EValue> values_;
  std::set<int32_t> written_;
  std::map<const void*, int32_t> last_writer_;
};

}  // namespace

namespace {

void add_node(InstructionWork& call, const Run::Node& reported) {
  const Json said = Json::parse(reported.metadata, nullptr, false);
  if (!said.is_object()) return;
  InstructionWork::Node& node = call.nodes[{reported.name, reported.id}];
  const auto number = [&](const char* key) {
    const auto found = said.find(key);
    return found != said.end() && found->is_number() ? found->get<double>() : 0;
  };
  const auto text = [&](const char* key) {
    const auto found = said.find(key);
    return found != said.end() && found->is_string() ? found->get<std::string>() : "";
  };
  node.flop += number("flop");
  node.bytes += number("bytes");
  const auto int8 = said.find("int8");
  node.int8 = int8 != said.end() && int8->is_boolean() && int8->get<bool>();
  node.shapes = text("shapes");
  for (auto family = Family::Matmul; family < Family::Other;) {
    if (text("family") == to_string(family)) node.family = family;
    family = static_cast<Family>(static_cast<int>(family) + 1);
  }
}

}  // namespace

std::string operator_name(const runtime::Method& method, size_t operator_index) {
  const auto& op = *method.plan().operators()->Get(static_cast<uint32_t>(operator_index));
  const bool overloaded = op.overload() != nullptr && op.overload()->size() > 0;
  return op.name()->str() + (overloaded ? "." + op.overload()->str() : "");
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // Stepping is "experimental".
runtime::Result<MethodWork> count_work(runtime::Method& method, const Recorder* survey) {
  MethodWork all;
  size_t n_seen = 0;
  StaticViews views(method);
  for (size_t step = 0;; ++step) {
    ET_CHECK_OR_RETURN_ERROR(
        step < kMostSteps, InvalidProgram,
        "profile: more than %zu instructions ran, too many to count their work", kMostSteps);
    const auto place = method.next_place();
    const auto chains = method.instructions();
    const Instruction* const instruction =
        place.chain < chains.size() && place.instruction < chains[place.chain].size()
            ? &chains[place.chain][place.instruction]
            : nullptr;
    const Error error = method.step();
    if (error == Error::EndOfMethod) break;
    if (error != Error::Ok) return error;
    if (instruction == nullptr) continue;
    InstructionWork& entry =
        all[{static_cast<uint32_t>(place.chain), static_cast<uint32_t>(place.instruction)}];
    ++entry.calls;
    if (instruction->kind == Instruction::Kind::Kernel) {
      Work work = work_of_call(operator_name(method, instruction->target), instruction->args,
                               method.values());
      views.resolve(work);
      add_to(entry.work, work);
    } else if (instruction->kind == Instruction::Kind::Delegate) {
      add_to(entry.work, work_of_delegate(instruction->args, method.values()));
      for (; survey != nullptr && n_seen < survey->run().nodes.size(); ++n_seen) {
        add_node(entry, survey->run().nodes[n_seen]);
      }
    } else {
      entry.work.family = Family::View;
    }
  }
  ET_CHECK_OK_OR_RETURN_ERROR(method.reset_execution());
  return all;
}
#pragma GCC diagnostic pop

}  // namespace executorch::devtools
