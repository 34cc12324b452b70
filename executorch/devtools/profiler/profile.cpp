#include <executorch/devtools/profiler/profile.h>
#include <executorch/runtime/platform/clock.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <map>
#include <optional>

namespace executorch::devtools {
namespace {

using runtime::Instruction;
using runtime::InstructionOrigin;
using Place = std::pair<uint32_t, uint32_t>;

double to_seconds(et_timestamp_t ticks) {
  return static_cast<double>(runtime::ticks_to_ns(ticks)) * 1e-9;
}

double duration(const Run& run) {
  return to_seconds(run.end - run.start);
}

std::string place_text(const InstructionOrigin& origin) {
  return origin.file[0] == '\0' ? "" : std::string(origin.file) + ":" + std::to_string(origin.line);
}

/// Joins times with what the method and the program say of the instructions.
class Joiner {
 public:
  explicit Joiner(const ProfileSource& source) : source_(source), method_(*source.method) {
    if (source.program == nullptr) return;
    const auto identity = source.program->debug_identity();
    if (identity.ok()) identity_ = *identity;
  }

  void describe(ProfiledInstruction& row) const {
    const Instruction& instruction = method_.instructions()[row.chain][row.instruction];
    InstructionOrigin origin;
    find_origin(row.chain, row.instruction, origin);
    switch (instruction.kind) {
      case Instruction::Kind::Kernel:
        row.op = operator_name(method_, instruction.target);
        break;
      case Instruction::Kind::Delegate:
        row.op = method_.plan().delegates()->Get(instruction.target)->id()->str();
        row.family = Family::Delegate;
        break;
      default:
        row.op = instruction.kind == Instruction::Kind::Move        ? "move"
                 : instruction.kind == Instruction::Kind::JumpFalse ? "jump_false"
                                                                    : "free";
        row.family = Family::View;
    }
    runtime::Rewritten rewritten;
    if (source_.describe_rewritten != nullptr &&
        source_.describe_rewritten(instruction, rewritten)) {
      describe_rewritten(row, instruction, rewritten, origin);
    } else if (const InstructionWork* work = work_at({row.chain, row.instruction})) {
      take_work(row, work->work);
    }
    row.module = origin.module_path;
    row.place = place_text(origin);
  }

  void describe(const ProfiledInstruction& row, ProfiledNode& node) const {
    const int32_t id = node.id;
    InstructionOrigin origin;
    const char* const method = method_.plan().name()->c_str();
    if (identity_.has_value() && (id >= 0 ? identity_->delegated(method, row.chain, row.instruction,
                                                                 static_cast<uint32_t>(id), origin)
                                          : identity_->delegated(method, row.chain, row.instruction,
                                                                 node.op.c_str(), origin))) {
      node.operators = origin.op;
      node.module = origin.module_path;
      node.place = place_text(origin);
    }
    const InstructionWork* const call = work_at({row.chain, row.instruction});
    if (call != nullptr) {
      const auto found = call->nodes.find({id >= 0 ? "" : node.op, id});
      if (found != call->nodes.end()) {
        node.family = found->second.family;
        node.flop = found->second.flop;
        node.int8 = found->second.int8;
        node.bytes = found->second.bytes;
        node.shapes = found->second.shapes;
      }
    }
    if (id >= 0) node.op = node.operators.empty() ? "#" + std::to_string(id) : node.operators;
  }

 private:
  void find_origin(size_t chain, size_t instruction, InstructionOrigin& out) const {
    if (!identity_.has_value()) return;
    (void)identity_->instruction(method_.plan().name()->c_str(), chain, instruction, out);
  }

  const InstructionWork* work_at(Place place) const {
    if (source_.work == nullptr) return nullptr;
    const auto found = source_.work->find(place);
    return found == source_.work->end() ? nullptr : &found->second;
  }

  static void take_work(ProfiledInstruction& row, const Work& work) {
    row.family = work.family;
    row.shapes = work.shapes;
    row.flop = work.flop;
    row.bytes = work.bytes();
  }

  // Describes a fused instruction. Its origin is that of the original instruction with the most
  // operations.
  void describe_rewritten(ProfiledInstruction& row, const Instruction& instruction,
                          const runtime::Rewritten& rewritten, InstructionOrigin& origin) const {
    row.op = rewritten.name;
    row.original_numbers.assign(rewritten.originals.begin(), rewritten.originals.end());
    std::vector<const Work*> parts;
    double heaviest = -1;
    for (const uint32_t number : rewritten.originals) {
      const Instruction& original = method_.instructions()[row.chain][number];
      row.originals.push_back(operator_name(method_, original.target));
      if (const InstructionWork* work = work_at({row.chain, number})) {
        parts.push_back(&work->work);
        if (work->work.flop > heaviest) {
          heaviest = work->work.flop;
          find_origin(row.chain, number, origin);
        }
      }
    }
    if (!parts.empty()) {
      const runtime::EValue* const out = instruction.args[instruction.args.size() - 1];
      take_work(row, combine(parts, static_cast<int32_t>(out - method_.values().data())));
      // A fused attention contains matrix products, but is not counted as one.
      if (row.op.starts_with("attention")) row.family = Family::Attention;
      // How many rows were computed depends on the inputs.
      if (row.op.ends_with("+selected_rows")) row.flop = row.bytes = 0;
    }
  }

