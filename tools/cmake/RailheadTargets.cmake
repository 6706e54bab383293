# Helpers that keep the folders' CMakeLists to what is special about them.

# railhead_library(NAME SOURCES ... LINK ...): a static layer library; headers are included as "folder/file.hpp".
function(railhead_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_include_directories(${name} SYSTEM PUBLIC ${TL_EXPECTED_INCLUDE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_LINK} Threads::Threads)
endfunction()

# railhead_test(NAME SOURCES ... LINK ... LABELS ... TIMEOUT seconds): one GoogleTest program, one ctest entry per test.
function(railhead_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
