#include <executorch/devtools/profiler/profile_json.h>

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
  if (row.int8) out["int8"] = true;
  if (!row.shapes.empty()) out["shapes"] = row.shapes;
  if (!row.module.empty()) out["module"] = row.module;
  if (!row.place.empty()) out["place"] = row.place;
  return out;
}

}  // namespace

Json work_json(const Profile& profile, const ProfiledNode& row) {
  Json out = work_json(profile, row, least_seconds(profile.roofline, row));
  if (!row.operators.empty()) out["originals"] = row.operators;
  return out;
}

Json work_json(const Profile& profile, const ProfiledInstruction& row) {
  Json out = {{"chain", row.chain}, {"instruction", row.instruction}};
  out.update(work_json(profile, row, least_seconds(profile, row)));
  if (!row.originals.empty()) out["originals"] = row.originals;
  return out;
}

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
                {"int8_per_second", profile.roofline.int8},
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
    Json& instruction = out["instructions"].emplace_back(work_json(profile, row));
    for (const auto& node : row.nodes) instruction["nodes"].push_back(work_json(profile, node));
  }
  return out;
}

}  // namespace executorch::devtools
