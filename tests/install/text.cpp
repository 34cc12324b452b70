// What a program of language models links: its exit status says whether a missing file is an error.
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/runner/wav_loader.h>
#include <pytorch/tokenizers/hf_tokenizer.h>

int main() {
  namespace llm = executorch::extension::llm;
  auto tokenizer = std::make_unique<tokenizers::HFTokenizer>();
  const bool refused = tokenizer->load("no such file") != tokenizers::Error::Ok;
  auto runner = llm::create_text_llm_runner("no such file.pte", std::move(tokenizer));
  const auto reader = llm::create_multimodal_runner("no such file.pte", nullptr);
  const bool has_none = (runner == nullptr || runner->load() != executorch::runtime::Error::Ok) &&
                        reader == nullptr && llm::load_wav_header("no such file.wav") == nullptr;
  return refused && has_none ? 0 : 1;
}
