// Runs programs for the benchmark: one JSON command per line of stdin, one JSON answer per line.
//
//   {"do": "open", "program": PATH, "inputs": [{"file", "dtype", "sizes"}...], "output": PATH}
//       loads (unless loaded) and runs once; answers {"seconds", "sizes" and "dtype" of the first
//       output, whose bytes are then in the file}. With "etdump": true calls write one from here
//       on, of each "run" anew
//   {"do": "run", "calls": N}      answers {"seconds": [N]}, each with inputs set and outputs got
//
// Of programs of token ids that remember, opened without inputs, in the loop of a user who gives
// all tokens so far:
//   {"do": "prefill", "tokens": N} a text that begins with another token; {"seconds": [1]}
//   {"do": "decode", "tokens": N}  as many tokens more, one by one, then without them again
// A failure answers {"error"}. Arguments: the number of threads, and the instruction set, if not
// the best.

#include <executorch/cpu/instruction_sets.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/threadpool/threadpool.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

using executorch::aten::ScalarType;
using executorch::etdump::ETDumpGen;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using nlohmann::json;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check(Error error, const std::string& what) {
  if (error != Error::Ok) {
    throw std::runtime_error(what + ": " + executorch::runtime::to_string(error));
  }
}

std::vector<char> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct NamedType {
  const char* name;  // as torch's
  ScalarType type;
};
constexpr NamedType kTypes[] = {
    {"float32", ScalarType::Float},     {"float16", ScalarType::Half}, {"bool", ScalarType::Bool},
    {"bfloat16", ScalarType::BFloat16}, {"int32", ScalarType::Int},    {"int64", ScalarType::Long},
};
ScalarType type_named(const std::string& name) {
  for (const NamedType& t : kTypes) {
    if (name == t.name) return t.type;
  }
  throw std::runtime_error("no type " + name);
}
const char* name_of(ScalarType type) {
  for (const NamedType& t : kTypes) {
    if (type == t.type) return t.name;
  }
  throw std::runtime_error(std::string("no name for ") + executorch::runtime::toString(type));
}

/// One program, and the inputs it was opened with.
class Session {
 public:
  json open(const json& command) {
    const std::string path = command.at("program");
    if (path != path_) {
      path_.clear();
      auto gen = command.value("etdump", false) ? std::make_unique<ETDumpGen>() : nullptr;
      gen_ = gen.get();
      module_ = std::make_unique<Module>(path, Module::LoadMode::Mmap, std::move(gen));
      check(module_->load_forward(), "load " + path);
      path_ = path;
    }
    bytes_.clear();
    tensors_.clear();
    inputs_.clear();
    if (!command.contains("inputs")) return {{"seconds", 0}};
    for (const json& input : command.at("inputs")) {
      bytes_.push_back(read(input.at("file")));
      tensors_.push_back(executorch::extension::from_blob(bytes_.back().data(), input.at("sizes"),
                                                          type_named(input.at("dtype"))));
      inputs_.emplace_back(tensors_.back());
    }
    const double start = now();
    const auto outputs = call(*module_);
    const double seconds = now() - start;
    const auto& output = outputs.at(0).toTensor();
    std::ofstream(command.at("output").get<std::string>(), std::ios::binary)
        .write(output.const_data_ptr<char>(), static_cast<std::streamsize>(output.nbytes()));
    return {{"seconds", seconds},
            {"dtype", name_of(output.scalar_type())},
            {"sizes", std::vector<int>(output.sizes().begin(), output.sizes().end())}};
  }

  json prefill(size_t n) {
    for (int64_t& token : text_) token += 1;
    text_.resize(n, 1);
    const double start = now();
    call_with_text();
    return {{"seconds", {now() - start}}};
  }

  json decode(size_t n) {
    const size_t before = text_.size();
    json seconds = json::array();
    for (size_t i = 0; i < n; ++i) {
      text_.push_back(static_cast<int64_t>(i) + 2);
      const double start = now();
      call_with_text();
      seconds.push_back(now() - start);
    }
    text_.resize(before);
    return {{"seconds", seconds}};
  }

  json run(int calls) {
    json seconds = json::array();
    for (int i = 0; i < calls; ++i) {
      const double start = now();
      call(*module_);
      seconds.push_back(now() - start);
    }
    if (gen_ != nullptr) std::free(gen_->get_etdump_data().buf);
    return {{"seconds", seconds}};
  }

 private:
  void call_with_text() {
    auto tensor = executorch::extension::from_blob(
        text_.data(), {1, static_cast<int>(text_.size())}, ScalarType::Long);
    auto result = module_->forward({EValue(tensor)});
    check(result.error(), "run " + path_);
  }

  std::vector<EValue> call(Module& module) {
    auto result = module.forward(inputs_);
    check(result.error(), "run " + path_);
    return std::move(result.get());
  }

  std::string path_;
  std::unique_ptr<Module> module_;
  /// The module's; null for none.
  ETDumpGen* gen_ = nullptr;
  std::vector<std::vector<char>> bytes_;
  std::vector<executorch::extension::TensorPtr> tensors_;
  std::vector<EValue> inputs_;
  /// Of a language model, as it was given last.
  std::vector<int64_t> text_;
};

json answer(Session& session, const json& command) {
  if (command.at("do") == "open") return session.open(command);
  if (command.at("do") == "run") return session.run(command.at("calls"));
  if (command.at("do") == "prefill") return session.prefill(command.at("tokens"));
  if (command.at("do") == "decode") return session.decode(command.at("tokens"));
  throw std::runtime_error("no command " + command.at("do").dump());
}

}  // namespace

int main(int argc, char** argv) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  executorch::extension::threadpool::get_threadpool()->_unsafe_reset_threadpool(
      argc > 1 ? static_cast<uint32_t>(std::stoul(argv[1])) : 1);
#pragma GCC diagnostic pop
  if (argc > 2 && !executorch::cpu::use_instruction_set_argument("bench_runner", argv[2])) return 1;
  Session session;
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      reply = answer(session, json::parse(line));
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}
