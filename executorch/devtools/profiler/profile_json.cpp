#include <executorch/devtools/profiler/profile.h>
#include <executorch/runtime/platform/clock.h>

#include <map>

namespace executorch::devtools {
namespace {

Json group_json(const Profile& profile, const ProfileGroup& group) {
  Json out = {{"name", group.name},
              {"calls", group.calls},
              {"seconds", group.seconds},
              {"share", profile.seconds > 0 ? group.seconds / profile.seconds : 0},
              {"bytes", group.bytes},
              {"flop", group.flop}};
  if (group.bound > 0) {
    out["roofline_seconds"] = group.bound;
    out["bound_by"] = group.compute_bound ? "arithmetic" : "memory";
  }
  if (group.depth > 0) out["depth"] = group.depth;
  return out;
}

Json work_json(const Profile& profile, const ProfiledWork& row, double bound) {
  Json out = {{"operator", row.op}, {"family", to_string(row.family)},
              {"calls", row.calls}, {"seconds", row.seconds},
              {"bytes", row.bytes}, {"flop", row.flop}};
  if (bound > 0 && profile.roofline.flops > 0) out["roofline_seconds"] = bound;
  if (!row.shapes.empty()) out["shapes"] = row.shapes;
  if (!row.module.empty()) out["module"] = row.module;
  if (!row.place.empty()) out["place"] = row.place;
  return out;
}

Json instruction_json(const Profile& profile, const ProfiledInstruction& row) {
  Json out = {{"chain", row.chain}, {"instruction", row.instruction}};
  out.update(work_json(profile, row, least_seconds(profile, row)));
  if (!row.originals.empty()) out["originals"] = row.originals;
  for (const auto& node : row.nodes) {
    Json inner = work_json(profile, node, profile.roofline.seconds(node.flop, node.bytes));
    if (!node.operators.empty()) inner["originals"] = node.operators;
    out["nodes"].push_back(inner);
  }
  return out;
}

Json event(const std::string& name, const char* category, double start, double end) {
  return {{"name", name},       {"cat", category}, {"ph", "X"}, {"ts", start},
          {"dur", end - start}, {"pid", 1},        {"tid", 1}};
}

}  // namespace

Json to_json(const Profile& profile) {
  Json out = {{"program", profile.program},
              {"method", profile.method},
              {"runs", profile.n_runs},
              {"warm_up", profile.n_warm_up},
              {"seconds", profile.seconds},
              {"least", profile.least},
              {"median", profile.median},
              {"most", profile.most},
              {"coverage", profile.coverage()},
              {"lost_events", profile.n_lost},
              {"machine",
               {{"threads", profile.roofline.threads},
                {"flop_per_second", profile.roofline.flops},
                {"bytes_per_second", profile.roofline.bytes_per_second}}}};
  if (profile.untraced > 0) {
    out["traced_median"] = profile.traced;
    out["untraced_median"] = profile.untraced;
  }
  for (const char* key : {"operators", "modules", "losses", "instructions"}) {
    out[key] = Json::array();
  }
  for (const auto& group : by_operator(profile)) {
    out["operators"].push_back(group_json(profile, group));
  }
  for (const auto& group : by_module(profile)) out["modules"].push_back(group_json(profile, group));
  for (const auto& group : largest_losses(profile, 3)) {
    Json loss = group_json(profile, group);
    loss["lost_seconds"] = group.seconds - group.bound;
    loss["instruction"] = group.example->instruction;
    if (!group.example->module.empty()) loss["module"] = group.example->module;
    if (!group.example->place.empty()) loss["place"] = group.example->place;
    out["losses"].push_back(loss);
  }
  for (const auto& row : profile.instructions) {
    out["instructions"].push_back(instruction_json(profile, row));
  }
  return out;
}

Json to_trace(const Profile& profile) {
  const Run& run = profile.trace;
  // Microseconds since the run began, the unit of the format.
  const auto time = [&](et_timestamp_t ticks) {
    return static_cast<double>(runtime::ticks_to_ns(ticks - run.start)) * 1e-3;
  };
  std::map<std::pair<uint32_t, uint32_t>, const ProfiledInstruction*> rows;
  for (const auto& row : profile.instructions) rows[{row.chain, row.instruction}] = &row;

  Json events = Json::array();
  const auto name = [&](const char* what, const std::string& text) {
    events.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", text}}}});
  };
  name("process_name", profile.program);
  name("thread_name", profile.method);
  events.push_back(event(profile.method, "method", 0, time(run.end)));
  for (size_t s = 0; s < run.steps.size(); ++s) {
    const auto found = rows.find({run.steps[s].chain, run.steps[s].instruction});
    if (found == rows.end()) continue;
    const ProfiledInstruction& row = *found->second;
    const auto end = s + 1 < run.steps.size() ? run.steps[s + 1].start : run.end;
    Json entry = event(row.op, to_string(row.family), time(run.steps[s].start), time(end));
    entry["args"] = instruction_json(profile, row);
    for (const char* key : {"operator", "family", "seconds", "nodes"}) entry["args"].erase(key);
    events.push_back(entry);
  }
  for (const Run::Node& node : run.nodes) {
    const std::string text = node.id >= 0 ? "#" + std::to_string(node.id) : node.name;
    events.push_back(event(text, "delegate", time(node.start), time(node.end)));
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", events}};
}

}  // namespace executorch::devtools
