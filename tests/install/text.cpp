// What a program of language models links: its exit status says whether a missing file is an error.
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <pytorch/tokenizers/hf_tokenizer.h>

int main() {
  auto tokenizer = std::make_unique<tokenizers::HFTokenizer>();
  const bool refused = tokenizer->load("no such file") != tokenizers::Error::Ok;
  auto runner =
      executorch::extension::llm::create_text_llm_runner("no such file.pte", std::move(tokenizer));
  return refused && (runner == nullptr || runner->load() != executorch::runtime::Error::Ok) ? 0 : 1;
}
