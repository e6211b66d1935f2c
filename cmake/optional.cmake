# Libraries that the build can do without. Without one the program is smaller and says so when it is
# asked for what is missing; `renyi --version` lists them. Sets renyi_has_<name> for onednn, spng,
# pango, curl and microhttpd (cmake/mpi.cmake looks for MPI), and the lists renyi_with, renyi_without.
option(RENYI_ONEDNN "bf16 and VNNI matrix products by oneDNN, when it is found" ON)
option(RENYI_SPNG "PNG by libspng, when it is found; otherwise by libpng" ON)
option(RENYI_PANGO "figures by cairo and pango, when they are found" ON)
option(RENYI_CURL "renyi pull, when libcurl is found" ON)
option(RENYI_SERVE "renyi serve, when libmicrohttpd is found" ON)

# renyi_optional(NAME OPTION PREFIX "text for people" MODULE...): the first pkg-config module there is
macro(renyi_optional name option prefix text)
  set(renyi_has_${name} OFF)
  if(${option})
    pkg_search_module(${prefix} IMPORTED_TARGET ${ARGN})
    set(renyi_has_${name} ${${prefix}_FOUND})
  endif()
  if(renyi_has_${name})
    list(APPEND renyi_with "${text}")
  else()
    set(renyi_has_${name} OFF)
    list(APPEND renyi_without "${text}")
  endif()
endmacro()

set(renyi_with)
set(renyi_without)
renyi_optional(spng RENYI_SPNG SPNG libspng spng libspng)
renyi_optional(pango RENYI_PANGO PANGOCAIRO "cairo and pango" pangocairo)
renyi_optional(curl RENYI_CURL CURL libcurl libcurl)
renyi_optional(microhttpd RENYI_SERVE MICROHTTPD libmicrohttpd libmicrohttpd>=0.9.70)
list(REMOVE_ITEM renyi_with libspng) # the library names what reads PNG
list(REMOVE_ITEM renyi_without libspng)
if(renyi_has_spng)
  set(renyi_png PkgConfig::SPNG)
  set(renyi_png_libs ${SPNG_LIBRARIES})
  set(renyi_png_name libspng)
  set(renyi_png_other "_libpng\\.c$") # sources that are left out
else()
  pkg_check_modules(LIBPNG REQUIRED IMPORTED_TARGET libpng)
  set(renyi_png PkgConfig::LIBPNG)
  set(renyi_png_libs ${LIBPNG_LIBRARIES})
  set(renyi_png_name libpng)
  set(renyi_png_other "_spng\\.c$")
endif()

if(RENYI_ONEDNN AND NOT renyi_arm64) # there our own products do what oneDNN's do on x86
  find_library(DNNL_LIBRARY dnnl)
  find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h)
endif()
if(RENYI_ONEDNN AND NOT renyi_arm64 AND DNNL_LIBRARY AND DNNL_INCLUDE)
  set(renyi_has_onednn ON)
else()
  set(renyi_has_onednn OFF)
endif()
