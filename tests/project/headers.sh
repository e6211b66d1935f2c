#!/usr/bin/env bash
# Every public header compiles alone, as C99, C11 and C++11, without a warning.
bad=0
for header in "$RENYI_SRC"/include/renyi/*.h; do
  for std in c99 c11; do
    ${CC:-cc} -std=$std -Wall -Wextra -Wpedantic -Werror -I"$RENYI_SRC/include" -fsyntax-only -x c "$header" || bad=1
  done
  if command -v "${CXX:-c++}" >/dev/null; then
    ${CXX:-c++} -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$RENYI_SRC/include" -fsyntax-only -x c++ "$header" || bad=1
  else
    echo "SKIP: no C++ compiler: headers not checked as C++11 (1)"
  fi
done
exit $bad
