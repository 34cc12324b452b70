#include <executorch/extension/pybindings/program.h>

#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/text.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iterator>
#include <stdexcept>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
using runtime::Error;
using runtime::EValue;
using runtime::Method;
using runtime::MethodMeta;
using runtime::Program;

namespace {

void require_file(const std::string& path) {
  if (path.find('\0') != path.npos) throw nb::value_error("a path has a null character in it");
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable)) {
    errno = ENOENT;
    PyErr_SetFromErrnoWithFilename(PyExc_FileNotFoundError, path.c_str());
    throw nb::python_error();
  }
}

std::unique_ptr<runtime::DataLoader> map_file(const std::string& path) {
  require_file(path);
  nb::gil_scoped_release unlocked;
  LogCapture log;
  auto loader = MmapDataLoader::from(path.c_str(), MmapDataLoader::MlockConfig::NoMlock);
  log.check(loader.error(), "opening " + path);
  return std::make_unique<MmapDataLoader>(std::move(loader.get()));
}

std::unique_ptr<runtime::DataLoader> view_buffer(const nb::object& buffer) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(buffer.ptr(), &data, &size) != 0) throw nb::python_error();
  return std::make_unique<BufferDataLoader>(data, static_cast<size_t>(size));
}

std::unique_ptr<runtime::DataLoader> view_bundle(const nb::bytes& bundle) {
  LogCapture log;
  const void* program = nullptr;
  size_t size = 0;
  log.check(bundled_program::get_program_data(const_cast<char*>(bundle.c_str()), bundle.size(),
                                              &program, &size),
            "reading the bundled program");
  return std::make_unique<BufferDataLoader>(program, size);
}

/// The loader of external data, of a path or a buffer; null when there is neither.
std::unique_ptr<runtime::DataLoader> open_data(const std::string& path, const nb::object& buffer) {
  if (!path.empty()) return map_file(path);
  return buffer.is_valid() && !buffer.is_none() ? view_buffer(buffer) : nullptr;
}

std::unique_ptr<runtime::DataLoader> open_program(const Source& source) {
  if (source.is_bundle) return view_bundle(nb::cast<nb::bytes>(source.buffer));
  return source.buffer.is_valid() ? view_buffer(source.buffer) : map_file(source.path);
}

Method& load(Module& module, std::mutex& mutex, const std::string& name,
             const LoadedProgram& program, ArenasWithState* arenas) {
  nb::gil_scoped_release unlocked;
  std::lock_guard<std::mutex> turn(mutex);
  LogCapture log;
  const std::string& data = program.source().data_path;
  const std::string what = "loading method '" + name + "'" + (data.empty() ? "" : " with " + data);
  runtime::EventTracer* const tracer = program.tracer();
  if (arenas == nullptr) {
    log.check(module.load_method(name, nullptr, tracer), what);
  } else {
    const std::vector<uint8_t> state = arenas->state().copy();
    const Error error = module.load_method(name, arenas->allocator(), tracer);
    arenas->state().put_back(state);
    log.check(error, what);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the one way to the Method itself
  Method& method = *module.method(name).get();
#pragma GCC diagnostic pop
  if (arenas != nullptr) arenas->state().use(method);
  return method;
}

/// Keeps alive what results alias: the method and the memory that was lent to it.
template <class T>
nb::object keeper(nb::handle owner, std::vector<T> lent) {
  auto held = std::make_unique<std::vector<T>>(std::move(lent));
  const nb::capsule capsule(held.get(),
                            [](void* lent) noexcept { delete static_cast<std::vector<T>*>(lent); });
  held.release();
  return nb::make_tuple(owner, capsule);
}

nb::list to_list(std::vector<Output> results, nb::handle owner) {
  nb::list list;
  for (Output& result : results) list.append(to_python(std::move(result), owner));
  return list;
}

}  // namespace

LoadedProgram::LoadedProgram(Source source, Program::Verification verification,
                             std::unique_ptr<Recording> recording)
    : source_(std::move(source)),
      recording_(std::move(recording)),
      loader_(std::make_unique<Module>(open_program(source_))) {
  if (!source_.data_path.empty()) require_file(source_.data_path);
  nb::gil_scoped_release unlocked;
  LogCapture log;
  log.check(loader_->load(verification),
            "loading the program" + (source_.path.empty() ? std::string() : " " + source_.path));
  program_ = loader_->program();
  const int64_t state_bytes = shared_state_bytes();
  if (state_bytes > 0 && lies_in_cpu_memory()) {
    state_ = std::make_unique<SharedState>(static_cast<size_t>(state_bytes));
  }
}

