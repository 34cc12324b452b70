#include <executorch/devtools/profiler/profile.h>

#include <algorithm>
#include <map>
#include <memory>

namespace executorch::devtools {
namespace {

// "Add #3" as "Add".
std::string without_number(const std::string& name) {
  const size_t hash = name.rfind(" #");
  return hash == name.npos || name.find_first_not_of("0123456789", hash + 2) != name.npos
             ? name
             : name.substr(0, hash);
}

void add_to(ProfileGroup& group, const Profile& profile, const ProfiledWork& row, double bound) {
  group.calls += row.calls;
  group.seconds += row.seconds;
  group.bytes += row.bytes;
  group.flop += row.flop;
  group.bound += bound;
  group.arithmetic += arithmetic_seconds(profile.roofline, row);
  if (group.example == nullptr || row.seconds > group.example->seconds) group.example = &row;
  group.compute_bound = group.arithmetic * profile.roofline.bytes_per_second > group.bytes;
}

/// Calls `f` for each instruction; for a delegate that reports operations, for each of these
/// instead.
template <typename F>
void for_each_part(const Profile& profile, const F& f) {
  for (const auto& row : profile.instructions) {
    if (row.nodes.empty()) f(row, least_seconds(profile, row));
    for (const auto& node : row.nodes) f(node, least_seconds(profile.roofline, node));
  }
}

bool is_longer(const ProfileGroup& a, const ProfileGroup& b) {
  return a.seconds > b.seconds;
}

/// Groups rows by a key. Groups are in the order in which their keys first appear.
class Groups {
 public:
  explicit Groups(const Profile& profile) : profile_(profile) {}
  void add(const std::string& key, const ProfiledWork& row, double bound) {
    const auto [found, is_new] = known_.try_emplace(key, groups_.size());
    if (is_new) groups_.push_back({.name = key});
    add_to(groups_[found->second], profile_, row, bound);
  }
  std::vector<ProfileGroup> take() { return std::move(groups_); }
  std::vector<ProfileGroup> take_longest_first() {
    std::stable_sort(groups_.begin(), groups_.end(), is_longer);
    return take();
  }

 private:
  const Profile& profile_;
  std::vector<ProfileGroup> groups_;
  std::map<std::string, size_t> known_;
};

std::vector<ProfileGroup> inside_delegate(const Profile& profile, const std::string& id) {
  Groups groups(profile);
  for (const auto& row : profile.instructions) {
    if (row.op != id || row.family != Family::Delegate) continue;
    for (const auto& node : row.nodes) {
      groups.add(without_number(node.op), node, least_seconds(profile.roofline, node));
    }
  }
  auto inside = groups.take_longest_first();
  for (ProfileGroup& group : inside) group.depth = 1;
  return inside;
}

}  // namespace

double least_seconds(const Profile& profile, const ProfiledInstruction& row) {
  // A delegate's bytes are only those of its arguments unless it reports more, so they are no lower
  // bound.
  if (row.family != Family::Delegate) return least_seconds(profile.roofline, row);
  double sum = 0;
  for (const auto& node : row.nodes) sum += least_seconds(profile.roofline, node);
  return sum;
}

std::vector<ProfileGroup> by_operator(const Profile& profile) {
  Groups groups(profile);
  for (const auto& row : profile.instructions) groups.add(row.op, row, least_seconds(profile, row));
  std::vector<ProfileGroup> all;
  for (ProfileGroup& group : groups.take_longest_first()) {
    all.push_back(group);
    if (group.example->family == Family::Delegate) {
      const auto inside = inside_delegate(profile, group.name);
      all.insert(all.end(), inside.begin(), inside.end());
    }
  }
  return all;
}

namespace {

// Modules at a greater depth are merged into their ancestor at this depth.
constexpr int kDeepest = 64;

struct ModuleNode {
  ProfileGroup group;
  std::vector<std::unique_ptr<ModuleNode>> children;
  std::map<std::string, size_t> known;

  ModuleNode& child(const std::string& name) {
    const auto [found, is_new] = known.try_emplace(name, children.size());
    if (is_new) {
      children.push_back(std::make_unique<ModuleNode>());
      children.back()->group.name = name;
      children.back()->group.depth = group.depth + 1;
    }
    return *children[found->second];
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
  for_each_part(profile, [&](const ProfiledWork& row, double bound) {
    ModuleNode* node = &root;
    add_to(node->group, profile, row, bound);
    for (size_t begin = 0; begin < row.module.size();) {
      const bool splits = node->group.depth + 1 < kDeepest;
      const size_t dot =
          splits ? std::min(row.module.find('.', begin), row.module.size()) : row.module.size();
      node = &node->child(row.module.substr(begin, dot - begin));
      add_to(node->group, profile, row, bound);
      begin = dot + 1;
      named = true;
    }
  });
  std::vector<ProfileGroup> out;
  if (named) flatten(root, out);
  return out;
}

std::vector<ProfileGroup> by_shapes(const Profile& profile) {
  Groups groups(profile);
  for_each_part(profile, [&](const ProfiledWork& row, double bound) {
    const std::string op = without_number(row.op);
    groups.add(row.shapes.empty() ? op : op + " " + row.shapes, row, bound);
  });
  return groups.take();
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
