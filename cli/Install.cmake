# What `cmake --install` puts where, for use of the command and of the libraries: find_package(Tandem).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tandem)

install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES cli/copyright LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tandem)
set(manual ${PROJECT_BINARY_DIR}/generated/manual)
install(FILES ${manual}/man RENAME tandem.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/bash RENAME tandem DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual}/zsh RENAME _tandem DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/fish RENAME tandem.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY topologies/catalog DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/topologies)
install(DIRECTORY scenarios/models scenarios/examples scenarios/data DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/scenarios)
install(FILES scenarios/scenario.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/scenarios)

# tandem_strategies is Tandem::strategies, in an install as in this tree.
function(tandem_install_libraries export)
  foreach(library ${ARGN})
    string(REGEX REPLACE "^tandem_" "" name ${library})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${ARGN} EXPORT ${export} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${export} NAMESPACE Tandem:: DESTINATION ${package_dir})
endfunction()

get_property(libraries GLOBAL PROPERTY TANDEM_LIBRARIES)
if(TARGET tandem_cuda_kernels)
  list(APPEND libraries tandem_cuda_kernels)
endif()
tandem_install_libraries(TandemTargets ${libraries})
if(TARGET tandem_strategy_conformance)
  tandem_install_libraries(TandemConformanceTargets tandem_strategy_conformance tandem_division_conformance)
  set(headers tests/conformance/worlds.h tests/conformance/kit/strategy_conformance.h
    tests/conformance/kit/division/division_conformance.h)
endif()

# The public headers, where they lie in this tree.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt public_patterns REGEX "^[a-z]")
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt private_patterns REGEX "^!")
list(TRANSFORM private_patterns REPLACE "^!" "")
file(GLOB public RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${public_patterns})
file(GLOB private RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${private_patterns})
list(REMOVE_ITEM public ${private})
foreach(header ${headers} ${public})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/${folder})
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TandemConfig.cmake.in ${PROJECT_BINARY_DIR}/TandemConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TandemConfig.cmake ${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake
  engine/HeaderVersion.cmake engine/sim/FindSimGrid.cmake engine/cuda/FindNCCL.cmake DESTINATION ${package_dir})
