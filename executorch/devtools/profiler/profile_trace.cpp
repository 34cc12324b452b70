#include <executorch/devtools/profiler/profile_json.h>
#include <executorch/runtime/platform/clock.h>

#include <algorithm>
#include <map>

namespace executorch::devtools {
namespace {

struct Slice {
  et_timestamp_t start;
  et_timestamp_t end;
  std::string name;
  const char* category;
  /// Shown by the viewer when the slice is selected.
  Json details;
};

/// Puts each slice on the first track where it overlaps no other slice partly: viewers drop a slice
/// that overlaps the end of another one on its track.
class Tracks {
 public:
  size_t place(const Slice& slice) {
    for (size_t track = 0; track < open_.size(); ++track) {
      auto& ends = open_[track];
      while (!ends.empty() && ends.back() <= slice.start) ends.pop_back();
      if (ends.empty() || ends.back() >= slice.end) {
        ends.push_back(slice.end);
        return track;
      }
    }
    open_.push_back({slice.end});
    return open_.size() - 1;
  }
  size_t size() const { return open_.size(); }

 private:
  /// For each track, the ends of the slices that are still open, the innermost last.
  std::vector<std::vector<et_timestamp_t>> open_;
};

class Tracer {
 public:
  explicit Tracer(const Profile& profile) : profile_(profile), run_(profile.trace) {
    for (const auto& row : profile.instructions) rows_[{row.chain, row.instruction}] = &row;
  }

  /// A slice for the method, then its instructions and delegates' operations; outer slices come
  /// before those inside of them.
  std::vector<Slice> slices() const {
    std::vector<Slice> out = {{run_.start, run_.end, profile_.method, "method", {}}};
    for (size_t s = 0; s < run_.steps.size(); ++s) {
      const ProfiledInstruction* const row = row_of(run_.steps[s]);
      if (row == nullptr) continue;
      const auto end = s + 1 < run_.steps.size() ? run_.steps[s + 1].start : run_.end;
      out.push_back({run_.steps[s].start, end, row->op, to_string(row->family), details(*row)});
    }
    for (const Run::Node& node : run_.nodes) {
      // A delegate that uses another clock gives times outside of the run: skip them.
      if (node.start < run_.start || node.end < node.start || node.end > run_.end) continue;
      out.push_back(slice_of(node));
    }
    std::stable_sort(out.begin(), out.end(), [](const Slice& a, const Slice& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    return out;
  }

  /// Microseconds since the run began, the unit of the format.
  Json event(const Slice& slice, size_t track) const {
    const double start = microseconds(slice.start);
    Json out = {{"name", slice.name},
                {"cat", slice.category},
                {"ph", "X"},
                {"ts", start},
                {"dur", microseconds(slice.end) - start},
                {"pid", 1},
                {"tid", track + 1}};
    if (!slice.details.empty()) out["args"] = slice.details;
    return out;
  }

 private:
  double microseconds(et_timestamp_t ticks) const {
    return static_cast<double>(runtime::ticks_to_ns(ticks - run_.start)) * 1e-3;
  }

  const ProfiledInstruction* row_of(const Run::Step& step) const {
    const auto found = rows_.find({step.chain, step.instruction});
    return found == rows_.end() ? nullptr : found->second;
  }

  template <typename Row>
  Json details(const Row& row) const {
    Json out = work_json(profile_, row);
    for (const char* key : {"operator", "family", "seconds"}) out.erase(key);
    return out;
  }

  Slice slice_of(const Run::Node& node) const {
    if (const ProfiledInstruction* const call = row_of(run_.steps[node.step])) {
      for (const ProfiledNode& known : call->nodes) {
        if (node.id >= 0 ? known.id == node.id : known.id < 0 && known.op == node.name) {
          return {node.start, node.end, known.op, to_string(known.family), details(known)};
        }
      }
    }
    const std::string name = node.id >= 0 ? "#" + std::to_string(node.id) : node.name;
    return {node.start, node.end, name, "delegate", {}};
  }

  const Profile& profile_;
  const Run& run_;
  std::map<std::pair<uint32_t, uint32_t>, const ProfiledInstruction*> rows_;
};

}  // namespace

Json to_trace(const Profile& profile) {
  Json events = Json::array();
  const auto name = [&](const char* what, size_t track, const std::string& text) {
    events.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", track}, {"args", {{"name", text}}}});
  };
  const Tracer tracer(profile);
  Tracks tracks;
  name("process_name", 1, profile.program);
  name("thread_name", 1, profile.method);
  for (const Slice& slice : tracer.slices()) {
    const size_t n_before = tracks.size();
    const size_t track = tracks.place(slice);
    if (n_before > 0 && track == n_before) {
      name("thread_name", track + 1, profile.method + ", at the same time");
    }
    events.push_back(tracer.event(slice, track));
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", events}};
}

}  // namespace executorch::devtools
