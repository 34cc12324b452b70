# pthreadpool::pthreadpool, the library and its header. Some releases have no package file of their own.
find_package(pthreadpool QUIET CONFIG)
if(TARGET pthreadpool::pthreadpool)
  set(pthreadpool_FOUND TRUE)
  return()
endif()
find_library(PTHREADPOOL_LIBRARY pthreadpool)
find_path(PTHREADPOOL_INCLUDE_DIR pthreadpool.h)
mark_as_advanced(PTHREADPOOL_LIBRARY PTHREADPOOL_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pthreadpool DEFAULT_MSG PTHREADPOOL_LIBRARY
                                  PTHREADPOOL_INCLUDE_DIR)
if(pthreadpool_FOUND)
  add_library(pthreadpool::pthreadpool UNKNOWN IMPORTED GLOBAL)
  set_target_properties(
    pthreadpool::pthreadpool PROPERTIES IMPORTED_LOCATION ${PTHREADPOOL_LIBRARY}
                                        INTERFACE_INCLUDE_DIRECTORIES ${PTHREADPOOL_INCLUDE_DIR})
endif()
