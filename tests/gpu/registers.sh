#!/bin/sh
# That the assembler finds registers for every kernel, on each kind of GPU: none spills, and a block fits into a
# multiprocessor. registers.sh NVCC SOURCES ARCHITECTURE
set -eu
nvcc=$1 sources=$2 architecture=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$sources"/engine/cuda/*.cu; do
  "$nvcc" -std=c++20 --expt-relaxed-constexpr -O3 -arch="$architecture" -I"$sources" -cubin -Xptxas -v \
    -o "$scratch/out.cubin" "$file" 2>>"$scratch/said" || { cat "$scratch/said" >&2 && exit 1; }
done
awk -v architecture="$architecture" '
  /Function properties for/ { kernel = $NF }
  /spill stores/ {
    for (i = 1; i < NF; ++i) if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $i > 0) { print "spills: " kernel; bad = 1 }
  }
  /Used [0-9]+ registers/ {
    ++kernels
    for (i = 1; i < NF; ++i) if ($i == "Used" && $(i + 1) > most) { most = $(i + 1); at = kernel }
  }
  END {
    printf "%s: %d kernels, at most %d registers of a thread (%s)\n", architecture, kernels, most, at
    exit bad || kernels == 0
  }' "$scratch/said"
