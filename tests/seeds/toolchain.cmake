# Of the tutorial projects, whose commands have no room for options. A precompiled header is a file
# of one build folder, and what is compiled with it can not come from the compiler cache.
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
