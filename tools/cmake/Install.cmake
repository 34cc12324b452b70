# What an application needs of this project: `cmake --install` puts it into a prefix, or into the folder
# of the Python package, and find_package(executorch) finds it there. Targets have the same names in a
# prefix and in a project that adds this one as a folder: those of the folders' CMakeLists.txt, each
# also with executorch:: before it. executorch::executorch is everything that an application needs.
include(CMakePackageConfigHelpers)

# In libexecutorch, too: where that is used, these names stand for it.
set(EXECUTORCH_PARTS_OF_SHARED
    program_schema
    executorch_core
    executorch_cpu
    executorch
    kernels_util_all_deps
    portable_kernels
    optimized_fusion
    portable_ops_lib
    quantized_kernels
    quantized_ops_lib
    optimized_kernels
    optimized_ops_lib
    optimized_portable_kernels
    optimized_portable_ops_lib
    optimized_native_cpu_ops_lib
    quantized_pybind_kernels_lib
    quantized_ops_pybind_lib
    cpublas
    eigen_blas
    llm_kernels
    custom_ops
    xnnpack_backend
    extension_data_loader
    extension_memory_allocator
    extension_tensor
    extension_flat_tensor
    extension_named_data_map
    extension_module_static
    extension_module
    extension_threadpool
    extension_evalue_util
    extension_runner_util
    extension_training
    etdump
    bundled_program)
# On top of those or of libexecutorch.
set(EXECUTORCH_OTHER_PARTS
    executorch_all
    executorch_runtime
    executorch_kernels
    executorch_backends
    executorch_extensions
    extension_aten_util
    extension_llm_cache
    extension_llm_sampler
    extension_llm_constraint
    extension_llm_jinja
    extension_llm_runner
    tokenizers
    bundled_module
    flatccrt)
# Further names of targets: those of upstream's tree and of its wheel.
set(EXECUTORCH_FURTHER_NAMES
    executorch_no_prim_ops=executorch_core
    executorch-shared=executorch_shared
    executorch::kernels=executorch_kernels
    executorch::backends=executorch_backends
    executorch::extensions=executorch_extensions
    executorch::runtime=executorch_runtime
    executorch::shared=executorch_shared
    executorch::kernels_optimized=optimized_native_cpu_ops_lib
    executorch::kernels_quantized=quantized_ops_lib
    executorch::backend_xnnpack=xnnpack_backend
    executorch::threadpool=extension_threadpool
    tokenizers::tokenizers=tokenizers)

# The smallest set with which a program without delegates is loaded: operators are linked beside it.
add_library(executorch_runtime INTERFACE)
target_link_libraries(
  executorch_runtime INTERFACE executorch extension_data_loader extension_flat_tensor
                               extension_module_static extension_tensor)
# Everything that an application needs. With EXECUTORCH_BUILD_SHARED it is one shared library.
add_library(executorch_all INTERFACE)
if(EXECUTORCH_BUILD_SHARED)
  target_link_libraries(executorch_all INTERFACE executorch_shared)
else()
  target_link_libraries(
    executorch_all INTERFACE executorch_runtime executorch_kernels executorch_backends
                             executorch_extensions custom_ops)
endif()
add_library(executorch::executorch ALIAS executorch_all)

set(exported "")
foreach(target executorch_flags executorch_shared executorch_c ${EXECUTORCH_PARTS_OF_SHARED}
               ${EXECUTORCH_OTHER_PARTS} executorch_selected_kernels)
  if(NOT TARGET ${target})
    list(REMOVE_ITEM EXECUTORCH_OTHER_PARTS ${target})
    continue()
  endif()
  list(APPEND exported ${target})
  set_property(TARGET ${target} APPEND PROPERTY EXPORT_PROPERTIES EXECUTORCH_REGISTERS
                                                EXECUTORCH_KERNEL_SOURCES EXECUTORCH_KERNEL_OPTIONS)
  if(NOT TARGET executorch::${target})
    add_library(executorch::${target} ALIAS ${target})
  endif()
endforeach()
foreach(pair ${EXECUTORCH_FURTHER_NAMES})
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 target)
  if(NOT TARGET ${name})
    add_library(${name} ALIAS ${target})
  endif()
endforeach()
if(NOT EXECUTORCH_INSTALL)
  return()
endif()

# executorch::executorch is the sum of all; what is called executorch in the tree is the runtime with
# its own operators.
set_target_properties(executorch_all PROPERTIES EXPORT_NAME executorch)
set_target_properties(executorch PROPERTIES EXPORT_NAME prim_ops)
foreach(set Shared Static Other C)
  set(ExecuTorch${set} "")
endforeach()
list(APPEND ExecuTorchShared executorch_flags executorch_shared)
list(APPEND ExecuTorchC executorch_c)
list(APPEND ExecuTorchStatic ${EXECUTORCH_PARTS_OF_SHARED})
list(APPEND ExecuTorchOther ${EXECUTORCH_OTHER_PARTS})
if(TARGET executorch_selected_kernels)
  list(APPEND ExecuTorchStatic executorch_selected_kernels)
endif()
set(EXECUTORCH_NEEDS_HIGHWAY ON)
if(TARGET hwy) # was fetched
  set(EXECUTORCH_NEEDS_HIGHWAY OFF)
  list(APPEND ExecuTorchStatic hwy)