Recording& LoadedProgram::recording() const {
  if (recording_ == nullptr) {
    throw std::runtime_error("no ETDump: the program was loaded without enable_etdump=True");
  }
  return *recording_;
}

std::vector<std::string> LoadedProgram::method_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < program_->num_methods(); ++i) {
    names.emplace_back(*program_->get_method_name(i));
  }
  return names;
}

MethodMeta LoadedProgram::method_meta(const std::string& name) const {
  LogCapture log;
  auto meta = program_->method_meta(name.c_str());
  log.check(meta.error(), "method '" + name + "'");
  return meta.get();
}

LoadedProgram::ArgumentNames LoadedProgram::argument_names(const std::string& method) const {
  const MethodMeta meta = method_meta(method);
  ArgumentNames names;
  names.first.resize(meta.num_inputs());
  names.second.resize(meta.num_outputs());
  const LogCapture quiet(LogCapture::kDropped);  // what is malformed is no reason to fail
  const auto identity = program_->debug_identity();
  if (!identity.ok()) return names;
  for (size_t i = 0; i < names.first.size(); ++i) {
    names.first[i] = identity->input_name(meta.name(), i);
  }
  for (size_t i = 0; i < names.second.size(); ++i) {
    names.second[i] = identity->output_name(meta.name(), i);
  }
  return names;
}

std::unique_ptr<Module> LoadedProgram::make_module() const {
  return std::make_unique<Module>(program_, nullptr, nullptr, nullptr,
                                  open_data(source_.data_path, source_.data_buffer),
                                  shared_state_bytes() > 0);
}

/// A program planned with shared mutable buffers keeps them in the second memory area, which then
/// has the same size in every method.
int64_t LoadedProgram::shared_state_bytes() const {
  int64_t shared_bytes = 0;
  for (const std::string& name : method_names()) {
    const MethodMeta meta = method_meta(name);
    if (meta.num_memory_planned_buffers() < 2) return 0;
    const int64_t bytes = *meta.memory_planned_buffer_size(kStateArena);
    if (bytes == 0 || (shared_bytes != 0 && bytes != shared_bytes)) return 0;
    shared_bytes = bytes;
  }
  return program_->num_methods() > 1 ? shared_bytes : 0;
}

bool LoadedProgram::lies_in_cpu_memory() const {
  for (const std::string& name : method_names()) {
    const MethodMeta meta = method_meta(name);
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      const auto device = meta.memory_planned_buffer_device(i);
      if (!device.ok() || !device->is_cpu()) return false;
    }
  }
  return true;
}

Runner::Runner(Module& module, std::mutex& mutex, std::string name, const LoadedProgram& program,
               ArenasWithState* arenas)
    : module_(module),
      method_(load(module, mutex, name, program, arenas)),
      mutex_(mutex),
      name_(std::move(name)) {}

MethodMeta Runner::meta() const {
  return method_.method_meta();
}

void Runner::give(const std::shared_ptr<Inputs>& inputs) {
  LogCapture log;
  const size_t expected = method_.inputs_size();
  const size_t found = inputs->values().size();
  if (found != expected) {
    log.fail(name_ + " takes " + std::to_string(expected) + " inputs, got " + std::to_string(found),
             Error::InvalidArgument);
  }
  const MethodMeta meta = method_.method_meta();
  lent_.reserve(lent_.size() + found);
  inputs_incomplete_ = true;
  for (size_t i = 0; i < found; ++i) {
    const EValue& value = inputs->values()[i];
    const Error error = method_.set_input(value, i);
    if (error != Error::Ok) {
      log.fail(name_ + ": " + runtime::ArgumentText("input", i, method_.input_name(i)).text, error);
    }
    if (!value.isTensor()) continue;
    // The method copies planned inputs; others are used in place and have to be kept alive.
    const auto info = meta.input_tensor_meta(i);
    if (!info.ok() || !info->is_memory_planned()) {
      lend(value.toTensor().const_data_ptr(), value.toTensor().nbytes(), inputs);
    }
  }
  inputs_incomplete_ = false;
  inputs_used_ = false;
}

void Runner::lend(const void* begin, size_t n_bytes, std::shared_ptr<void> owner) {
  if (n_bytes > 0) {
    lent_.push_back({static_cast<const std::byte*>(begin), n_bytes, std::move(owner), false});
  }
}

