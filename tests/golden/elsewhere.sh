#!/bin/sh
# Simulated times are equal on every machine: builds `tandem` again with clang++ and without optimisation, and with g++ and
# all optimisation, both with the instructions that multiply and add in one step (FMA) where this processor has them. Then
# holds the simulated examples against the golden reports, which a build with g++ -O1 wrote.
#
#   elsewhere.sh [FOLDER]     FOLDER: where to build (build/elsewhere)
#
# TANDEM_OTHER_SIMGRID=PREFIX builds once more with the SimGrid installed there, of another version than the system's.
#
# Exit code 77: clang++ is not installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=${here%/tests/golden}
folder=${1:-$source/build/elsewhere}
command -v clang++ >/dev/null 2>&1 || { echo "skipped: clang++ is not installed (./start check installs it)" && exit 77; }

flags=""
if grep -qw fma /proc/cpuinfo 2>/dev/null; then
  flags="-mavx2 -mfma"
else
  echo "this processor has no FMA: built without it" >&2
fi

# hold COMPILER OPTIMISATION [OPTION]: returns 1 where an example takes another time. Warnings are for the other builds: g++ -O3 finds
# some in libraries.
hold() {
  build=$folder/$1${3:+-other-simgrid}
  cmake -S "$source" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$1" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="$2" \
    -DCMAKE_CXX_FLAGS="$flags" -DTANDEM_WITH_CUDA=OFF -DTANDEM_TESTS=OFF -DTANDEM_BENCHMARKS=OFF -DTANDEM_WERROR=OFF \
    ${3:+"$3"} >&2 || return 1
  cmake --build "$build" -j "${TANDEM_JOBS:-$(nproc)}" --target tandem >&2 || return 1
  failed=0 examples=0
  for golden in "$here"/*.json; do
    name=$(basename "$golden" .json)
    examples=$((examples + 1))
    if "$build/cli/tandem" check "$source/scenarios/examples/$name.yaml" --baseline "$golden" --always >"$build/verdict" 2>&1; then
      echo "equal: $name"
    else
      failed=$((failed + 1))
      echo "DIFFERENT: $name" && cat "$build/verdict"
    fi
  done
  echo "$((examples - failed)) of $examples equal ($1 $2${flags:+ $flags}${3:+ $3})"
  [ "$examples" -gt 0 ] && [ "$failed" = 0 ]
}

result=0
hold clang++ -O0 || result=1
hold g++ -O3 || result=1
if [ -n "${TANDEM_OTHER_SIMGRID:-}" ]; then
  hold g++ -O1 "-DSimGrid_ROOT=$TANDEM_OTHER_SIMGRID" || result=1
else
  echo "one SimGrid only: TANDEM_OTHER_SIMGRID names no other"
fi
exit $result
