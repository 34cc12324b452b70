#include <executorch/runtime/executor/plan_validation.h>
#include <executorch/runtime/executor/program_validation.h>
#include <executorch/schema/program_generated.h>
#include <executorch/schema/program_structure.h>

#include <cstring>

namespace executorch::runtime::internal {
namespace {

namespace fb = executorch_flatbuffer;

// Deeper than any program: Program, plan, chain, instruction, call.
constexpr uint32_t kMaxDepth = 16;
// A list's items take 4 bytes each; some lists may be shared.
constexpr uint64_t kItemsPerByte = 4;
// Methods and named data are found by name, one after the other, as often as somebody asks.
constexpr uint32_t kMaxNames = 1 << 16;
constexpr uint32_t kMaxNameBytes = 1 << 10;

Error validate_structure(const void* data, size_t size) {
  ET_CHECK_OR_RETURN_ERROR(size < FLATBUFFERS_MAX_BUFFER_SIZE, InvalidProgram,
                           "program of %zu bytes; at most %zu are possible", size,
                           static_cast<size_t>(FLATBUFFERS_MAX_BUFFER_SIZE));
  // Each reference to a table takes 4 bytes: more tables than that are shared to waste time.
  const auto max_tables = static_cast<uint32_t>(size / 4 + 1);
  ET_CHECK_OR_RETURN_ERROR(
      schema::is_program_structure(static_cast<const uint8_t*>(data), size, kMaxDepth, max_tables),
      InvalidProgram,
      "the program's %zu bytes are not a well-formed flatbuffer: damaged or truncated", size);
  return Error::Ok;
}

Error validate_segments(const fb::Program& program, const ProgramFile& file) {
  for (uint32_t i = 0; i < size_of(program.segments()); ++i) {
    const uint64_t offset = program.segments()->Get(i)->offset();
    const uint64_t size = program.segments()->Get(i)->size();
    const uint64_t room = file.segment_bytes > 0  ? file.segment_bytes
                          : file.segment_base > 0 ? file.file_bytes - file.segment_base
                                                  : 0;
    ET_CHECK_OR_RETURN_ERROR(offset <= room && size <= room - offset, InvalidProgram,
                             "segment %" PRIu32 ": %" PRIu64 " bytes at %" PRIu64
                             ", the file has %" PRIu64 " bytes of segments",
                             i, size, offset, room);
  }
  return Error::Ok;
}

// Offsets of blobs in one segment, for constants and for initial states.
Error validate_subsegments(const fb::Program& program, const fb::SubsegmentOffsets* table,
                           const char* what) {
  if (table == nullptr || size_of(table->offsets()) == 0) return Error::Ok;
  const uint32_t index = table->segment_index();
  ET_CHECK_OR_RETURN_ERROR(index < size_of(program.segments()), InvalidProgram,
                           "%s: segment %" PRIu32 " of %" PRIu32, what, index,
                           size_of(program.segments()));
  const uint64_t segment_bytes = program.segments()->Get(index)->size();
  for (uint32_t i = 0; i < table->offsets()->size(); ++i) {
    const uint64_t offset = table->offsets()->Get(i);
    ET_CHECK_OR_RETURN_ERROR(offset <= segment_bytes, InvalidProgram,
                             "%s: entry %" PRIu32 " at %" PRIu64 ", its segment has %" PRIu64
                             " bytes",
                             what, i, offset, segment_bytes);
  }
  return Error::Ok;
}

Error validate_constants(const fb::Program& program) {
  const auto* segment = program.constant_segment();
  ET_CHECK_OR_RETURN_ERROR(size_of(program.constant_buffer()) == 0 || segment == nullptr ||
                               size_of(segment->offsets()) == 0,
                           InvalidProgram,
                           "constants in both constant_buffer (%" PRIu32 ") and constant_segment",
                           size_of(program.constant_buffer()));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_subsegments(program, segment, "constant segment"));
  for (uint32_t i = 0; i < size_of(program.mutable_data_segments()); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(validate_subsegments(
        program, program.mutable_data_segments()->Get(i), "mutable data segment"));
  }
  return Error::Ok;
}

Error validate_count(uint32_t count, const char* what) {
  ET_CHECK_OR_RETURN_ERROR(count <= kMaxNames, InvalidProgram,
                           "%" PRIu32 " %s, at most %" PRIu32 " are supported", count, what,
                           kMaxNames);
  return Error::Ok;
}

Error validate_name(const flatbuffers::String* name, const char* what, uint32_t index) {
  ET_CHECK_OR_RETURN_ERROR(name != nullptr && name->size() <= kMaxNameBytes, InvalidProgram,
                           "%s %" PRIu32 " has no name, or one of more than %" PRIu32 " bytes",
                           what, index, kMaxNameBytes);
  // Callers get names as C strings and ask for what they name.
  ET_CHECK_OR_RETURN_ERROR(std::strlen(name->c_str()) == name->size(), InvalidProgram,
                           "the name of %s %" PRIu32 ", %s, has a byte 0", what, index,
                           name->c_str());
  return Error::Ok;
}

Error validate_named_data(const fb::Program& program) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_count(size_of(program.named_data()), "named data"));
  for (uint32_t i = 0; i < size_of(program.named_data()); ++i) {
    const auto* entry = program.named_data()->Get(i);
    ET_CHECK_OK_OR_RETURN_ERROR(validate_name(entry->key(), "named data", i));
    ET_CHECK_OR_RETURN_ERROR(entry->segment_index() < size_of(program.segments()), InvalidProgram,
                             "named data %s: segment %" PRIu32 " of %" PRIu32,
                             entry->key()->c_str(), entry->segment_index(),
                             size_of(program.segments()));
  }
  return Error::Ok;
}

Error validate_plan(const fb::Program& program, const fb::ExecutionPlan& plan, uint32_t index,
                    uint64_t& item_budget) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_name(plan.name(), "execution plan", index));
  const PlanScope scope{program, plan, plan.name()->c_str(), item_budget};
  ET_CHECK_OK_OR_RETURN_ERROR(validate_values(scope));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_interface(scope));
  return validate_instructions(scope);
}

}  // namespace

Error validate_program(const void* data, const ProgramFile& file) {
  ET_CHECK_OK_OR_RETURN_ERROR(validate_structure(data, file.program_bytes));
  const fb::Program& program = *fb::GetProgram(data);
  ET_CHECK_OK_OR_RETURN_ERROR(validate_segments(program, file));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_constants(program));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_named_data(program));
  ET_CHECK_OR_RETURN_ERROR(program.execution_plan() != nullptr, InvalidProgram,
                           "the program has no execution plans");
  ET_CHECK_OK_OR_RETURN_ERROR(validate_count(program.execution_plan()->size(), "methods"));
  uint64_t item_budget = kItemsPerByte * file.program_bytes;
  for (uint32_t i = 0; i < program.execution_plan()->size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(
        validate_plan(program, *program.execution_plan()->Get(i), i, item_budget));
  }
  return Error::Ok;
}

}  // namespace executorch::runtime::internal
