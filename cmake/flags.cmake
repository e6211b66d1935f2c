# Compiler flags: no -ffast-math, no -march=native; a kernel file is compiled for the ISA of its suffix.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-strict-aliasing)

# Hardening of everything that is built. No RPATH: a build path in a file is a place from which others
# could make it load code, and CMake's ends with an empty element, which means the working directory.
set(CMAKE_SKIP_RPATH ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
add_compile_options(-fstack-protector-strong)
if(APPLE) # its linker does the rest by itself
  add_compile_definitions(_DARWIN_C_SOURCE)
else()
  if(renyi_arm64)
    add_compile_options(-mbranch-protection=standard)
  else()
    add_compile_options(-fcf-protection)
  endif()
  add_compile_options(-fstack-clash-protection)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()
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

# Vector kernels by the suffix of a file: _vec8 is AVX2 or NEON, the others belong to one architecture.
if(renyi_arm64)
  set(isa_suffixes vec8 neon dotprod i8mm bf16mm)
  set(isa_vec8) # every ARM64 has NEON
  set(isa_neon)
  set(isa_dotprod -march=armv8.2-a+dotprod)
  set(isa_i8mm -march=armv8.2-a+dotprod+i8mm)
  set(isa_bf16mm -march=armv8.2-a+bf16)
else()
  set(isa_suffixes vec8 avx2 avx512)
  set(isa_avx2 -mavx2 -mfma -mf16c)
  set(isa_vec8 ${isa_avx2})
  set(isa_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl ${isa_avx2} -mprefer-vector-width=512)
endif()

# Sets the flags of the kernel files in the list and removes those of the other architecture.
function(renyi_isa_flags list)
  set(plain)
  if(RENYI_SANITIZE AND NOT RENYI_SANITIZE_KERNELS) # they take seven times as long to compile with it
    set(plain -fno-sanitize=all)
  endif()
  set(sources)
  foreach(file ${${list}})
    set(suffix none)
    if(file MATCHES "_(vec8|avx2|avx512|neon|dotprod|i8mm|bf16mm)\\.c$")
      set(suffix ${CMAKE_MATCH_1})
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${isa_${suffix}};${plain}")
    endif()
    if(suffix IN_LIST isa_suffixes OR suffix STREQUAL none)
      list(APPEND sources ${file})
    endif()
  endforeach()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
