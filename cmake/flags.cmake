# Compiler flags: no -ffast-math, no -march=native; a kernel file is compiled for the ISA of its suffix.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-strict-aliasing)
if(RENYI_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RENYI_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(renyi_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Wvla -Wconversion -Wno-sign-conversion)
  if(RENYI_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(renyi_isa_flags sources)
  foreach(file ${sources})
    if(file MATCHES "_avx2\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    elseif(file MATCHES "_avx512\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mf16c;-mprefer-vector-width=512")
    endif()
  endforeach()
endfunction()
