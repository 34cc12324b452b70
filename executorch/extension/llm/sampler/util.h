#pragma once

#include <executorch/extension/llm/sampler/sampler.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <vector>

namespace executorch::extension::llm {

/// Rows of logits [..., v], whatever the program's file promised; 0 if the tensor has no elements.
int64_t count_rows(const aten::Tensor& logits);

/// Row `row` of the logits, whose last dimension is the vocabulary, as floats; -1: the last row.
/// InvalidArgument, and a message in the log, for other element types than float, double, Half and
/// BFloat16, and where there is no such row.
runtime::Error read_logits(const aten::Tensor& logits, int64_t row, std::vector<float>& out);

/// The next token, by the last row of logits [v], [1, v] or [1, t, v] of float, Half, BFloat16 or
/// uint16. -1, with a message in the log, if the tensor is none of these, or has fewer logits than
/// the sampler's vocabulary has tokens.
int32_t sample_from_logits(const aten::Tensor& logits_tensor, Sampler& sampler);

/// The same with a sampler of its own.
int32_t logits_to_token(const aten::Tensor& logits_tensor, const float temperature = 0.0f);

}  // namespace executorch::extension::llm
