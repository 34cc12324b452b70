# What looks at programs and at what they did, for the commands above: descriptions, profiles, memory
# plans, reports.
if(NOT TARGET nlohmann_json::nlohmann_json)
  message(STATUS "The tools that look at programs are not built: they need nlohmann-json")
  return()
endif()
et_library(
  devtools_inspect EXCEPTIONS
  SOURCES inspect/describe.cpp inspect/describe_plan.cpp inspect/diff.cpp inspect/file_loader.cpp
          inspect/other_kind.cpp inspect/output_file.cpp inspect/strip.cpp inspect/table.cpp inspect/text.cpp
  DEPS executorch_core nlohmann_json::nlohmann_json)
et_library(
  devtools_profiler EXCEPTIONS
  SOURCES profiler/groups.cpp profiler/profile.cpp profiler/profile_json.cpp
          profiler/profile_text.cpp profiler/profile_trace.cpp profiler/recorder.cpp
          profiler/work.cpp profiler/work_rules.cpp
  DEPS devtools_inspect)
set(operator_work ${EXECUTORCH_GENERATED_DIR}/executorch/devtools/profiler/operator_work.inc)
et_operator_work(${operator_work} portable_kernels quantized_kernels)
target_sources(devtools_profiler PRIVATE ${operator_work})
et_library(
  devtools_memory EXCEPTIONS
  SOURCES memory/memory_plan.cpp memory/memory_svg.cpp memory/memory_text.cpp memory/svg.cpp
          ${EXECUTORCH_ROOT}/executorch/exir/native/offset_planner.cpp
  DEPS devtools_inspect)
et_library(
  devtools_report EXCEPTIONS
  SOURCES report/graph_svg.cpp report/page.cpp report/report.cpp report/roofline_svg.cpp
  DEPS devtools_memory devtools_profiler)
et_tool(devtools_inspect devtools_memory devtools_profiler devtools_report)
if(TARGET executor_testing)
  et_cxx_test(
    devtools_inspect_test
    SOURCES inspect/describe_test.cpp inspect/files_test.cpp
    EXTRA_LIBS devtools_inspect executor_testing)
  et_cxx_test(
    devtools_profiler_test
    SOURCES profiler/profiler_test.cpp
    EXTRA_LIBS devtools_profiler executor_testing)
endif()
et_cxx_test(devtools_memory_test SOURCES memory/memory_test.cpp EXTRA_LIBS devtools_memory)
