#!/bin/sh
# That the assembler finds registers for every kernel, on each kind of GPU: none spills, and a block fits into a
# multiprocessor. The library is compiled for compute capability 8.0 and 9.0, whose headers differ; later kinds of GPU
# take what it has for 9.0.
# registers.sh NVCC SOURCES ARCHITECTURE...
set -eu
nvcc=$1 sources=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for virtual in compute_80 compute_90; do
  mkdir "$scratch/$virtual"
  for file in "$sources"/engine/cuda/kernels/*.cu; do
    "$nvcc" -std=c++20 --expt-relaxed-constexpr -O3 -arch="$virtual" -I"$sources" -ptx \
      -o "$scratch/$virtual/$(basename "$file" .cu).ptx" "$file"
  done
done
for architecture in "$@"; do
  : >"$scratch/said"
  if [ "${architecture#sm_}" -lt 90 ]; then virtual=compute_80; else virtual=compute_90; fi
  for ptx in "$scratch/$virtual"/*.ptx; do
    "$nvcc" -arch="$architecture" -cubin -Xptxas -v -o "$scratch/out.cubin" "$ptx" 2>>"$scratch/said" ||
      { cat "$scratch/said" >&2 && exit 1; }
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
done
