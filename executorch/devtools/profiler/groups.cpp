#include <executorch/devtools/profiler/profile.h>

#include <algorithm>
#include <map>
#include <memory>

namespace executorch::devtools {
namespace {

// A delegate's bytes are those of its arguments: they bound nothing.
double least_seconds(const Profile& profile, const ProfiledInstruction& row) {
  return row.family == Family::Delegate ? 0 : profile.roofline.seconds(row.flop, row.bytes);
}

void add_to(ProfileGroup& group, const Profile& profile, const ProfiledInstruction& row) {
  const double bound = least_seconds(profile, row);
  group.calls += row.calls;
  group.seconds += row.seconds;
  group.bytes += row.bytes;
  group.flop += row.flop;
  group.bound += bound;
  if (group.example == nullptr || row.seconds > group.example->seconds) group.example = &row;
  group.compute_bound =
      profile.roofline.seconds(group.flop, 0) > profile.roofline.seconds(0, group.bytes);
}

bool is_longer(const ProfileGroup& a, const ProfileGroup& b) {
  return a.seconds > b.seconds;
}

/// Rows by a key, in the order in which the keys come first.
template <typename Key>
std::vector<ProfileGroup> group_by(const Profile& profile, const Key& key) {
  std::vector<ProfileGroup> groups;
  std::map<std::string, size_t> known;
  for (const auto& row : profile.instructions) {
    const auto [found, is_new] = known.try_emplace(key(row), groups.size());
    if (is_new) groups.push_back({.name = found->first});
    add_to(groups[found->second], profile, row);
  }
  return groups;
}

// "Add #3" as "Add".
std::string without_number(const std::string& name) {
  const size_t hash = name.rfind(" #");
  return hash == name.npos || name.find_first_not_of("0123456789", hash + 2) != name.npos
             ? name
             : name.substr(0, hash);
}

std::vector<ProfileGroup> inside_delegate(const Profile& profile, const std::string& id) {
  std::vector<ProfileGroup> groups;
  std::map<std::string, size_t> known;
  double total = 0, reported = 0;
  for (const auto& row : profile.instructions) {
    if (row.op != id || row.family != Family::Delegate) continue;
    total += row.seconds;
    for (const auto& node : row.nodes) {
      const auto [found, is_new] = known.try_emplace(without_number(node.name), groups.size());
      if (is_new) groups.push_back({.name = found->first, .example = &row, .depth = 1});
      groups[found->second].calls += row.calls;
      groups[found->second].seconds += node.seconds;
      reported += node.seconds;
    }
  }
  if (!groups.empty()) {
    groups.push_back({.name = "(between them)", .seconds = total - reported, .depth = 1});
  }
  std::stable_sort(groups.begin(), groups.end(), is_longer);
  return groups;
}

}  // namespace

std::vector<ProfileGroup> by_operator(const Profile& profile) {
  auto groups = group_by(profile, [](const auto& row) { return row.op; });
  std::stable_sort(groups.begin(), groups.end(), is_longer);
  std::vector<ProfileGroup> all;
  for (ProfileGroup& group : groups) {
    all.push_back(group);
    if (group.example->family == Family::Delegate) {
      const auto inside = inside_delegate(profile, group.name);
      all.insert(all.end(), inside.begin(), inside.end());
    }
  }
  return all;
}

namespace {

struct ModuleNode {
  ProfileGroup group;
  std::vector<std::unique_ptr<ModuleNode>> children;

  ModuleNode& child(const std::string& name) {
    for (auto& node : children) {
      if (node->group.name == name) return *node;
    }
    children.push_back(std::make_unique<ModuleNode>());
    children.back()->group.name = name;
    children.back()->group.depth = group.depth + 1;
    return *children.back();
  }
};

void flatten(const ModuleNode& node, std::vector<ProfileGroup>& out) {
  out.push_back(node.group);
  for (const auto& child : node.children) flatten(*child, out);
}

}  // namespace

std::vector<ProfileGroup> by_module(const Profile& profile) {
  ModuleNode root;
  root.group.name = "(model)";
  bool named = false;
  for (const auto& row : profile.instructions) {
    ModuleNode* node = &root;
    add_to(node->group, profile, row);
    for (size_t begin = 0; begin < row.module.size();) {
      const size_t dot = std::min(row.module.find('.', begin), row.module.size());
      node = &node->child(row.module.substr(begin, dot - begin));
      add_to(node->group, profile, row);
      begin = dot + 1;
      named = true;
    }
  }
  std::vector<ProfileGroup> out;
  if (named) flatten(root, out);
  return out;
}

std::vector<ProfileGroup> by_shapes(const Profile& profile) {
  return group_by(profile, [](const auto& row) { return row.op + " " + row.shapes; });
}

std::vector<ProfileGroup> largest_losses(const Profile& profile, size_t n) {
  auto groups = by_shapes(profile);
  const auto loss = [](const ProfileGroup& group) { return group.seconds - group.bound; };
  std::erase_if(groups, [&](const auto& group) { return loss(group) <= 0; });
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const auto& a, const auto& b) { return loss(a) > loss(b); });
  if (groups.size() > n) groups.resize(n);
  return groups;
}

}  // namespace executorch::devtools
