#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/memory/svg.h>
#include <executorch/devtools/report/page.h>
#include <executorch/devtools/report/report.h>

#include <algorithm>
#include <set>

namespace executorch::devtools {
namespace {

// Rows of tables that hold less than this share of the time are left out, but for instructions.
constexpr double kLeastShare = 0.0005;

/// A table cell: what it shows, and what it is sorted by.
std::string number_cell(const std::string& text, double value) {
  char sortable[32];
  std::snprintf(sortable, sizeof(sortable), "%.6g", value);
  return std::string("<td data-v='") + sortable + "'>" + escaped(text) + "</td>";
}

std::string text_cell(const std::string& text, const std::string& style = "") {
  return "<td class='l " + style + "' title=\"" + escaped(text) + "\">" + escaped(text) + "</td>";
}

std::string bar_cell(double share, const std::string& colour) {
  return "<td class='bar'><i style='width:" + pixels(100 * std::clamp(share, 0.0, 1.0)) +
         "%;background:var(--" + colour + ")'></i></td>";
}

std::string head_row(const std::vector<std::string>& heads) {
  std::string out = "<thead><tr>";
  for (const std::string& head : heads) {
    const bool left = head[0] == '<';
    out += std::string("<th") + (left ? " class='l'>" : ">") +
           escaped(left ? head.substr(1) : head) + "</th>";
  }
  return out + "</tr></thead>";
}

std::string measures(const Profile& profile, double seconds, double bytes, double flop,
                     double bound) {
  const double rate = seconds > 0 ? 1e-9 / seconds : 0;
  return number_cell(format_seconds(seconds), seconds) +
         number_cell(format_percent(seconds / profile.seconds), seconds) +
         number_cell(format_number(bytes / 1e6), bytes) +
         number_cell(format_number(flop / 1e9), flop) +
         number_cell(format_number(bytes * rate), bytes * rate) +
         number_cell(format_number(flop * rate), flop * rate) +
         number_cell(bound > 0 && seconds > 0 ? format_percent(bound / seconds) : "-",
                     seconds > 0 ? bound / seconds : 0);
}

class Page {
 public:
  Page(const Profile& profile, const Json& method, const MemoryPlan& memory)
      : profile_(profile), method_(method), memory_(memory) {}

  std::string html() {
    const std::string& path = profile_.program;
    const std::string title = path.substr(path.rfind('/') + 1) + ", " + profile_.method;
    // One after the other: each adds a link.
    std::string sections = losses();
    sections += operators();
    sections += modules();
    sections += roofline();
    sections += graph();
    sections += memory();
    sections += instructions();
    const std::string body = head(title) + "<nav>" + links_ + "</nav>\n" + cards() + sections;
    return "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
           "<meta name='viewport' content='width=device-width,initial-scale=1'>\n<title>" +
           escaped(title) + "</title>\n<style>" + svg_style() + kPageStyle +
           "</style>\n</head>\n<body>\n<main>\n" + body + "</main>\n<script>" + kPageScript +
           "</script>\n</body>\n</html>\n";
  }

 private:
  std::string section(const std::string& id, const std::string& title, const std::string& note,
                      const std::string& content) {
    if (content.empty()) return "";
    links_ += "<a href='#" + id + "'>" + title + "</a>";
    return "<section id='" + id + "'>\n<h2>" + title + "</h2>\n<p class='note'>" + escaped(note) +
           "</p>\n" + content + "</section>\n";
  }

  std::string head(const std::string& title) const {
    return "<header><div><h1>" + escaped(title) + "</h1><p class='note'>" +
           std::to_string(profile_.n_runs) + " runs after " + std::to_string(profile_.n_warm_up) +
           " to warm up on " + std::to_string(profile_.roofline.threads) +
           " threads; times are means over the middle half. Instructions account for " +
           format_percent(profile_.coverage()) +
           " of the method's wall time.</p></div><button id='theme'>light / "
           "dark</button></header>\n";
  }

