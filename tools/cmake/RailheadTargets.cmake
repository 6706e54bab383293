# Helpers that keep the folders' CMakeLists to what is special about them.
include(GoogleTest)

# railhead_library(NAME SOURCES ... LINK ...): a static layer library; headers are included as "folder/file.hpp".
function(railhead_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_include_directories(${name} SYSTEM PUBLIC ${TL_EXPECTED_INCLUDE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_LINK} Threads::Threads)
endfunction()

# railhead_public_library(NAME SOURCES ... LINK ...): the shared library that applications link, with its public headers
# under include/. What it is made of stays inside: LINK is private, and symbols of static libraries are not exported.
function(railhead_public_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} SHARED ${arg_SOURCES})
  add_library(railhead::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  if(NOT RAILHEAD_SANITIZER)  # a sanitizer's run-time is resolved in the program
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# What a sanitizer's run-time is told in every test; empty in other builds.
if(RAILHEAD_SANITIZER STREQUAL "address")
  set(RAILHEAD_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
                                "UBSAN_OPTIONS=print_stacktrace=1")
elseif(RAILHEAD_SANITIZER STREQUAL "thread")
  # die_after_fork=0: tests fork children out of programs that have threads. history_size=7: a stack that cannot be
  # restored matches no suppression (tests/conformance/tsan.supp).
  set(RAILHEAD_TEST_ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:second_deadlock_stack=1:history_size=7")
endif()

# railhead_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT seconds] [SERIAL] [NO_ASAN] [NO_TSAN]):
# one GoogleTest program, one ctest entry per test.
#   TIMEOUT  of each test, 120 s unless said
#   SERIAL   its tests assert times: ctest runs nothing beside them
#   NO_ASAN, NO_TSAN  the program does not fit that sanitizer: it is not built there
function(railhead_test name)
  cmake_parse_arguments(arg "SERIAL;NO_ASAN;NO_TSAN" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if((arg_NO_ASAN AND RAILHEAD_SANITIZER STREQUAL "address") OR (arg_NO_TSAN AND RAILHEAD_SANITIZER STREQUAL "thread"))
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. NO_PRETTY_VALUES TEST_LIST ${name}_tests DISCOVERY_TIMEOUT 60)
  # In a file that ctest reads after the discovery: gtest_discover_tests(PROPERTIES) cannot carry a list.
  set(properties_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
  file(CONFIGURE OUTPUT ${properties_file} @ONLY CONTENT [[
if(@name@_tests)
  set_tests_properties(${@name@_tests} PROPERTIES TIMEOUT @arg_TIMEOUT@ RUN_SERIAL @arg_SERIAL@
                       LABELS "@arg_LABELS@" ENVIRONMENT "@RAILHEAD_TEST_ENVIRONMENT@")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties_file})
endfunction()
