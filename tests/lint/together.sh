#!/bin/sh
# That no name stands for two things: all headers of the libraries compile together. Those of the cuda engine, which not
# every machine can compile, are left out. Without this, a type of two headers that no source includes both is found by
# nobody, and the linker takes either.
# together.sh SOURCES COMPILER [FLAGS...]
set -eu
cd "$1"
shift
find topologies engine strategies reports scenarios cli -name '*.h' -not -path 'engine/cuda/*' | sort |
  sed 's/.*/#include "&"/' | "$@" -I. -fsyntax-only -x c++ -
