# renyi-mpi.so: loaded by the program when a launcher (mpirun, srun) started it, so that the program
# itself needs no MPI. Without MPI it is not built, and the program refuses to run under a launcher.
# The program looks for it in its own folder (a build tree) and at this relative path.
file(RELATIVE_PATH renyi_module_place ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/renyi)
target_compile_definitions(renyi PRIVATE RENYI_MODULE_PLACE="${renyi_module_place}")

if(RENYI_MPI)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(RENYI_MPI AND MPI_C_FOUND)
  add_library(renyi_mpi MODULE src/mpi/mpi_module.c)
  target_include_directories(renyi_mpi PRIVATE include src)
  target_include_directories(renyi_mpi SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS}) # no warnings from its headers
  target_link_libraries(renyi_mpi PRIVATE MPI::MPI_C)
  set_target_properties(renyi_mpi PROPERTIES PREFIX "" OUTPUT_NAME renyi-mpi
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  renyi_warnings(renyi_mpi)
  install(TARGETS renyi_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/renyi)
  list(APPEND renyi_with MPI)
else() # mpirun renyi is refused; --shard and renyi merge work
  list(APPEND renyi_without MPI)
endif()
