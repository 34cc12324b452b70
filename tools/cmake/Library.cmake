# How a library of ours is declared, in this build and by what an installed package builds.
# What loops over arrays is compiled for speed whatever the build type, except to be debugged, made
# small or watched by a sanitizer, under which it takes minutes.
set(EXECUTORCH_FAST_FLAGS $<$<NOT:$<CONFIG:Debug>>:-O3>)
if(EXECUTORCH_OPTIMIZE_SIZE OR EXECUTORCH_USE_SANITIZER OR EXECUTORCH_USE_THREAD_SANITIZER)
  set(EXECUTORCH_FAST_FLAGS "")
endif()

# Options for our own sources only, never for a user's.
if(NOT TARGET executorch_private_flags)
  add_library(executorch_private_flags INTERFACE)
  target_compile_options(
    executorch_private_flags
    INTERFACE -Wall -Wextra -Wno-psabi $<$<BOOL:${EXECUTORCH_WERROR}>:-Werror> -ffunction-sections
              -fdata-sections -fvisibility-inlines-hidden
              $<$<CXX_COMPILER_ID:AppleClang,Clang>:-Wno-unknown-pragmas> # GCC ivdep
              $<$<BOOL:${EXECUTORCH_OPTIMIZE_SIZE}>:-Os;-fno-asynchronous-unwind-tables>)
  if(EXECUTORCH_USE_SANITIZER OR EXECUTORCH_USE_THREAD_SANITIZER)
    # GCC 12 looks at instrumented code, and sees accesses that are not in the source.
    target_compile_options(
      executorch_private_flags
      INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)
  endif()
endif()
# The runtime needs neither; what talks to std containers of a user may opt out with EXCEPTIONS.
set(EXECUTORCH_BARE_FLAGS $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti>)

# et_library(name SOURCES a.cpp ... DEPS targets ... [EXCEPTIONS] [REGISTERS symbol])
#   REGISTERS: consumers pull in the object that defines this C symbol, whose static initializer
#   registers kernels or backends; no whole-archive flags, and linking twice is harmless.
function(et_library name)
  cmake_parse_arguments(ARG "EXCEPTIONS" "REGISTERS" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
                                           CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC executorch_flags ${ARG_DEPS} PRIVATE
                                $<BUILD_INTERFACE:executorch_private_flags> ${ARG_PRIVATE_DEPS})
  if(NOT ARG_EXCEPTIONS)
    target_compile_options(${name} PRIVATE ${EXECUTORCH_BARE_FLAGS})
  endif()
  if(ARG_REGISTERS)
    set_target_properties(${name} PROPERTIES EXECUTORCH_REGISTERS ${ARG_REGISTERS})
    if(APPLE)
      target_link_options(${name} INTERFACE "LINKER:-u,_${ARG_REGISTERS}")
    elseif(EMSCRIPTEN) # whose linker else drops initializers of what nothing refers to
      target_link_options(${name} INTERFACE "LINKER:--export=${ARG_REGISTERS}")
    else()
      target_link_options(${name} INTERFACE "LINKER:--undefined=${ARG_REGISTERS}")
    endif()
  endif()
endfunction()