std::vector<Runner::Lent> Runner::take_back() {
  if (lent_.empty()) return {};
  for (const EValue& value : method_.values()) {
    if (!value.isTensor()) continue;
    const auto* const at = static_cast<const std::byte*>(value.toTensor().const_data_ptr());
    // Search from the end: if the same memory was lent several times, the last entry suffices.
    const auto last = std::find_if(lent_.rbegin(), lent_.rend(), [at](const Lent& lent) {
      return !std::less<>()(at, lent.begin) && std::less<>()(at, lent.begin + lent.n_bytes);
    });
    if (last != lent_.rend()) last->is_used = true;
  }
  const auto unused = std::stable_partition(lent_.begin(), lent_.end(),
                                            [](const Lent& lent) { return lent.is_used; });
  std::vector<Lent> taken(std::make_move_iterator(unused), std::make_move_iterator(lent_.end()));
  lent_.erase(unused, lent_.end());
  for (Lent& lent : lent_) lent.is_used = false;
  return taken;
}

void Runner::provide_outputs() {
  const MethodMeta meta = method_.method_meta();
  for (size_t i = 0; i < method_.outputs_size(); ++i) {
    const EValue& output = method_.get_output(i);
    if (!output.isTensor() || output.toTensor().const_data_ptr() != nullptr) continue;
    LogCapture log;
    const auto info = meta.output_tensor_meta(i);
    log.check(info.error(), name_ + ": output " + std::to_string(i));
    if (info->is_memory_planned() || info->nbytes() == 0) continue;
    std::shared_ptr<std::byte[]> memory = aligned_bytes(info->nbytes());
    log.check(method_.set_output_data_ptr(memory.get(), info->nbytes(), i),
              name_ + ": output " + std::to_string(i));
    lend(memory.get(), info->nbytes(), memory);
  }
}

void Runner::run() {
  LogCapture log;
  if (inputs_incomplete_) {
    log.fail("executing " + name_ + " without its inputs set", Error::InvalidState);
  }
  provide_outputs();
  inputs_used_ = true;
  log.check(method_.execute(), "executing " + name_);
  module_.fit_memory(name_);
}

std::vector<Output> Runner::results(bool clone) {
  std::vector<Output> results;
  results.reserve(method_.outputs_size());
  for (size_t i = 0; i < method_.outputs_size(); ++i) {
    results.push_back(detach(method_.get_output(i), clone));
  }
  return results;
}

template <class F>
void Runner::in_turn(const F& f, std::vector<Lent>* lent) {
  std::vector<Lent> unused;  // goes when the GIL is held again and the mutex is not
  nb::gil_scoped_release unlocked;
  std::lock_guard<std::mutex> turn(mutex_);
  try {
    f();
  } catch (...) {
    unused = take_back();
    throw;
  }
  unused = take_back();
  if (lent != nullptr) *lent = lent_;
}

void Runner::set_inputs(nb::handle items) {
  auto inputs = std::make_shared<Inputs>(method_, items);
  in_turn([&] {
    give(inputs);
    std::swap(inputs, inputs_);  // execute() may give them again
  });
}

void Runner::set_max_work(uint64_t units) {
  nb::gil_scoped_release unlocked;
  std::lock_guard<std::mutex> turn(mutex_);
  method_.set_max_work(units);
}

void Runner::execute() {
  in_turn([&] {
    if (inputs_used_) give(inputs_);
    run();
  });
}

nb::list Runner::outputs(bool clone, nb::handle owner) {
  std::vector<Output> taken;
  std::vector<Lent> lent;
  {
    nb::gil_scoped_release unlocked;
    std::lock_guard<std::mutex> turn(mutex_);
    taken = results(clone);
    if (!clone) lent = lent_;
  }
  return to_list(std::move(taken), clone ? nb::borrow(owner) : keeper(owner, std::move(lent)));
}

nb::list Runner::call(nb::handle items, bool clone, nb::handle owner) {
  auto inputs = std::make_shared<Inputs>(method_, items);
  std::vector<Output> taken;
  std::vector<Lent> lent;
  const auto run_and_read = [&] {
    give(inputs);
    std::swap(inputs, inputs_);
    run();
    taken = results(clone);
  };
  in_turn(run_and_read, clone ? nullptr : &lent);
  return to_list(std::move(taken), clone ? nb::borrow(owner) : keeper(owner, std::move(lent)));
}