  std::string cards() const {
    double flop = 0, delegated = 0;
    for (const auto& row : profile_.instructions) {
      flop += row.flop;
      if (row.family == Family::Delegate) delegated += row.seconds;
    }
    uint64_t planned = 0, peak = 0;
    for (const MemoryArena& arena : memory_.arenas) {
      planned += arena.bytes;
      peak += arena.peak_bytes;
    }
    std::string out = "<div class='cards'>";
    const auto card = [&](const std::string& value, const std::string& what) {
      out +=
          "<div class='card'><b>" + escaped(value) + "</b><span>" + escaped(what) + "</span></div>";
    };
    card(format_seconds(profile_.seconds), "a run; fastest " + format_seconds(profile_.least) +
                                               ", slowest " + format_seconds(profile_.most));
    card(format_number(flop / 1e9 / profile_.seconds),
         "GFLOP/s, " + format_number(flop / 1e9) + " GFLOP a run");
    card(format_number(profile_.roofline.flops / 1e9),
         "GFLOP/s this machine can do; it reads " +
             format_number(profile_.roofline.bytes_per_second / 1e9) + " GB/s");
    card(format_bytes(static_cast<double>(planned)),
         "planned memory; at most " + format_bytes(static_cast<double>(peak)) + " in use");
    card(std::to_string(profile_.instructions.size()),
         "instructions run; delegates take " + format_percent(delegated / profile_.seconds));
    return out + "</div>\n";
  }

  std::string losses() {
    std::string list;
    for (const ProfileGroup& group : largest_losses(profile_, 3)) {
      const ProfiledWork& row = *group.example;
      list += "<li><b>" + format_seconds(group.seconds - group.bound) + "</b> of " +
              format_seconds(group.seconds) + " in <code>" + escaped(group.name) + "</code>";
      if (group.bound > 0) {
        list += std::string("; ") + (group.compute_bound ? "arithmetic" : "memory") + " allows " +
                format_seconds(group.bound);
      }
      if (!row.place.empty() || !row.module.empty()) {
        list += "<br><span class='dim'>longest in " +
                escaped(row.module.empty() ? "the model" : row.module) +
                (row.place.empty() ? "" : ", " + escaped(row.place)) + "</span>";
      }
      list += "</li>\n";
    }
    return section("losses", "Largest losses", "Time above what the roofline allows.",
                   list.empty() ? "" : "<ol class='losses'>\n" + list + "</ol>\n");
  }

  std::string groups(const std::vector<ProfileGroup>& groups, const std::string& first) const {
    std::string rows;
    for (const ProfileGroup& group : groups) {
      if (group.seconds < kLeastShare * profile_.seconds) continue;
      const bool inner = group.depth > 0 && first == "<operator";
      const std::string colour =
          group.example == nullptr || inner ? "soft" : to_string(group.example->family);
      rows += "<tr><td class='l" + std::string(inner ? " dim" : "") +
              "' style='padding-left:" + std::to_string(10 + 18 * group.depth) + "px'>" +
              escaped(group.name) + "</td>" +
              bar_cell(group.seconds / profile_.seconds, first == "<operator" ? colour : "accent") +
              number_cell(group.calls > 0 ? pixels(group.calls) : "", group.calls) +
              measures(profile_, group.seconds, group.bytes, group.flop, group.bound) + "</tr>\n";
    }
    return rows.empty() ? ""
                        : "<div class='scroll tall'><table>" +
                              head_row({first, "<", "calls", "time", "share", "MB", "GFLOP", "GB/s",
                                        "GFLOP/s", "of roofline"}) +
                              "<tbody>\n" + rows + "</tbody></table></div>\n";
  }

  std::string operators() {
    return section("operators", "Time by operator",
                   "What several instructions were fused into is one operator, as its name says. "
                   "Below a delegate, what it reports.",
                   groups(by_operator(profile_), "<operator"));
  }

  std::string modules() {
    return section("modules", "Time by module", "Each with what is inside it.",
                   groups(by_module(profile_), "<module"));
  }

