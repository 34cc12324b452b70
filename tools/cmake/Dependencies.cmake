# Libraries of headers that the commands and tools are made of: those of the system, else pinned
# releases. With FETCHCONTENT_FULLY_DISCONNECTED nothing is downloaded: what needs them is left out.
include(FetchContent)

# et_find_headers(package repository tag options ...): defines package::package, where it can be had.
# OPTIONS are those of the release that are not wanted.
function(et_find_headers package repository tag)
  if(TARGET ${package}::${package})
    return()
  endif()
  foreach(option ${ARGN})
    set(${option} OFF CACHE INTERNAL "")
  endforeach()
  message(STATUS "${package} was not found; using ${repository}, ${tag}")
  string(TOLOWER ${package} name)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
  if(TARGET ${package}) # their warnings are not ours
    get_target_property(folders ${package} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${package} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${folders}")
  endif()
endfunction()

find_package(nlohmann_json QUIET)
et_find_headers(nlohmann_json https://github.com/nlohmann/json.git v3.11.2 JSON_BuildTests JSON_Install)
find_package(CLI11 QUIET)
et_find_headers(CLI11 https://github.com/CLIUtils/CLI11.git v2.1.2 CLI11_BUILD_DOCS CLI11_BUILD_EXAMPLES
                CLI11_BUILD_TESTS CLI11_INSTALL CLI11_SINGLE_FILE)