nb::list Runner::call_bundled(const void* bundle, size_t index, double rtol, double atol,
                              nb::handle owner) {
  std::vector<Output> taken;
  {
    nb::gil_scoped_release unlocked;
    std::lock_guard<std::mutex> turn(mutex_);
    LogCapture log;
    const std::string test = name_ + ", test case " + std::to_string(index);
    inputs_incomplete_ = true;
    log.check(bundled_program::load_bundled_input(method_, bundle, index), test);
    inputs_incomplete_ = false;
    run();
    log.check(bundled_program::verify_method_outputs(method_, bundle, index, rtol, atol), test);
    taken = results(/*clone=*/true);
  }
  return to_list(std::move(taken), owner);
}

nb::object Runner::attribute(const std::string& attribute_name, nb::handle owner) {
  Output taken;
  std::vector<Lent> lent;  // a program may let any tensor point there
  {
    nb::gil_scoped_release unlocked;
    std::lock_guard<std::mutex> turn(mutex_);
    LogCapture log;
    const auto tensor = method_.get_attribute(attribute_name);
    log.check(tensor.error(), name_ + ": attribute '" + attribute_name + "'");
    taken = detach(EValue(tensor.get()), /*clone=*/false);
    lent = lent_;
  }
  return to_python(std::move(taken), keeper(owner, std::move(lent)));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // stepping counts as experimental

std::optional<Runner::Step> Runner::step() {
  nb::gil_scoped_release unlocked;
  std::lock_guard<std::mutex> turn(mutex_);
  LogCapture log;
  const auto [chain, instruction] = method_.next_place();
  const auto chains = method_.instructions();
  if (chain == chains.size()) {
    log.check(method_.reset_execution(), "stepping through " + name_);
    return std::nullopt;
  }
  if (!method_.in_progress()) {
    provide_outputs();
    inputs_used_ = true;
  }
  const bool ran = instruction < chains[chain].size() &&
                   chains[chain][instruction].kind != runtime::Instruction::Kind::Skip;
  log.check(method_.step(), "stepping through " + name_);
  return Step{chain, instruction, ran};
}

#pragma GCC diagnostic pop

nb::object Runner::value(size_t index, nb::handle owner) {
  const auto values = method_.values();
  if (index >= values.size()) {
    throw nb::index_error(
        ("value " + std::to_string(index) + " of " + std::to_string(values.size())).c_str());
  }
  Output taken;
  {
    nb::gil_scoped_release unlocked;
    std::lock_guard<std::mutex> turn(mutex_);
    const EValue& value = values[index];
    // Without memory it is not computed yet.
    if (!value.isTensor() || value.toTensor().const_data_ptr() != nullptr ||
        value.toTensor().nbytes() == 0) {
      taken = detach(value, /*clone=*/true);
    }
  }
  return to_python(std::move(taken), owner);
}

ModuleHandle::ModuleHandle(std::shared_ptr<LoadedProgram> program)
    : program_(std::move(program)), module_(program_->make_module()) {
  for (const std::string& name : program_->method_names()) {
    try {
      load_runner(name);
    } catch (const std::runtime_error&) {
      // Without its backend or data a method cannot be called, and says so then; other methods can,
      // and what the program tells of itself can be read.
    }
  }
}

Runner& ModuleHandle::load_runner(const std::string& name) {
  auto loaded = std::make_unique<Runner>(*module_, program_->turns(mutex_), name, *program_);
  return *runners_.try_emplace(name, std::move(loaded)).first->second;
}

Runner& ModuleHandle::runner(const std::string& name) {
  const auto found = runners_.find(name);
  if (found != runners_.end()) return *found->second;
  program_->method_meta(name);  // throws where there is none
  return load_runner(name);
}

training::internal::JointOutputs ModuleHandle::joint_outputs(const std::string& name) {
  nb::gil_scoped_release unlocked;
  std::lock_guard<std::mutex> turn(program_->turns(mutex_));
  LogCapture log;
  auto joint = training::internal::JointOutputs::of(*module_, name);
  log.check(joint.error(), "training '" + name + "'");
  const auto outputs = module_->get_outputs(name);
  log.check(outputs.error(), "training '" + name + "'");
  log.check(joint->parameters(*outputs).error(), "training '" + name + "'");
  return std::move(*joint);
}

}  // namespace executorch::extension::pybindings
