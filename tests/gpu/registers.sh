#!/bin/sh
# That the assembler finds registers for every kernel on GPUs that come after those the library has code for, which run
# what it has for the last of them: none spills. The build looks at the others (engine/cuda/CMakeLists.txt).
# registers.sh NVCC SOURCES VIRTUAL REAL, as in compute_90 sm_100
set -eu
nvcc=$1 sources=$2 virtual=$3 real=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$sources"/engine/cuda/kernels/*.cu; do
  "$nvcc" -std=c++20 --expt-relaxed-constexpr -O3 -gencode "arch=$virtual,code=$real" -I"$sources" \
    -Xptxas=--warn-on-spills,--warning-as-error -cubin -o "$scratch/out.cubin" "$file"
  echo "$real: no kernel of ${file##*/} spills"
done