endif()
get_target_property(EXECUTORCH_NEEDS_PTHREADPOOL pthreadpool INTERFACE_LINK_LIBRARIES)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/executorch)
foreach(set ExecuTorchShared ExecuTorchStatic ExecuTorchOther ExecuTorchC)
  set(component executorch)
  if("${set}" STREQUAL "ExecuTorchC") # may be left out: it has all of the runtime once more
    set(component executorch_c)
  endif()
  install(
    TARGETS ${${set}} EXPORT ${set}Targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
  install(EXPORT ${set}Targets NAMESPACE executorch:: DESTINATION ${package} COMPONENT ${component})
endforeach()
# `cmake --install --strip`, as for wheels, leaves archives as they are.
if(CMAKE_STRIP AND NOT APPLE)
  set(archives "")
  foreach(target ${ExecuTorchStatic} ${ExecuTorchOther})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE_NAME:${target}>)
    endif()
  endforeach()
  install(
    CODE "if(CMAKE_INSTALL_DO_STRIP)
            set(archives \"${archives}\")
            list(TRANSFORM archives PREPEND
                 \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/\")
            execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \${archives})
          endif()" COMPONENT executorch)
endif()
configure_package_config_file(
  ${EXECUTORCH_ROOT}/tools/cmake/executorch-config.cmake.in executorch-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(executorch-config-version.cmake COMPATIBILITY SameMajorVersion)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/executorch-config.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/executorch-config-version.cmake
        ${EXECUTORCH_ROOT}/tools/cmake/Findpthreadpool.cmake
  DESTINATION ${package} COMPONENT executorch)

# Headers: our own, the forwarders of compat/headers.map, and those of the wire formats.
file(GLOB_RECURSE headers RELATIVE ${EXECUTORCH_ROOT} CONFIGURE_DEPENDS
     ${EXECUTORCH_ROOT}/executorch/*.h)
list(FILTER headers EXCLUDE REGEX "/(testing_util|testing|pybindings|native|command|server|inspect|\
memory|profiler|report|executor_runner)/|/testing\\.h$|example_program\\.h$|payload_[a-z]+\\.h$")
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT executorch)
endforeach()
install(
  DIRECTORY ${EXECUTORCH_GENERATED_DIR}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT executorch
  FILES_MATCHING
  PATTERN *.h
  PATTERN objects EXCLUDE
  PATTERN reflection EXCLUDE
  PATTERN aten_util EXCLUDE)

# What selective builds read: the functions, the generator, and the kernels' sources, below a root that
# looks like this one.
set(data ${CMAKE_INSTALL_DATADIR}/executorch)
install(
  FILES tools/cmake/Codegen.cmake tools/cmake/Library.cmake tools/cmake/Torch.cmake
        tools/cmake/Utils.cmake
  DESTINATION ${data}/tools/cmake COMPONENT executorch)
file(GLOB_RECURSE sources RELATIVE ${EXECUTORCH_ROOT} CONFIGURE_DEPENDS
     ${EXECUTORCH_ROOT}/executorch/codegen/*.py
     ${EXECUTORCH_ROOT}/executorch/schema/*.fbs
     ${EXECUTORCH_ROOT}/executorch/kernels/portable/*.cpp
     ${EXECUTORCH_ROOT}/executorch/kernels/prim_ops/*.cpp
     ${EXECUTORCH_ROOT}/executorch/kernels/quantized/*.cpp)
list(FILTER sources EXCLUDE REGEX "_test\\.(py|cpp)$")
foreach(source executorch/__init__.py executorch/kernels/portable/functions.h
               executorch/kernels/quantized/functions.h ${sources})
  get_filename_component(folder ${source} DIRECTORY)
  install(FILES ${source} DESTINATION ${data}/${folder} COMPONENT executorch)
endforeach()

# For tools without CMake: executorch.pc is libexecutorch, executorch-static.pc the archives,
# executorch-c.pc the C interface.
set(definitions $<TARGET_PROPERTY:executorch_flags,INTERFACE_COMPILE_DEFINITIONS>)
set(definitions "-D$<JOIN:$<FILTER:${definitions},EXCLUDE,^$>, -D>")
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
set(archives "-Wl,--start-group")
set(registrations "")
foreach(part ${EXECUTORCH_PARTS_OF_SHARED})
  get_target_property(symbol ${part} EXECUTORCH_REGISTERS)
  if(symbol)
    list(APPEND registrations -Wl,--undefined=${symbol})
  endif()
  list(APPEND archives -l:lib${part}.a)
endforeach()
list(APPEND archives -Wl,--end-group)
foreach(flavour "" -c -static)
  set(libraries "-L\${libdir} -lexecutorch")
  if(flavour STREQUAL "-c")
    set(libraries "-L\${libdir} -lexecutorch_c")
  elseif(flavour)
    list(JOIN registrations " " libraries)
    list(JOIN archives " " groups)
    set(libraries "-L\${libdir} ${libraries} ${groups} -lhwy -lpthreadpool -lstdc++ -lm -ldl -pthread")
  endif()
  file(
    GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/executorch${flavour}.pc
    CONTENT
      "prefix=\${pcfiledir}/${to_prefix}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: executorch
Description: Runs PyTorch programs that were exported ahead of time
Version: ${PROJECT_VERSION}
Cflags: -I\${includedir} -I\${includedir}/executorch/runtime/core/portable_type/c10 ${definitions}
Libs: ${libraries}
")
  set(component executorch)
  if(flavour STREQUAL "-c")
    set(component executorch_c)
  endif()
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/executorch${flavour}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endforeach()

# For builds of this alone: what `cmake --install` needs for the component executorch.
list(REMOVE_ITEM exported executorch_c)
add_custom_target(executorch_install_targets DEPENDS ${exported})
