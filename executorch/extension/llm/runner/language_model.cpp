#include <executorch/extension/llm/runner/language_model.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>

namespace executorch::extension::llm {

using aten::Tensor;
using runtime::Error;
using runtime::Result;
using runtime::Span;

LanguageModel::LanguageModel(TextDecoderRunner& decoder, int64_t max_chunk)
    : decoder_(decoder),
      max_chunk_(
          std::clamp<int64_t>(max_chunk, 1, std::max<int64_t>(1, decoder.form().max_tokens))) {}

int64_t LanguageModel::known_tokens(Span<const uint64_t> text) const {
  const size_t n = std::min(text.size(), known_.size());
  size_t common = 0;
  while (common < n && text[common] == known_[common]) ++common;
  return static_cast<int64_t>(common);
}

/// Tokens [begin, begin + n) of the text; what follows is unknown then.
Result<Tensor> LanguageModel::run(Span<const uint64_t> text, int64_t begin, int64_t n) {
  const uint64_t* const tokens = text.data() + begin;
  input_.assign(tokens, tokens + n);
  known_.resize(static_cast<size_t>(begin));
  TensorPtr input =
      from_blob(input_.data(), {1, static_cast<aten::SizesType>(n)}, aten::ScalarType::Long);
  Result<Tensor> logits = decoder_.step(input, begin);
  if (logits.ok()) known_.insert(known_.end(), tokens, tokens + n);
  return logits;
}

/// The most tokens that are new to one run. An incremental program that gives all positions is not
/// worth dividing, because each piece would compute all logits up to it.
int64_t LanguageModel::piece() const {
  const ProgramForm& form = decoder_.form();
  if (form.position != ProgramForm::Position::None) return std::min(max_chunk_, kPiece);
  return form.is_incremental && !form.gives_all_positions ? kPiece : form.max_tokens;
}

int64_t LanguageModel::max_rows() const {
  return decoder_.form().gives_all_positions ? std::min(max_chunk_, piece()) : 1;
}

Result<Tensor> LanguageModel::logits(Span<const uint64_t> text, int64_t n_rows, const Call& call) {
  const auto size = static_cast<int64_t>(text.size());
  ET_CHECK_OR_RETURN_ERROR(n_rows >= 1 && n_rows <= std::min(size, max_chunk_), InvalidArgument,
                           "logits after %lld of %lld tokens, expected 1 to %lld",
                           static_cast<long long>(n_rows), static_cast<long long>(size),
                           static_cast<long long>(std::min(size, max_chunk_)));
  const int64_t known = std::min(known_tokens(text), size - n_rows);
  const int64_t total = size - known;
  const auto progress = [&](int64_t done) {
    if (call.on_progress) call.on_progress(done, total);
  };
  // A program without explicit caches is given the text from its beginning.
  const bool is_whole = decoder_.form().position == ProgramForm::Position::None;
  const auto run_until = [&](int64_t begin, int64_t end) {
    return is_whole ? run(text, 0, end) : run(text, begin, end - begin);
  };
  const int64_t most = std::max(piece(), n_rows);
  int64_t begin = known;
  while (size - begin > most) {
    if (call.stop != nullptr && call.stop->load()) return Error::EndOfMethod;
    const int64_t end = std::min(begin + most, size - n_rows);
    ET_CHECK_OK_OR_RETURN_ERROR(run_until(begin, end).error());
    begin = end;
    progress(begin - known);
  }
  Result<Tensor> logits = run_until(begin, size);
  if (logits.ok()) progress(total);
  return logits;
}

}  // namespace executorch::extension::llm