  const ProfileSource& source_;
  const runtime::Method& method_;
  std::optional<runtime::DebugIdentity> identity_;
};

ProfiledNode& find_node(ProfiledInstruction& row,
                        std::map<std::pair<std::string, int32_t>, size_t>& known,
                        const Run::Node& node, const Joiner& joiner) {
  const auto [found, is_new] = known.try_emplace({node.name, node.id}, row.nodes.size());
  if (is_new) {
    row.nodes.emplace_back();
    row.nodes.back().chain = row.chain;
    row.nodes.back().instruction = row.instruction;
    row.nodes.back().op = node.name;
    row.nodes.back().id = node.id;
    joiner.describe(row, row.nodes.back());
  }
  return row.nodes[found->second];
}

void sum_up(ProfiledInstruction& row) {
  ProfiledNode rest;
  rest.chain = row.chain;
  rest.instruction = row.instruction;
  rest.op = row.op + ", between operations";
  rest.module = row.module;
  rest.seconds = row.seconds;
  row.flop = row.bytes = 0;
  for (const ProfiledNode& node : row.nodes) {
    row.flop += node.flop;
    row.bytes += node.bytes;
    rest.seconds -= node.seconds;
  }
  // If operations ran in parallel, their times may add up to more than the call's.
  rest.seconds = std::max(rest.seconds, 0.0);
  row.nodes.push_back(std::move(rest));
}

}  // namespace

double arithmetic_seconds(const Roofline& roofline, const ProfiledWork& work) {
  const double rate = work.int8 && roofline.int8 > 0 ? roofline.int8 : roofline.flops;
  return rate > 0 ? work.flop / rate : 0;
}

double least_seconds(const Roofline& roofline, const ProfiledWork& work) {
  const double reads = roofline.bytes_per_second > 0 ? work.bytes / roofline.bytes_per_second : 0;
  return std::max(arithmetic_seconds(roofline, work), reads);
}

double Profile::coverage() const {
  double sum = 0;
  for (const auto& row : instructions) sum += row.seconds;
  return seconds > 0 ? sum / seconds : 0;
}

Profile make_profile(const ProfileSource& source, const std::vector<Run>& runs) {
  Profile profile;
  profile.program = source.path;
  profile.method = source.method->plan().name()->str();
  profile.roofline = source.roofline;
  profile.n_runs = runs.size();
  if (runs.empty()) return profile;

  std::vector<const Run*> sorted;
  for (const Run& run : runs) {
    sorted.push_back(&run);
    profile.n_lost += run.n_lost;
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Run* a, const Run* b) { return duration(*a) < duration(*b); });
  profile.least = duration(*sorted.front());
  profile.most = duration(*sorted.back());
  profile.median = duration(*sorted[sorted.size() / 2]);
  profile.trace = *sorted[sorted.size() / 2];

  const size_t cut = runs.size() / 4;
  const double weight = 1.0 / static_cast<double>(runs.size() - 2 * cut);
  const Joiner joiner(source);
  std::map<Place, ProfiledInstruction> rows;
  std::map<Place, std::map<std::pair<std::string, int32_t>, size_t>> known;
  for (size_t r = cut; r < runs.size() - cut; ++r) {
    const Run& run = *sorted[r];
    profile.seconds += weight * duration(run);
    for (size_t s = 0; s < run.steps.size(); ++s) {
      const Run::Step& step = run.steps[s];
      auto& row = rows[{step.chain, step.instruction}];
      const et_timestamp_t end = s + 1 < run.steps.size() ? run.steps[s + 1].start : run.end;
      row.calls += weight;
      row.seconds += weight * to_seconds(end - step.start);
      if (row.op.empty()) {
        row.chain = step.chain;
        row.instruction = step.instruction;
        joiner.describe(row);
      }
    }
    for (const Run::Node& node : run.nodes) {
      const Run::Step& step = run.steps[node.step];
      const Place place{step.chain, step.instruction};
      ProfiledNode& found = find_node(rows[place], known[place], node, joiner);
      found.calls += weight;
      found.seconds += weight * to_seconds(node.end - node.start);
    }
  }
  for (auto& [place, row] : rows) {
    if (!row.nodes.empty()) sum_up(row);
    profile.instructions.push_back(std::move(row));
  }
  return profile;
}

}  // namespace executorch::devtools
