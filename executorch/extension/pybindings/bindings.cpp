// The module executorch.extension.pybindings._C; portable_lib.py gives its names to the public.
#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/metadata.h>
#include <executorch/extension/pybindings/program.h>
#include <executorch/extension/pybindings/text.h>
#include <executorch/extension/pybindings/training.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>

namespace nb = nanobind;

namespace executorch::extension::pybindings {
namespace {

using Verification = runtime::Program::Verification;
using ProgramPtr = std::shared_ptr<LoadedProgram>;

/// What enable_etdump and debug_buffer_size ask for.
struct Tracing {
  bool enabled;
  size_t debug_buffer_bytes;
  std::unique_ptr<Recording> recording() const {
    return enabled ? std::make_unique<Recording>(debug_buffer_bytes) : nullptr;
  }
};

ProgramPtr load_path(const std::string& path, const std::optional<std::string>& data_path,
                     const Tracing& tracing, Verification verification) {
  return std::make_shared<LoadedProgram>(
      Source{path, nb::object(), data_path.value_or(""), nb::object()}, verification,
      tracing.recording());
}

ProgramPtr load_buffer(nb::bytes buffer, const std::optional<std::string>& data_path,
                       const std::optional<nb::bytes>& data_buffer, const Tracing& tracing,
                       Verification verification, bool is_bundle = false) {
  nb::object data = data_buffer ? nb::object(*data_buffer) : nb::object();
  return std::make_shared<LoadedProgram>(
      Source{"", std::move(buffer), data_path.value_or(""), std::move(data), is_bundle},
      verification, tracing.recording());
}

/// BundledModule: a program with its test cases.
class BundledHandle {
 public:
  explicit BundledHandle(nb::bytes bundle)
      : bundle_(std::move(bundle)),
        program_(load_buffer(bundle_, {}, {}, {false, 0}, Verification::InternalConsistency,
                             /*is_bundle=*/true)) {}
  BundledHandle(const BundledHandle&) = delete;
  BundledHandle& operator=(const BundledHandle&) = delete;

  nb::list verify(const std::string& method, size_t index, double rtol, double atol,
                  nb::handle self) {
    auto found = methods_.find(method);
    if (found == methods_.end()) {
      // Another thread may be as far while this one loads.
      auto loaded = std::make_unique<MethodHandle>(program_, method);
      found = methods_.try_emplace(method, std::move(loaded)).first;
    }
    return found->second->runner().call_bundled(bundle_.c_str(), index, rtol, atol, self);
  }

  /// Another module over the program, without the test cases.
  std::unique_ptr<ModuleHandle> make_module(const std::optional<std::string>& data_path,
                                            const std::optional<nb::bytes>& data_buffer,
                                            const Tracing& tracing) const {
    return std::make_unique<ModuleHandle>(load_buffer(bundle_, data_path, data_buffer, tracing,
                                                      Verification::InternalConsistency, true));
  }

