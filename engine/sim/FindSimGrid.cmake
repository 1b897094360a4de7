# SimGrid over its pkg-config file, as the imported target SimGrid::SimGrid.
#
# Debian ships no CMake file, and upstream's own FindSimGrid.cmake sets CMAKE_CXX_STANDARD and points the MPI
# compilers at SimGrid's, neither of which is ours to change.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_SIMGRID QUIET simgrid)
endif()
find_path(SimGrid_INCLUDE_DIR simgrid/version.h HINTS ${PC_SIMGRID_INCLUDE_DIRS} ${SimGrid_PATH}/include)
find_library(SimGrid_LIBRARY simgrid HINTS ${PC_SIMGRID_LIBRARY_DIRS} ${SimGrid_PATH}/lib)

if(SimGrid_INCLUDE_DIR)
  include(HeaderVersion)
  tandem_header_version(SimGrid_VERSION ${SimGrid_INCLUDE_DIR}/simgrid/version.h SIMGRID_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid
  REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR
  VERSION_VAR SimGrid_VERSION)
mark_as_advanced(SimGrid_INCLUDE_DIR SimGrid_LIBRARY)

if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
  set_target_properties(SimGrid::SimGrid PROPERTIES
    IMPORTED_LOCATION ${SimGrid_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${SimGrid_INCLUDE_DIR})
endif()
