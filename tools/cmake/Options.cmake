# Every option a user may set, with our default. An option only decides what the default build
# includes: each target is always defined, so linking one never depends on an option, and options
# of other releases are accepted without effect.
if(CMAKE_SOURCE_DIR STREQUAL EXECUTORCH_ROOT)
  set(EXECUTORCH_TOP_LEVEL ON)
else()
  set(EXECUTORCH_TOP_LEVEL OFF)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(EXECUTORCH_ENABLE_LOGGING "Compile log and error messages in" ON)
set(EXECUTORCH_LOG_LEVEL "Info" CACHE STRING "Lowest level logged: Debug, Info, Error or Fatal")
option(EXECUTORCH_ENABLE_EVENT_TRACER "Compile in what reports to event tracers" ON)
option(EXECUTORCH_OPTIMIZE_SIZE "Compile for size" OFF)
option(EXECUTORCH_USE_SANITIZER "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(EXECUTORCH_USE_THREAD_SANITIZER "ThreadSanitizer" OFF)
option(EXECUTORCH_BUILD_TESTS "C++ tests" ${EXECUTORCH_TOP_LEVEL})
option(EXECUTORCH_BUILD_PYBIND "The two Python modules" OFF)
option(EXECUTORCH_BUILD_EXECUTOR_RUNNER "The executor_runner command" ${EXECUTORCH_TOP_LEVEL})
option(EXECUTORCH_BUILD_EXAMPLES "The programs under examples/" OFF)
option(EXECUTORCH_WERROR "Warnings are errors" OFF)
