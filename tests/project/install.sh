#!/usr/bin/env bash
# What `make install` puts in place is enough to build and run a program with pkg-config and with CMake;
# `make uninstall` removes all of it.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$RENYI_BUILD" --prefix "$place" >/dev/null
for wanted in bin/renyi include/renyi/renyi.h share/man/man1/renyi.1 share/man/man1/renyi-eval.1 share/bash-completion/completions/renyi; do
  [ -s "$place/$wanted" ] || { echo "$wanted is not installed"; exit 1; }
done
if [ -f "$RENYI_BUILD/renyi-mpi.so" ] && [ ! -s "$place/libexec/renyi/renyi-mpi.so" ]; then
  echo "renyi-mpi.so is not where the installed program looks for it"
  exit 1
fi
pc=$(find "$place" -name renyi.pc)
lib=$(dirname "$(dirname "$pc")")
for name in librenyi librenyi-report; do
  [ -e "$lib/$name.a" ] && [ -e "$lib/$name.so" ] || { echo "$name is missing in $lib"; exit 1; }
done
mapfile -t built < <(find "$place" -type f \( -path '*/bin/*' -o -name '*.so*' \))
bash "$RENYI_SRC/tests/project/hardening.sh" "${built[@]}"
if (cd / && "$place/bin/renyi" inspect -q builtin >/dev/null 2>&1); then # the model inside needs no file
  answer=$(cd / && "$place/bin/renyi" classify -q -k 1 "$RENYI_SRC/assets/golf_ball.png")
  grep -q "golf ball" <<<"$answer" || { echo "the installed program says: $answer"; exit 1; }
fi
if grep -q __asan "$lib/librenyi.so"; then exit 0; fi # a sanitized library wants a sanitized program
# The shared libraries need no development files of the libraries below them.
PKG_CONFIG_LIBDIR=$lib/pkgconfig pkg-config --cflags --libs renyi-report
export PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046
${CC:-cc} "$RENYI_SRC/examples/classify.c" $(pkg-config --cflags --libs renyi) -o "$place/classify"
# shellcheck disable=SC2046
${CC:-cc} "$RENYI_SRC/examples/draw.c" $(pkg-config --cflags --libs renyi-report) -o "$place/draw"
# shellcheck disable=SC2046
${CC:-cc} "$RENYI_SRC/examples/draw.c" -static-libgcc -Wl,-Bstatic -lrenyi-report -lrenyi -Wl,-Bdynamic \
  $(pkg-config --cflags --static --libs renyi-report | sed -E 's/-lrenyi(-report)?\b//g') -fopenmp -o "$place/draw_static"
if ldd "$place/classify" | grep -E 'cairo|pango|gobject'; then
  echo "a program that never draws needs libraries for drawing"
  exit 1
fi
"$place/bin/renyi" init -q --arch vit_tiny_patch16_224 --classes 10 --seed 3 "$place/m.safetensors"
LD_LIBRARY_PATH=$lib "$place/classify" "$place/m.safetensors" "$RENYI_SRC/assets/wall_clock.png"
LD_LIBRARY_PATH=$lib "$place/draw" "$place/m.safetensors" "$RENYI_SRC/assets/wall_clock.png" "$place/shared.svg"
"$place/draw_static" "$place/m.safetensors" "$RENYI_SRC/assets/wall_clock.png" "$place/static.svg"
cmp "$place/shared.svg" "$place/static.svg" && grep -q '<svg' "$place/shared.svg"

mkdir "$place/user"
cat >"$place/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(renyi REQUIRED)
add_executable(classify $RENYI_SRC/examples/classify.c)
target_link_libraries(classify renyi::renyi)
add_executable(draw $RENYI_SRC/examples/draw.c)
target_link_libraries(draw renyi::report)
END
cmake -S "$place/user" -B "$place/user/build" -DCMAKE_PREFIX_PATH="$place" >"$place/log" &&
  cmake --build "$place/user/build" >>"$place/log" || { cat "$place/log"; exit 1; }
"$place/user/build/classify" "$place/m.safetensors" "$RENYI_SRC/assets/wall_clock.png"
rm -r "$place/user" "$place"/{m.safetensors,shared.svg,static.svg,classify,draw,draw_static,log}
make -s -C "$RENYI_SRC" uninstall BUILD="$(realpath "$RENYI_BUILD")"
left=$(find "$place" ! -type d)
[ -z "$left" ] || { echo "make uninstall leaves $left"; exit 1; }
