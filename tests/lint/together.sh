#!/bin/sh
# Checks that no two headers define the same name differently: compiles all headers of the libraries as one source, but for
# those of the cuda engine, which need its toolkit. No compiler sees such a clash if no source includes both headers, and
# the linker then keeps either definition.
# together.sh SOURCES COMPILER [FLAGS...]
set -eu
cd "$1"
shift
find topologies engine strategies reports scenarios cli -name '*.h' -not -path 'engine/cuda/*' | sort |
  sed 's/.*/#include "&"/' | "$@" -I. -fsyntax-only -x c++ -
