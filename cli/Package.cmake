# `cpack` in the build folder: a Debian package of what cmake --install installs, with the packages that it needs. Not with
# the cuda engine, whose libraries are not in Debian's packages.
if(TARGET tandem_engine_cuda)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR Tandem)
set(CPACK_PACKAGE_CONTACT "The developers of Tandem")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulation and test of distribution strategies")
set(CPACK_PACKAGE_DESCRIPTION "Runs one distribution strategy, in the sense of TensorFlow's tf.distribute, on the
devices of this machine, on processes that MPI starts, and on a simulated cluster; reports where the time of
a step goes, and compares what was measured with what is predicted.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # by dpkg-shlibdeps, of dpkg-dev
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
# For programs that are built against Tandem's libraries.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libsimgrid-dev, libboost-dev, libopenblas-dev, libyaml-cpp-dev, nlohmann-json3-dev, libfmt-dev, libhwloc-dev, libpugixml-dev, libcli11-dev, zlib1g-dev")
include(CPack)
