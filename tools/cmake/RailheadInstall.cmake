# What `cmake --install` lays down: programs, the library with its headers, CMake and pkg-config files, systemd units.
include(CMakePackageConfigHelpers)

foreach(program IN ITEMS epd epctl ep-bench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

if(TARGET railhead)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/railhead)
  install(TARGETS railhead EXPORT railhead LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY client/include/railhead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT railhead NAMESPACE railhead:: FILE railheadTargets.cmake DESTINATION ${package_dir})
  configure_package_config_file(tools/cmake/package/railheadConfig.cmake.in ${PROJECT_BINARY_DIR}/railheadConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/railheadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/railheadConfig.cmake ${PROJECT_BINARY_DIR}/railheadConfigVersion.cmake
          DESTINATION ${package_dir})
  file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(tools/cmake/package/railhead.pc.in ${PROJECT_BINARY_DIR}/railhead.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/railhead.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# The unit names the daemon by its whole path, which only the installation knows (cmake --install --prefix). systemd reads
# lib/ of /usr and /usr/local, never a multiarch folder.
install(CODE "
  set(epd \"${CMAKE_INSTALL_BINDIR}/epd\")
  cmake_path(ABSOLUTE_PATH epd BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/systemd/epd.service.in\" \"${PROJECT_BINARY_DIR}/epd.service\" @ONLY)")
install(FILES ${PROJECT_BINARY_DIR}/epd.service DESTINATION lib/systemd/system)
install(FILES systemd/epd-sysusers.conf DESTINATION lib/sysusers.d RENAME epd.conf)
install(FILES systemd/epd-tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME epd.conf)