 private:
  nb::bytes bundle_;
  ProgramPtr program_;
  std::map<std::string, std::unique_ptr<MethodHandle>> methods_;
};

/// For the debugger: single steps, where an instruction comes from, values.
void bind_steps(nb::class_<MethodHandle>& type) {
  type.def(
          "_step",
          [](MethodHandle& self) -> nb::object {
            const auto step = self.runner().step();
            if (!step) return nb::none();
            return nb::make_tuple(step->chain, step->instruction, step->ran);
          },
          "Runs one instruction after set_inputs(): (chain, instruction, whether it had anything "
          "to do); None at the end.")
      .def(
          "_origin",
          [](MethodHandle& self, size_t chain, size_t instruction,
             const std::string& operation) -> nb::object {
            runtime::InstructionOrigin origin;
            if (!self.origin(chain, instruction, operation, origin)) return nb::none();
            return nb::make_tuple(std::string(origin.op), std::string(origin.module_path),
                                  std::string(origin.file), origin.line);
          },
          nb::arg("chain"), nb::arg("instruction"), nb::arg("operation") = "",
          "(operator, module path, Python file, line) that an instruction comes from, or an "
          "operation that its delegate reports by that name; None if the program does not say.")
      .def(
          "_value",
          [](nb::object self, size_t index) {
            return nb::cast<MethodHandle&>(self).runner().value(index, self);
          },
          nb::arg("index"), "A copy of the value with that number; None while it has no memory.");
}

void bind_method(nb::module_& m) {
  const auto call = [](nb::object self, nb::object inputs, bool clone) {
    return nb::cast<MethodHandle&>(self).runner().call(inputs, clone, self);
  };
  nb::class_<MethodHandle> type(m, "ExecuTorchMethod", "A loaded method with memory of its own.");
  bind_steps(type);
  type.def(
          "set_inputs",
          [](MethodHandle& self, nb::object inputs) { self.runner().set_inputs(inputs); },
          nb::arg("inputs"))
      .def(
          "set_max_work",
          [](MethodHandle& self, uint64_t units) { self.runner().set_max_work(units); },
          nb::arg("units"),
          "The work that loops of one run may do: some 4 units for an operator and one for each "
          "1024 elements of its tensors.")
      .def("execute", [](MethodHandle& self) { self.runner().execute(); })
      .def(
          "get_outputs",
          [](nb::object self, bool clone) {
            return nb::cast<MethodHandle&>(self).runner().outputs(clone, self);
          },
          nb::arg("clone_outputs") = true,
          "With clone_outputs=False tensors alias the method's memory: the next run overwrites "
          "them.")
      .def("call", call, nb::arg("inputs") = nb::tuple(), nb::arg("clone_outputs") = true)
      .def("__call__", call, nb::arg("inputs") = nb::tuple(), nb::arg("clone_outputs") = true)
      .def(
          "get_attribute",
          [](nb::object self, const std::string& name) {
            return nb::cast<MethodHandle&>(self).runner().attribute(name, self);
          },
          nb::arg("name"), "The tensor of a named mutable buffer; it aliases the method's memory.")
      .def(
          "method_meta", [](MethodHandle& self) { return self.runner().meta(); },
          nb::keep_alive<0, 1>());
}

void bind_program(nb::module_& m) {
  nb::class_<LoadedProgram>(m, "ExecuTorchProgram", "A verified program, none of it running yet.")
      .def("num_methods", [](const LoadedProgram& p) { return p.program().num_methods(); })
      .def(
          "get_method_name",
          [](const LoadedProgram& p, size_t i) {
            LogCapture log;
            const auto name = p.program().get_method_name(i);
            log.check(name.error(), "method " + std::to_string(i));
            return std::string(*name);
          },
          nb::arg("method_index"))
      .def(
          "load_method",
          [](ProgramPtr self, const std::string& name) {
            return std::make_unique<MethodHandle>(std::move(self), name);
          },
          nb::arg("method_name"))
      .def("method_meta", &LoadedProgram::method_meta, nb::arg("method_name"),
           nb::keep_alive<0, 1>())
      .def("_argument_names", &LoadedProgram::argument_names, nb::arg("method_name"),
           "What the exported model calls the method's inputs, and its outputs: \"\" for each that "
           "the program does not say.")
      .def("has_etdump", &LoadedProgram::has_recording)
      .def(
          "write_etdump_result_to_file",
          [](const LoadedProgram& self, const std::string& path,
             const std::optional<std::string>& debug_buffer_path) {
            self.recording().write(path, debug_buffer_path);
          },
          nb::arg("path"), nb::arg("debug_buffer_path") = nb::none());
}

void bind_module(nb::module_& m) {
  const auto run = [](nb::object self, const std::string& name, nb::object inputs, bool clone) {
    return nb::cast<ModuleHandle&>(self).runner(name).call(inputs, clone, self);
  };
  const auto forward = [run](nb::object self, nb::object inputs, bool clone) {
    return run(self, "forward", inputs, clone);
  };
  nb::class_<ModuleHandle>(m, "ExecuTorchModule", "A program with all of its methods loaded.")
      .def("forward", forward, nb::arg("inputs") = nb::tuple(), nb::arg("clone_outputs") = true)
      .def("__call__", forward, nb::arg("inputs") = nb::tuple(), nb::arg("clone_outputs") = true)
      .def("run_method", run, nb::arg("method_name"), nb::arg("inputs") = nb::tuple(),
           nb::arg("clone_outputs") = true)
      .def(
          "plan_execute",
          [](nb::object self, const std::string& name, bool clone) {
            Runner& runner = nb::cast<ModuleHandle&>(self).runner(name);
            runner.execute();
            return runner.outputs(clone, self);
          },
          nb::arg("method_name"), nb::arg("clone_outputs") = true,
          "Runs again with the inputs of the last run.")
      .def("method_names", [](const ModuleHandle& self) { return self.program().method_names(); })
      .def(
          "method_meta",
          [](const ModuleHandle& self, const std::string& name) {
            return self.program().method_meta(name);
          },
          nb::arg("method_name"), nb::keep_alive<0, 1>())
      .def(
          "joint_outputs",
          [](ModuleHandle& self, const std::string& name) {
            const auto joint = self.joint_outputs(name);
            nb::list names;
            for (const std::string_view each : joint.names()) names.append(std::string(each));
            return nb::make_tuple(joint.first_gradient(), joint.first_parameter(), names);
          },
          nb::arg("method_name"),
          "Of a training method: at which outputs its gradients and its parameters start, and the "
          "parameters' names.")
      .def("has_etdump", [](const ModuleHandle& self) { return self.program().has_recording(); })
      .def(
          "write_etdump_result_to_file",
          [](const ModuleHandle& self, const std::string& path,
             const std::optional<std::string>& debug_buffer_path) {
            self.program().recording().write(path, debug_buffer_path);
          },
          nb::arg("path"), nb::arg("debug_buffer_path") = nb::none());
}

void bind_bundled(nb::module_& m) {
  nb::class_<BundledHandle>(m, "BundledModule", "A program with test cases for its methods.")
      .def(
          "verify_result_with_bundled_expected_output",
          [](nb::object self, const std::string& method, size_t index, double rtol, double atol) {
            return nb::cast<BundledHandle&>(self).verify(method, index, rtol, atol, self);
          },
          nb::arg("method_name"), nb::arg("testset_idx"), nb::arg("rtol") = 1e-5,
          nb::arg("atol") = 1e-8,
          "Runs a test case; its outputs. RuntimeError where they are not what it expects.");
  m.def(
      "_load_bundled_program_from_buffer",
      [](nb::bytes buffer, size_t) { return std::make_unique<BundledHandle>(std::move(buffer)); },
      nb::arg("buffer"), nb::arg("non_const_pool_size") = 16384);
  m.def(
      "_load_for_executorch_from_bundled_program",
      [](const BundledHandle& bundle, std::optional<nb::bytes> data, bool etdump, size_t bytes) {
        return bundle.make_module({}, data, {etdump, bytes});
      },
      nb::arg("ptr"), nb::arg("data_map_buffer") = nb::none(), nb::arg("enable_etdump") = false,
      nb::arg("debug_buffer_size") = 0);
  m.def(
      "_load_for_executorch_from_bundled_program",
      [](const BundledHandle& bundle, const std::string& data_path, bool etdump, size_t bytes) {
        return bundle.make_module(data_path, {}, {etdump, bytes});
      },
      nb::arg("ptr"), nb::arg("data_path"), nb::arg("enable_etdump") = false,
      nb::arg("debug_buffer_size") = 0);
}

void bind_loading(nb::module_& m) {
  m.def(
      "_load_program",
      [](const std::string& path, bool etdump, size_t bytes, Verification verification,
         std::optional<std::string> data_path) {
        return load_path(path, data_path, {etdump, bytes}, verification);
      },
      nb::arg("path"), nb::arg("enable_etdump") = false, nb::arg("debug_buffer_size") = 0,
      nb::arg("program_verification") = Verification::Minimal, nb::arg("data_path") = nb::none());
  m.def(
      "_load_program_from_buffer",
      [](nb::bytes buffer, bool etdump, size_t bytes, Verification verification,
         std::optional<std::string> data_path) {
        return load_buffer(std::move(buffer), data_path, {}, {etdump, bytes}, verification);
      },
      nb::arg("buffer"), nb::arg("enable_etdump") = false, nb::arg("debug_buffer_size") = 0,
      nb::arg("program_verification") = Verification::Minimal, nb::arg("data_path") = nb::none());
  m.def(
      "_load_for_executorch",
      [](const std::string& path, std::optional<std::string> data_path, bool etdump, size_t bytes,
         Verification verification) {
        return std::make_unique<ModuleHandle>(
            load_path(path, data_path, {etdump, bytes}, verification));
      },
      nb::arg("program_path"), nb::arg("data_path") = nb::none(), nb::arg("enable_etdump") = false,
      nb::arg("debug_buffer_size") = 0,
      nb::arg("program_verification") = Verification::InternalConsistency);
  m.def(
      "_load_for_executorch_from_buffer",
      [](nb::bytes buffer, std::optional<nb::bytes> data_map_buffer, bool etdump, size_t bytes,
         Verification verification) {
        return std::make_unique<ModuleHandle>(
            load_buffer(std::move(buffer), {}, data_map_buffer, {etdump, bytes}, verification));
      },
      nb::arg("buffer"), nb::arg("data_map_buffer") = nb::none(), nb::arg("enable_etdump") = false,
      nb::arg("debug_buffer_size") = 0,
      nb::arg("program_verification") = Verification::InternalConsistency);
}

void bind_registries(nb::module_& m) {
  m.def("_get_operator_names", [] {
    std::vector<std::string> names;
    for (const runtime::Kernel& kernel : runtime::get_registered_kernels()) {
      names.emplace_back(kernel.name_);
    }
    return names;
  });
  m.def("_get_registered_backend_names", [] {
    std::vector<std::string> names;
    for (size_t i = 0; i < runtime::get_num_registered_backends(); ++i) {
      names.emplace_back(*runtime::get_backend_name(i));
    }
    return names;
  });
  m.def(
      "_is_available",
      [](const std::string& name) {
        const auto* backend = runtime::get_backend_class(name.c_str());
        return backend != nullptr && backend->is_available();
      },
      nb::arg("backend_name"));
}

void bind_process(nb::module_& m) {
  m.def("_threadpool_get_thread_count",
        [] { return threadpool::get_threadpool()->get_thread_count(); });
  m.def(
      "_unsafe_reset_threadpool",
      [](uint32_t num_threads) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // it is the function this one exposes
        threadpool::get_threadpool()->_unsafe_reset_threadpool(num_threads);
#pragma GCC diagnostic pop
      },
      nb::arg("num_threads"));
  m.def("_set_fusion_enabled", &optimized::set_fusion_enabled, nb::arg("enabled"),
        "Whether methods loaded from now on are fused; returns what was set before.");
  m.def("_last_fusion", &optimized::last_fusion,
        "A line for each fused instruction of the method that was loaded last.");
  // The profiler that ETDump replaced: it is never compiled in, so there is never a result.
  m.def("_dump_profile_results", [] { return nb::bytes("", 0); });
  m.def("_reset_profile_results", [] {});
  m.def(
      "_create_profile_block", [](const std::string&) {}, nb::arg("name"));
}

}  // namespace
}  // namespace executorch::extension::pybindings

NB_MODULE(_C, m) {
  using namespace executorch::extension::pybindings;
  nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no error
  executorch::runtime::runtime_init();
  LogCapture::install();
  translate_errors_of_any_text();
  nb::enum_<Verification>(m, "Verification", nb::is_arithmetic())
      .value("Minimal", Verification::Minimal)
      .value("InternalConsistency", Verification::InternalConsistency);
  bind_metadata(m);
  bind_method(m);
  bind_program(m);
  bind_module(m);
  bind_loading(m);
  bind_bundled(m);
  bind_registries(m);
  bind_process(m);
  bind_training(m);
}
