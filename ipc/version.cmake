# Writes ipc/version.cpp into the build tree: the project's version and, in a git checkout, the commit.
set(RAILHEAD_BUILD_STRING "${PROJECT_VERSION}")
find_program(RAILHEAD_GIT git)
if(RAILHEAD_GIT)
  execute_process(COMMAND ${RAILHEAD_GIT} -C ${PROJECT_SOURCE_DIR} describe --always --dirty
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(described)
    string(APPEND RAILHEAD_BUILD_STRING " (${described})")
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.cpp.in ${PROJECT_BINARY_DIR}/ipc/version.cpp @ONLY)
