# WebAssembly by Emscripten (Debian's emscripten), with vectors of 128 bits.
find_program(EXECUTORCH_EMCC emcc REQUIRED)
file(REAL_PATH ${EXECUTORCH_EMCC} emcc)
get_filename_component(emscripten ${emcc} DIRECTORY)
include(${emscripten}/cmake/Modules/Platform/Emscripten.cmake)

# What browsers have had since 2023 (Safari 16.4). Exceptions are those of WebAssembly: the methods'
# fusion and the C interface turn them into errors.
set(features "-msimd128 -mbulk-memory -mnontrapping-fptoint")
set(CMAKE_C_FLAGS_INIT "${features}")
set(CMAKE_CXX_FLAGS_INIT "${features} -fwasm-exceptions")

# Libraries of headers: those of this machine, without what else its include folder has.
set(packages ${CMAKE_BINARY_DIR}/packages)
list(APPEND CMAKE_FIND_ROOT_PATH ${packages})
get_property(tries GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT tries)
  file(MAKE_DIRECTORY ${packages}/include)
  foreach(library "hwy hwy::hwy hwy" "FlatBuffers flatbuffers::flatbuffers flatbuffers"
                  "nlohmann_json nlohmann_json::nlohmann_json nlohmann" "CLI11 CLI11::CLI11 CLI")
    separate_arguments(library)
    list(GET library 0 package)
    list(GET library 1 target)
    list(GET library 2 folder)
    file(CREATE_LINK /usr/include/${folder} ${packages}/include/${folder} SYMBOLIC)
    file(WRITE ${packages}/lib/cmake/${package}/${package}Config.cmake
         "add_library(${target} INTERFACE IMPORTED)\n"
         "target_include_directories(${target} INTERFACE ${packages}/include)\n")
  endforeach()
endif()
