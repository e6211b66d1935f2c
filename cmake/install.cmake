# make install: headers, the libraries, the program, pkg-config files, a CMake package, manual pages,
# completion of shells.
# A pkg-config file computes its prefix from its own path, so any --prefix at install time works.
file(RELATIVE_PATH RENYI_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
# What the static libraries need is named as libraries, not as modules: pkg-config would want the files
# of all modules also for the shared ones.
set(libs ${JANSSON_LIBRARIES} ${renyi_png_libs})
if(renyi_has_onednn)
  list(PREPEND libs dnnl)
endif()
list(TRANSFORM libs PREPEND -l)
list(JOIN libs " " RENYI_PC_LIBS)
set(libs ${renyi_png_libs})
if(renyi_has_pango)
  list(PREPEND libs ${PANGOCAIRO_LIBRARIES})
endif()
list(TRANSFORM libs PREPEND -l)
list(JOIN libs " " RENYI_PC_REPORT)
configure_file(cmake/renyi.pc.in renyi.pc @ONLY)
configure_file(cmake/renyi-report.pc.in renyi-report.pc @ONLY)
install(DIRECTORY include/renyi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS renyi_static renyi_report_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS renyi_shared renyi_report_shared EXPORT renyi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# find_package(renyi): the shared libraries as renyi::renyi and renyi::report. A program that links
# statically uses pkg-config --static.
include(CMakePackageConfigHelpers)
set(package_place ${CMAKE_INSTALL_LIBDIR}/cmake/renyi)
set_target_properties(renyi_shared PROPERTIES EXPORT_NAME renyi)
set_target_properties(renyi_report_shared PROPERTIES EXPORT_NAME report)
install(EXPORT renyi NAMESPACE renyi:: FILE renyi-config.cmake DESTINATION ${package_place})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/renyi-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/renyi-config-version.cmake DESTINATION ${package_place})
install(TARGETS renyi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_BINARY_DIR}/renyi.pc ${CMAKE_BINARY_DIR}/renyi-report.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The program writes the page of each verb, so cross builds without an emulator have only renyi.1.
configure_file(docs/man/renyi.1 man/renyi.1 @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/man/renyi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  file(READ src/cli/verbs.h table)
  string(REGEX MATCHALL "ROW\\(\"[a-z-]+" rows "${table}")
  foreach(row ${rows})
    string(SUBSTRING ${row} 5 -1 verb)
    list(APPEND verbs ${verb})
    list(APPEND verb_pages ${CMAKE_BINARY_DIR}/man/renyi-${verb}.1)
  endforeach()
  install(CODE "foreach(verb ${verbs})
    execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} ${CMAKE_BINARY_DIR}/renyi help \${verb} --man
      OUTPUT_FILE ${CMAKE_BINARY_DIR}/man/renyi-\${verb}.1 COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
  install(FILES ${verb_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

install(FILES completions/renyi.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME renyi)
install(FILES completions/_renyi DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/renyi.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
