# make install: headers, the libraries, the program, pkg-config files, man page.
# A pkg-config file computes its prefix from its own path, so any --prefix at install time works.
file(RELATIVE_PATH RENYI_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(renyi_has_onednn)
  set(RENYI_PC_ONEDNN "-ldnnl ")
endif()
configure_file(cmake/renyi.pc.in renyi.pc @ONLY)
configure_file(cmake/renyi-report.pc.in renyi-report.pc @ONLY)
install(DIRECTORY include/renyi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS renyi_static renyi_shared renyi_report_static renyi_report_shared
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS renyi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_BINARY_DIR}/renyi.pc ${CMAKE_BINARY_DIR}/renyi-report.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(GLOB man_pages ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
