# Environment of tests that run whole daemons, for the folder that includes this.
# Intel's libraries below libfabric print a stack and end the process at a signal of ours unless told not to.
list(APPEND RAILHEAD_TEST_ENVIRONMENT "IPATH_NO_BACKTRACE=1")
if(RAILHEAD_SANITIZER STREQUAL "thread")
  # Libraries that are not built with TSan: it cannot see how they order what they hand between threads.
  list(TRANSFORM RAILHEAD_TEST_ENVIRONMENT
       REPLACE "^(TSAN_OPTIONS=.*)$"
               "\\1:ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/tests/conformance/tsan.supp")
endif()
