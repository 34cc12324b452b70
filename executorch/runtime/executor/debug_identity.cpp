#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/debug_identity_generated.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;

// DebugIdentity, method, chain, delegate call.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
// Methods are looked for one after the other, for every instruction of a profile, which holds its
// texts for each.
constexpr uint32_t kMaxMethods = 1 << 12;
constexpr uint32_t kMaxTextBytes = 1 << 12;

// Item `index` of a vector that may be absent or shorter.
template <typename Vector>
auto item(const Vector* items, size_t index) -> decltype(items->Get(0)) {
  return items != nullptr && index < items->size()
             ? items->Get(static_cast<flatbuffers::uoffset_t>(index))
             : nullptr;
}

// 0, the number of what is not known, where there is no such item.
uint32_t item_or_zero(const flatbuffers::Vector<uint32_t>* items, size_t index) {
  return items != nullptr && index < items->size()
             ? items->Get(static_cast<flatbuffers::uoffset_t>(index))
             : 0;
}

}  // namespace

OriginText::OriginText(const InstructionOrigin& origin) {
  const bool outermost = origin.module_path[0] == '\0';
  int n = 0;
  if (origin.file[0] != '\0') {
    n = std::snprintf(text, sizeof(text) / 2, "%s:%" PRIu32 ", ", origin.file, origin.line);
    n = n < static_cast<int>(sizeof(text) / 2) ? n : static_cast<int>(sizeof(text) / 2) - 1;
  }
  std::snprintf(text + n, sizeof(text) - static_cast<size_t>(n), "%s%s",
                outermost ? "the outermost module" : "module ", origin.module_path);
}

ArgumentText::ArgumentText(const char* kind, size_t index, const char* name) {
  const bool is_named = name[0] != '\0';
  std::snprintf(text, sizeof(text), "%s %zu%s%.80s%s", kind, index, is_named ? " (" : "", name,
                is_named ? ")" : "");
}

DebugIdentity::DebugIdentity(const void* data) : root_(fb::GetDebugIdentity(data)) {}

Error DebugIdentity::check(const void* data, size_t size) {
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 1);
  ET_CHECK_OR_RETURN_ERROR(size < FLATBUFFERS_MAX_BUFFER_SIZE &&
                               reinterpret_cast<uintptr_t>(data) % alignof(uint32_t) == 0,
                           InvalidProgram,
                           "named data %s: %zu bytes at %p; expected an address that is a "
                           "multiple of %zu",
                           kDebugIdentityKey, size, data, alignof(uint32_t));
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(data), size, kMaxDepth, max_tables);
  ET_CHECK_OR_RETURN_ERROR(fb::VerifyDebugIdentityBuffer(verifier), InvalidProgram,
                           "named data %s: its %zu bytes are not a well-formed flatbuffer of this "
                           "kind; errors and profiles will not name places in the model",
                           kDebugIdentityKey, size);
  const auto* const root = fb::GetDebugIdentity(data);
  const uint32_t n_methods = root->methods() == nullptr ? 0 : root->methods()->size();
  uint32_t longest = 0;
  for (size_t i = 0; const auto* const text = item(root->strings(), i); ++i) {
    longest = text->size() > longest ? text->size() : longest;
  }
  ET_CHECK_OR_RETURN_ERROR(n_methods <= kMaxMethods && longest <= kMaxTextBytes, InvalidProgram,
                           "named data %s: %" PRIu32 " methods and a text of %" PRIu32
                           " bytes; expected at most %" PRIu32 " and %" PRIu32,
                           kDebugIdentityKey, n_methods, longest, kMaxMethods, kMaxTextBytes);
  return Error::Ok;
}

const char* DebugIdentity::text(uint32_t index) const {
  const auto* found = item(root_->strings(), index);
  return found == nullptr ? "" : found->c_str();
}

void DebugIdentity::describe(uint32_t op, uint32_t place, InstructionOrigin& out) const {
  out = InstructionOrigin{};
  out.op = text(op);
  if (const auto* found = item(root_->places(), place)) {
    out.module_path = text(found->module_path());
    out.file = text(found->file());
    out.line = found->line();
  }
}

const fb::MethodIdentity* DebugIdentity::find_method(const char* name) const {
  for (size_t i = 0; const auto* method = item(root_->methods(), i); ++i) {
    if (method->name() != nullptr && method->name()->string_view() == name) return method;
  }
  return nullptr;
}

const char* DebugIdentity::input_name(const char* method, size_t index) const {
  const auto* const found = find_method(method);
  return found == nullptr ? "" : text(item_or_zero(found->inputs(), index));
}

const char* DebugIdentity::output_name(const char* method, size_t index) const {
  const auto* const found = find_method(method);
  return found == nullptr ? "" : text(item_or_zero(found->outputs(), index));
}

bool DebugIdentity::is_stateless(const char* method) const {
  const auto* const found = find_method(method);
  return found != nullptr && found->is_stateless();
}

bool DebugIdentity::instruction(const char* method, size_t chain, size_t instruction,
                                InstructionOrigin& out) const {
  const auto* const found = find_method(method);
  const auto* const in = found == nullptr ? nullptr : item(found->chains(), chain);
  const auto* const origin = in == nullptr ? nullptr : item(in->origins(), instruction);
  if (origin != nullptr) describe(origin->op(), origin->place(), out);
  return origin != nullptr;
}

const fb::DelegateCallIdentity* DebugIdentity::find_call(const char* method, size_t chain,
                                                         size_t instruction) const {
  const auto* const found = find_method(method);
  const auto* const in = found == nullptr ? nullptr : item(found->chains(), chain);
  size_t begin = 0;
  size_t end = in == nullptr || in->delegate_calls() == nullptr ? 0 : in->delegate_calls()->size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const auto* const call = item(in->delegate_calls(), middle);
    if (call->instruction() == instruction) return call;
    if (call->instruction() < instruction) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return nullptr;
}

bool DebugIdentity::delegated(const char* method, size_t chain, size_t instruction,
                              uint32_t debug_id, InstructionOrigin& out) const {
  const auto* const call = find_call(method, chain, instruction);
  size_t begin = 0;
  size_t end = call == nullptr || call->by_id() == nullptr ? 0 : call->by_id()->size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const auto& origin = *item(call->by_id(), middle);
    if (origin.id() == debug_id) {
      describe(origin.op(), origin.place(), out);
      return true;
    }
    (origin.id() < debug_id ? begin : end) = origin.id() < debug_id ? middle + 1 : middle;
  }
  return false;
}

bool DebugIdentity::delegated(const char* method, size_t chain, size_t instruction,
                              const char* debug_name, InstructionOrigin& out) const {
  const auto* const call = find_call(method, chain, instruction);
  for (size_t i = 0; call != nullptr; ++i) {
    const auto* const origin = item(call->by_name(), i);
    if (origin == nullptr) return false;
    if (std::strcmp(text(origin->id()), debug_name) == 0) {
      describe(origin->op(), origin->place(), out);
      return true;
    }
  }
  return false;
}

}  // namespace executorch::runtime
