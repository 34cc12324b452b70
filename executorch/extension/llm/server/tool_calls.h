/// The calls of functions in what a model writes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm::server {

struct ToolCall {
  std::string id;  // nine letters and digits: some templates refuse others
  std::string name;
  std::string arguments;  // the JSON of an object
};

/// Finds calls in a text that arrives piece by piece. Models write them in one of these ways, in
/// which a call is {"name": ..., "arguments": {...}}, or has "parameters" instead:
///
///   <tool_call>CALL</tool_call>    any number of them, and text around them
///   [TOOL_CALLS][CALL, ...]        the whole text; decoding drops the mark where it is a special
///   <|python_tag|>CALL             token, so a text without it counts if it calls a given function
///
/// What is not of such a form is text.
class ToolCallReader {
 public:
  /// `tools` is the JSON of the functions that may be called, as ApiRequest::tools.
  explicit ToolCallReader(const std::string& tools);

  /// Takes the next piece. Returns the text that is certainly in no call.
  std::string add(std::string_view piece);
  /// To be called at the end. Returns the text that is left.
  std::string finish();
  /// The calls that were found since the last time.
  std::vector<ToolCall> take_calls();
  /// How many calls were found so far.
  size_t count() const { return count_; }

 private:
  std::string read_marked();
  bool read_whole(std::string_view text);
  bool add_call(std::string_view json, bool must_be_known);

  std::unordered_set<std::string> names_;
  std::string waiting_;  // what may belong to a call
  bool begun_ = false;   // whether text or a call has come before
  std::vector<ToolCall> calls_;
  size_t count_ = 0;
};

}  // namespace executorch::extension::llm::server
