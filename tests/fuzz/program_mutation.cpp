#include "program_mutation.h"

#include <executorch/schema/extended_header.h>

#include <algorithm>
#include <cstring>

#include "program_edit.h"

namespace executorch::fuzz {
namespace {

constexpr size_t kSegmentAlignment = 128;

// What an operator may be renamed to, by the number of its arguments.
class Names {
 public:
  void add(const fb::Program& program) {
    for (const auto* plan : *program.execution_plan()) {
      if (plan->chains() == nullptr || plan->operators() == nullptr) continue;
      for (const auto* chain : *plan->chains()) {
        for (const auto* instruction : *chain->instructions()) {
          if (const auto* call = instruction->instr_args_as_KernelCall()) {
            add(*plan->operators()->Get(static_cast<uint32_t>(call->op_index())),
                call->args()->size());
          }
        }
      }
    }
  }
  const std::vector<std::pair<std::string, std::string>>& of(size_t arguments) const {
    static const std::vector<std::pair<std::string, std::string>> none;
    return arguments < names_.size() ? names_[arguments] : none;
  }

 private:
  void add(const fb::Operator& op, size_t arguments) {
    names_.resize(std::max(names_.size(), arguments + 1));
    std::pair<std::string, std::string> name(op.name()->str(),
                                             op.overload() ? op.overload()->str() : "");
    auto& list = names_[arguments];
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  }
  std::vector<std::vector<std::pair<std::string, std::string>>> names_;
};

Names& names() {
  static Names all;
  return all;
}

size_t arguments_of_any(const fb::ExecutionPlanT& plan) {
  for (const auto& chain : plan.chains) {
    for (const auto& instruction : chain->instructions) {
      if (const auto* call = instruction->instr_args.AsKernelCall()) return call->args.size();
    }
  }
  return 0;
}

void change_once(Edit& edit, const fb::ExecutionPlanT& plan, Random& random) {
  const uint64_t choice = random.below(100);
  if (choice < 36) return edit.couple_numbers();
  if (choice < 50) return edit.replace_value();
  if (choice < 56) return edit.change_shape();
  if (choice < 62) return edit.change_doubles();
  if (choice < 68) return edit.change_types();
  if (choice < 72) return edit.change_layout();
  if (choice < 73) return edit.move_memory();
  if (choice < 76) return edit.overlap_memory();
  if (choice < 79) return edit.change_list_lengths();
  if (choice < 85) return edit.rewire_arguments();
  if (choice < 88) return edit.rewire_lists();
  if (choice < 91) return edit.replace_argument();
  if (choice < 92) return edit.rename_operator(names().of(arguments_of_any(plan)));
  if (choice < 95) return edit.add_instruction();
  if (choice < 97) return edit.shuffle_instructions();
  if (choice < 99) return edit.change_interface();
  edit.change_delegate();
}

// A word of the segments becomes an extreme value: indices, scales, weights.
void change_constants(Bytes& file, size_t from, Random& random) {
  constexpr int64_t kWords[] = {-1,
                                0,
                                1,
                                INT64_MAX,
                                INT64_MIN,
                                int64_t{1} << 31,
                                INT32_MAX,
                                int64_t{1} << 40,
                                -1000,
                                0x7FF0000000000000,
                                0x7F8000007F800000,
                                0x7FC000007FC00000};
  const size_t words = (file.size() - from) / 8;
  for (uint64_t i = 0; words > 0 && i < 1 + random.below(4); ++i) {
    const int64_t word =
        random.chance(70) ? any_of(kWords, random) : static_cast<int64_t>(random.below(64));
    std::memcpy(&file[from + random.below(words) * 8], &word, sizeof(word));
  }
}

}  // namespace

Seed::Seed(std::string name, Bytes bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {
  schema::ProgramHeader header;
  const auto status = schema::parse_header(bytes_.data(), bytes_.size(), header);
  size_t size = bytes_.size();
  segments_at_ = size;
  if (status == schema::HeaderStatus::Found) {
    size = header.program_size;
    segments_at_ = header.segment_base_offset > 0 ? header.segment_base_offset : bytes_.size();
  }
  if (size > bytes_.size() || segments_at_ > bytes_.size()) return;
  flatbuffers::Verifier verifier(bytes_.data(), size);
  if (fb::VerifyProgramBuffer(verifier)) {
    flatbuffer_ = bytes_.data();
    names().add(*fb::GetProgram(flatbuffer_));
  }
}

Seed::Seed(Seed&&) noexcept = default;
Seed::~Seed() = default;

Bytes Seed::mutate(Random random) const {
  fb::ProgramT program;
  fb::GetProgram(flatbuffer_)->UnPackTo(&program);
  if (!program.execution_plan.empty()) {
    auto& plan = *any_of(program.execution_plan, random);
    Edit edit(program, plan, random);
    if (random.chance(50)) edit.make_inputs();
    if (random.chance(40)) edit.widen_results();
    for (uint64_t i = 0, count = 1 + random.below(3); i < count; ++i) {
      change_once(edit, plan, random);
    }
  }
  flatbuffers::FlatBufferBuilder builder(4096);
  builder.Finish(fb::Program::Pack(builder, &program), schema::kProgramIdentifier);
  const size_t size = builder.GetSize() + schema::kProgramHeaderLength;
  const size_t base = (size + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
  const size_t segments = bytes_.size() - segments_at_;
  Bytes file(base + segments);
  const schema::ProgramHeader header{size, segments > 0 ? base : 0, segments};
  schema::write_head(builder.GetBufferPointer(), schema::kProgramHeaderLength, header, file.data());
  std::memcpy(&file[8 + schema::kProgramHeaderLength], builder.GetBufferPointer() + 8,
              builder.GetSize() - 8);
  if (segments > 0) {
    std::memcpy(&file[base], &bytes_[segments_at_], segments);
    if (random.chance(10)) change_constants(file, base, random);
  }
  return file;
}

}  // namespace executorch::fuzz
