# Functions that build files written for other releases call on our targets. Registration libraries
# already pull in their registration themselves (see et_library), so on those nothing is left to do;
# a user's own registration library gets what it asks for.

# Consumers of `target` link all of its objects, so that its static initializers run.
function(executorch_target_link_options_shared_lib target)
  get_target_property(registers ${target} EXECUTORCH_REGISTERS)
  if(registers)
    return()
  endif()
  if(APPLE)
    target_link_options(${target} INTERFACE "SHELL:LINKER:-force_load,$<TARGET_FILE:${target}>")
  elseif(MSVC)
    target_link_options(${target} INTERFACE "SHELL:LINKER:/WHOLEARCHIVE:$<TARGET_FILE:${target}>")
  else()
    target_link_options(
      ${target} INTERFACE
      "SHELL:LINKER:--whole-archive $<TARGET_FILE:${target}> LINKER:--no-whole-archive")
  endif()
endfunction()

# `target` links all objects of `library`.
function(executorch_target_whole_archive target library)
  if(APPLE)
    target_link_options(${target} PRIVATE "SHELL:LINKER:-force_load,$<TARGET_FILE:${library}>")
  elseif(MSVC)
    target_link_options(${target} PRIVATE "SHELL:LINKER:/WHOLEARCHIVE:$<TARGET_FILE:${library}>")
  else()
    target_link_options(
      ${target} PRIVATE
      "SHELL:LINKER:--whole-archive $<TARGET_FILE:${library}> LINKER:--no-whole-archive")
  endif()
  target_link_libraries(${target} PRIVATE ${library})
endfunction()

# Drops unused functions and data from an executable.
function(target_link_options_gc_sections target)
  if(APPLE)
    target_link_options(${target} PRIVATE "LINKER:-dead_strip")
  elseif(NOT MSVC)
    target_link_options(${target} PRIVATE "LINKER:--gc-sections")
  endif()
endfunction()

# Other spellings of the first function.
foreach(
  name
  target_link_options_shared_lib
  executorch_kernel_link_options
  executorch_macos_kernel_link_options
  executorch_msvc_kernel_link_options
  kernel_link_options
  macos_kernel_link_options
  msvc_kernel_link_options)
  cmake_language(EVAL CODE "
    function(${name} target)
      executorch_target_link_options_shared_lib(\${target})
    endfunction()")
endforeach()
