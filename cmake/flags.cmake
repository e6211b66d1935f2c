# Compiler flags: no -ffast-math, no -march=native; a kernel file is compiled for the ISA of its suffix.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-strict-aliasing)

# Hardening of everything that is built. No RPATH: a build path in a file is a place from which others
# could make it load code, and CMake's ends with an empty element, which means the working directory.
set(CMAKE_SKIP_RPATH ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
add_compile_options(-fstack-protector-strong -fstack-clash-protection -fcf-protection)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT RENYI_SANITIZE) # the sanitizers check more, and replace the same functions
  set(level 3)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
    set(level 2)
  endif()
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=${level}>)
endif()

if(RENYI_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RENYI_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
endif()

function(renyi_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Wvla -Wconversion -Wno-sign-conversion)
  if(RENYI_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(renyi_isa_flags sources)
  set(plain)
  if(RENYI_SANITIZE AND NOT RENYI_SANITIZE_KERNELS) # they take seven times as long to compile with it
    set(plain -fno-sanitize=all)
  endif()
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl ${avx2} -mprefer-vector-width=512)
  foreach(file ${sources})
    if(file MATCHES "_(avx2|avx512)\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${${CMAKE_MATCH_1}};${plain}")
    endif()
  endforeach()
endfunction()
