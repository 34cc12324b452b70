# How a room declares its targets.
find_package(Threads REQUIRED)
if(SKBUILD) # a wheel: below the package's folder
  set(CMAKE_INSTALL_LIBDIR executorch/lib)
  set(CMAKE_INSTALL_INCLUDEDIR executorch/include)
  set(CMAKE_INSTALL_DATADIR executorch/share)
endif()
include(GNUInstallDirs)

add_library(executorch_flags INTERFACE)
target_compile_features(executorch_flags INTERFACE cxx_std_17)
set(EXECUTORCH_GENERATED_DIR ${CMAKE_CURRENT_BINARY_DIR}/generated)
foreach(folder ${EXECUTORCH_ROOT} ${EXECUTORCH_ROOT}/executorch/runtime/core/portable_type/c10
               ${EXECUTORCH_GENERATED_DIR})
  target_include_directories(executorch_flags INTERFACE $<BUILD_INTERFACE:${folder}>)
endforeach()
target_include_directories(
  executorch_flags
  INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/executorch/runtime/core/portable_type/c10>)
target_compile_definitions(
  executorch_flags
  INTERFACE C10_USING_CUSTOM_GENERATED_MACROS ET_MIN_LOG_LEVEL=${EXECUTORCH_LOG_LEVEL}
            $<$<NOT:$<BOOL:${EXECUTORCH_ENABLE_LOGGING}>>:ET_LOG_ENABLED=0>
            $<$<NOT:$<BOOL:${EXECUTORCH_ENABLE_EVENT_TRACER}>>:ET_EVENT_TRACER_DISABLED>)
if(EXECUTORCH_USE_SANITIZER)
  # vptr looks at run-time type information, which the runtime has none of.
  target_compile_options(executorch_flags INTERFACE -fsanitize=address,undefined
                                                    -fno-sanitize=vptr
                                                    -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=undefined)
  target_link_options(executorch_flags INTERFACE -fsanitize=address,undefined)
elseif(EXECUTORCH_USE_THREAD_SANITIZER)
  target_compile_options(executorch_flags INTERFACE -fsanitize=thread)
  target_link_options(executorch_flags INTERFACE -fsanitize=thread)
endif()

include(Library)

# et_executable(name SOURCES ... DEPS ...)
function(et_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
                                           CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE executorch_flags executorch_private_flags ${ARG_DEPS})
endfunction()

# et_optimize_lightly(targets ...): for sources that compute little and include headers full of
# templates, which -O3 compiles much longer and makes no faster.
function(et_optimize_lightly)
  foreach(name ${ARGN})
    # GCC 12 sees overflows in optimized std::string and std::vector code that cannot happen.
    target_compile_options(${name} PRIVATE -O1 -Wno-restrict -Wno-stringop-overflow)
  endforeach()
endfunction()

# et_tool(targets ...): tools that format text, parse options and read and write JSON.
function(et_tool)
  et_optimize_lightly(${ARGN})
  foreach(name ${ARGN})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  endforeach()
  et_precompile(
    tools TARGETS ${ARGN}
    HEADERS <nlohmann/json.hpp> <algorithm> <charconv> <chrono> <cmath> <fstream> <iostream> <map>
            <optional> <set> <sstream> <string> <vector> <executorch/runtime/executor/method.h>
            <executorch/schema/program_generated.h>)
endfunction()

# et_precompile(group TARGETS a ... HEADERS <x.h> ...): reads the headers once for all targets of a
# group, which have equal flags; the first that is named compiles them. Sources include what they use
# all the same: builds with CMAKE_DISABLE_PRECOMPILE_HEADERS, as for ARM, see to it.
function(et_precompile group)
  cmake_parse_arguments(ARG "" "" "TARGETS;HEADERS" ${ARGN})
  foreach(target ${ARG_TARGETS})
    get_property(first GLOBAL PROPERTY EXECUTORCH_PRECOMPILES_${group})
    if(first)
      target_precompile_headers(${target} REUSE_FROM ${first})
    else()
      target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
      set_property(GLOBAL PROPERTY EXECUTORCH_PRECOMPILES_${group} ${target})
    endif()
  endforeach()
endfunction()

# et_cxx_test(name [VECTORS] [CXX17] SOURCES ... EXTRA_LIBS ...): a googletest binary, one ctest entry.
# Tests are not optimized: most of their code runs once, and optimizing it would take longer than that.
#   VECTORS  with the flags of vector_headers, and lightly optimized: its loops take a while
#   CXX17    compiled as C++17, which is what headers for users promise
function(et_cxx_test name)
  if(NOT EXECUTORCH_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "VECTORS;CXX17" "" "SOURCES;EXTRA_LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  et_executable(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_EXTRA_LIBS} GTest::gtest GTest::gtest_main)
  if(ARG_VECTORS)
    et_optimize_lightly(${name})
  else()
    target_compile_options(${name} PRIVATE -O0)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${EXECUTORCH_ROOT})
  # What tests write stays in the build folder, where other builds' tests do not meet it.
  set(files ${CMAKE_CURRENT_BINARY_DIR}/${name}.files)
  file(MAKE_DIRECTORY ${files})
  set_property(TEST ${name} PROPERTY ENVIRONMENT TEST_TMPDIR=${files}/)
  if(ARG_CXX17)
    set_target_properties(${name} PROPERTIES CXX_STANDARD 17)
    return()
  endif()
  # Most of the time to compile a test without optimization is that of googletest's header.
  et_precompile(gtest_${ARG_VECTORS} TARGETS ${name} HEADERS <gtest/gtest.h>)
endfunction()

if(EXECUTORCH_BUILD_TESTS)
  enable_testing()
endif()
