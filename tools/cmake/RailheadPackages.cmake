# Every package the build uses. A required one that is absent fails here with the name of its Debian package; optional
# ones are said and left out.

# railhead_missing(WHAT DEBIAN_PACKAGE): ends the configure with what to do.
function(railhead_missing what debian_package)
  message(FATAL_ERROR "${what} is missing: run tools/setup, or apt-get install ${debian_package}")
endfunction()

# railhead_find_package(NAME DEBIAN_PACKAGE): a macro, as packages set variables for the caller.
macro(railhead_find_package name debian_package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    railhead_missing(${name} ${debian_package})
  endif()
endmacro()

# railhead_find_module(NAME DEBIAN_PACKAGE): a pkg-config module, as the target PkgConfig::NAME.
macro(railhead_find_module name debian_package)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${name})
  if(NOT ${name}_FOUND)
    railhead_missing(${name} ${debian_package})
  endif()
endmacro()

find_package(Threads REQUIRED)
railhead_find_package(PkgConfig pkg-config)
railhead_find_package(CapnProto libcapnp-dev)
railhead_find_package(CLI11 libcli11-dev)
railhead_find_package(spdlog libspdlog-dev)
railhead_find_package(tomlplusplus libtomlplusplus-dev)
railhead_find_package(nlohmann_json nlohmann-json3-dev)
railhead_find_package(cppzmq cppzmq-dev)
railhead_find_package(ZLIB zlib1g-dev)
railhead_find_module(libfabric libfabric-dev)
railhead_find_module(libsystemd libsystemd-dev)
railhead_find_module(hwloc libhwloc-dev)

find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp)
if(NOT TL_EXPECTED_INCLUDE_DIR)
  railhead_missing(tl/expected.hpp libexpected-dev)
endif()

if(BUILD_TESTING)
  railhead_find_package(GTest "libgtest-dev libgmock-dev")
endif()

find_package(MPI COMPONENTS CXX QUIET)
if(NOT MPI_CXX_FOUND)
  message(STATUS "optional part absent: MPI (libopenmpi-dev), the MPI peers of the benchmark are not built")
endif()
message(STATUS "optional part absent: CUDA, which this release does not use: ranks work in host memory only")
find_program(RAILHEAD_SPIN spin)
if(NOT RAILHEAD_SPIN)
  message(STATUS "optional part absent: spin, the model of the progress rules is not checked")
endif()
