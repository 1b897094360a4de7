#!/bin/sh
# That the assembler finds registers for every kernel on GPUs that come after those the library has code for, which run
# what it has for the last of them: none spills. The build looks at the others (engine/cuda/CMakeLists.txt).
# registers.sh NVCC SOURCES VIRTUAL REAL, as in compute_90 sm_100
set -eu
nvcc=$1 sources=$2 virtual=$3 real=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# All as one source, since headers are a quarter of what each takes; the assembler names the kernel that spills.
for file in "$sources"/engine/cuda/kernels/*.cu; do echo "#include \"$file\""; done >"$scratch/kernels.cu"
"$nvcc" -std=c++20 --expt-relaxed-constexpr -O3 -gencode "arch=$virtual,code=$real" -I"$sources" \
  -Xptxas=--warn-on-spills,--warning-as-error -cubin -o "$scratch/out.cubin" "$scratch/kernels.cu"
echo "$real: no kernel spills"
