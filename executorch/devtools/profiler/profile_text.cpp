#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/profiler/profile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace executorch::devtools {
namespace {

bool has_int8_products(const Profile& profile) {
  return profile.roofline.int8 > 0 &&
         std::any_of(profile.instructions.begin(), profile.instructions.end(), [](const auto& row) {
           return std::any_of(row.nodes.begin(), row.nodes.end(),
                              [](const ProfiledNode& node) { return node.int8; });
         });
}

constexpr size_t kNameWidth = 44;
constexpr size_t kModuleDepth = 4;
// Modules below this share of the time are left out of the text.
constexpr double kLeastShare = 0.005;

std::string share_of_limit(double bound, double seconds) {
  return bound > 0 && seconds > 0 ? format_percent(bound / seconds) : "-";
}

std::string count(double n) {
  char text[32];
  const bool is_whole = std::fabs(n - std::round(n)) < 1e-6;
  std::snprintf(text, sizeof(text), is_whole ? "%.0f" : "%.1f", n);
  return text;
}

std::vector<std::string> heads(const std::string& first) {
  return {first, "calls", "time", "share", "MB", "GFLOP", "GB/s", "GFLOP/s", "of roofline"};
}

std::vector<std::string> cells(const Profile& profile, const ProfileGroup& group,
                               const std::string& name) {
  const bool known = group.seconds > 0;
  return {shorten(name, kNameWidth),
          group.calls > 0 ? count(group.calls) : "",
          format_seconds(group.seconds),
          format_percent(group.seconds / profile.seconds),
          format_number(group.bytes / 1e6),
          format_number(group.flop / 1e9),
          format_number(known ? group.bytes / 1e9 / group.seconds : 0),
          format_number(known ? group.flop / 1e9 / group.seconds : 0),
          share_of_limit(group.bound, group.seconds)};
}

std::string summary(const Profile& profile) {
  char threads[32];
  std::snprintf(threads, sizeof(threads), "%zu thread%s", profile.roofline.threads,
                profile.roofline.threads == 1 ? "" : "s");
  std::string out = profile.program + ", method " + profile.method + ": " +
                    std::to_string(profile.n_runs) + " runs after " +
                    std::to_string(profile.n_warm_up) + " to warm up, " + threads + "\n";
  out += "  " + format_seconds(profile.seconds) + " a run, the middle half's mean (fastest " +
         format_seconds(profile.least) + ", median " + format_seconds(profile.median) +
         ", slowest " + format_seconds(profile.most) + ")\n";
  out += "  instructions account for " + format_percent(profile.coverage()) +
         " of the method's wall time\n";
  if (profile.untraced > 0) {
    out += "  profiling costs " + format_percent(profile.traced / profile.untraced - 1) +
           ": median " + format_seconds(profile.traced) + ", in turns with " +
           format_seconds(profile.untraced) + " without a tracer\n";
  }
  if (profile.roofline.flops > 0) {
    out += "  this machine, just measured: reads " +
           format_number(profile.roofline.bytes_per_second / 1e9) + " GB/s, multiplies and adds " +
           format_number(profile.roofline.flops / 1e9) + " GFLOP/s";
    if (has_int8_products(profile)) {
      out += ", of bytes " + format_number(profile.roofline.int8 / 1e9);
    }
    out += "\n";
    const auto rows = by_operator(profile);
    if (std::any_of(rows.begin(), rows.end(),
                    [](const ProfileGroup& row) { return row.bound > row.seconds; })) {
      out +=
          "  above 100 % of that: read from caches, multiplied by matrix registers (AMX), or the "
          "machine was busy when it was measured\n";
    }
  }
  if (profile.n_lost > 0) {
    out += "  " + std::to_string(profile.n_lost) + " events are missing: more than expected\n";
  }
  return out + "\n";
}

std::string operators_text(const Profile& profile) {
  Table table(heads("by operator"));
  for (const ProfileGroup& group : by_operator(profile)) {
    table.add(
        cells(profile, group, std::string(2 * static_cast<size_t>(group.depth), ' ') + group.name));
  }
  ProfileGroup rest{.name = "(before the first instruction)"};
  rest.seconds = profile.seconds * (1 - profile.coverage());
  table.add(cells(profile, rest, rest.name));
  return table.text() + "\n";
}

// What the instructions of each operator stand for, once.
std::string fused_text(const Profile& profile) {
  std::vector<std::string> seen;
  std::string out;
  for (const auto& row : profile.instructions) {
    std::string line = "  " + row.op + " =";
    for (const std::string& original : row.originals) line += " " + original;
    if (row.originals.empty() || std::find(seen.begin(), seen.end(), row.op) != seen.end()) {
      continue;
    }
    seen.push_back(row.op);
    out += line + "\n";
  }
  return out.empty() ? "" : "run as one\n" + out + "\n";
}

std::string modules_text(const Profile& profile) {
  const auto modules = by_module(profile);
  if (modules.empty()) return "";
  Table table(heads("by module"));
  for (const ProfileGroup& group : modules) {
    const auto depth = static_cast<size_t>(group.depth);
    if (depth > kModuleDepth || group.seconds < kLeastShare * profile.seconds) continue;
    table.add(cells(profile, group, std::string(2 * depth, ' ') + group.name));
  }
  return table.text() + "\n";
}

std::string losses_text(const Profile& profile) {
  if (profile.roofline.flops == 0) return "";
  std::string out = "largest losses: time above what the roofline allows\n";
  size_t number = 0;
  for (const ProfileGroup& group : largest_losses(profile, 3)) {
    const ProfiledWork& row = *group.example;
    out += "  " + std::to_string(++number) + ". " + format_seconds(group.seconds - group.bound) +
           " of " + format_seconds(group.seconds) + ": " + shorten(group.name, 100);
    if (group.calls > 0) {
      const std::string calls = count(group.calls);
      out += ", " + calls + (calls == "1" ? " call" : " calls");
    }
    if (group.bound > 0) {
      out += std::string(", ") + (group.compute_bound ? "arithmetic" : "memory") + " allows " +
             format_seconds(group.bound);
    }
    out += "\n";
    if (!row.module.empty() || !row.place.empty()) {
      out += "     longest in " + (row.module.empty() ? "the model" : row.module) +
             (row.place.empty() ? "" : ", " + row.place) + "\n";
    }
  }
  return out;
}

std::string instructions_text(const Profile& profile) {
  auto columns = heads("instruction");
  columns.push_back("<module");
  columns.push_back("<shapes");
  Table table(columns);
  for (const auto& row : profile.instructions) {
    ProfileGroup group{
        .calls = row.calls, .seconds = row.seconds, .bytes = row.bytes, .flop = row.flop};
    group.bound = least_seconds(profile, row);
    auto line = cells(profile, group, std::to_string(row.instruction) + " " + row.op);
    line.push_back(row.module + (row.place.empty() ? "" : " " + row.place));
    line.push_back(shorten(row.shapes, 120));
    table.add(line);
    for (const auto& node : row.nodes) {
      ProfileGroup inner{
          .calls = node.calls, .seconds = node.seconds, .bytes = node.bytes, .flop = node.flop};
      inner.bound = least_seconds(profile.roofline, node);
      auto cell = cells(profile, inner, "    " + node.op);
      cell.push_back(node.module + (node.place.empty() ? "" : " " + node.place));
      cell.push_back(shorten(node.operators + " " + node.shapes, 120));
      table.add(cell);
    }
  }
  return table.text() + "\n";
}

}  // namespace

std::string to_text(const Profile& profile, bool every_instruction) {
  return summary(profile) + (every_instruction ? instructions_text(profile) : "") +
         operators_text(profile) + fused_text(profile) + modules_text(profile) +
         losses_text(profile);
}

}  // namespace executorch::devtools
