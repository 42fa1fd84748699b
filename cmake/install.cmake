# `cmake --install build/release --prefix DIR`: the command, the library, its headers, and what find_package(shoal) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS shoal)
install(DIRECTORY include/shoal TYPE INCLUDE)
install(DIRECTORY deploy/grafana deploy/prometheus DESTINATION ${CMAKE_INSTALL_DATADIR}/shoal) # docs/metrics.md
install(EXPORT shoalTargets NAMESPACE shoal:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/shoal)
file(WRITE ${PROJECT_BINARY_DIR}/shoalConfig.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/shoalTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shoalConfig.cmake ${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/shoal)