  std::string chips() const {
    std::set<Family> families;
    for (const auto& row : profile_.instructions) {
      families.insert(row.family);
      for (const auto& node : row.nodes) families.insert(node.family);
    }
    std::string out = "<div class='chips'>";
    for (const Family family : families) {
      if (family == Family::View) continue;
      const std::string name = to_string(family);
      out += "<span><i style='background:var(--" + name + ")'></i>" + name + "</span>";
    }
    return out + "</div>\n";
  }

  std::string roofline() {
    const std::string svg = roofline_svg(profile_);
    return section("roofline", "Roofline",
                   "Each dot is an operator with its shapes, as large as its time. Dots above the "
                   "line read from caches.",
                   svg.empty() ? "" : "<figure>" + svg + "</figure>\n" + chips());
  }

  std::string graph() {
    const std::string svg = graph_svg(profile_, method_);
    return section(
        "graph", "Graph", "What ran, each with its share of the time. Dashed: delegated.",
        svg.empty() ? "" : "<div class='scroll tall graph'>" + svg + "</div>\n" + chips());
  }

  std::string memory() {
    std::string content;
    for (const MemoryArena& arena : memory_.arenas) {
      if (arena.tensors.empty()) continue;
      content += "<figure>" + to_svg(memory_, arena, true) + "</figure>\n";
      content += "<div class='scroll'><table>" +
                 head_row({"<planned anew", "<", "bytes", "saved"}) + "<tbody>\n<tr>" +
                 text_cell("with all tensors") + text_cell("") +
                 number_cell(format_bytes(static_cast<double>(arena.replanned)), 0) +
                 number_cell("", 0) + "</tr>\n";
      for (const auto& [index, bytes] : arena.without) {
        const PlannedTensor& tensor = arena.tensors[index];
        const double saved =
            static_cast<double>(arena.replanned - std::min(bytes, arena.replanned));
        content += "<tr>" +
                   text_cell("without %" + std::to_string(tensor.value) + " " + tensor.name + ", " +
                             format_bytes(static_cast<double>(tensor.bytes))) +
                   text_cell(tensor.module, "dim") +
                   number_cell(format_bytes(static_cast<double>(bytes)), 0) +
                   number_cell(saved > 0 ? format_bytes(saved) : "-", saved) + "</tr>\n";
      }
      content += "</tbody></table></div>\n";
    }
    return section("memory", "Memory plan",
                   "Each box is a tensor, from the first instruction that mentions it to the last. "
                   "Those in use at the peak are darker. Sizes are upper bounds.",
                   content);
  }

  std::string instructions() {
    std::string rows;
    for (const ProfiledInstruction& row : profile_.instructions) {
      const double bound = least_seconds(profile_, row);
      rows += "<tr>" + number_cell(std::to_string(row.instruction), row.instruction) +
              text_cell(row.op) + number_cell(pixels(row.calls), row.calls) +
              measures(profile_, row.seconds, row.bytes, row.flop, bound) +
              text_cell(row.module, "dim") + text_cell(row.place, "dim") +
              text_cell(row.shapes, "dim") + "</tr>\n";
    }
    const std::string table =
        rows.empty()
            ? ""
            : "<p><input id='filter' placeholder='filter' aria-label='filter'></p>\n"
              "<div class='scroll tall'><table class='sortable' id='instructions'>" +
                  head_row({"#", "<operator", "calls", "time", "share", "MB", "GFLOP", "GB/s",
                            "GFLOP/s", "of roofline", "<module", "<Python", "<shapes"}) +
                  "<tbody>\n" + rows + "</tbody></table></div>\n";
    return section("all", "Instructions", "A click on a column's head sorts by it.", table);
  }

  const Profile& profile_;
  const Json& method_;
  const MemoryPlan& memory_;
  std::string links_;
};

}  // namespace

std::string report_html(const Profile& profile, const Json& method, const MemoryPlan& memory) {
  return Page(profile, method, memory).html();
}

}  // namespace executorch::devtools
