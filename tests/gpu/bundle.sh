#!/bin/sh
# Packs the programs for a machine with GPUs and without a compiler: bundle.sh SOURCES PROGRAMS OUTPUT.tar.xz [MPI_PART]
#
# In it: the programs, the libraries that such a machine lacks, the scenarios and the catalog, and `start`; and the part of
# the mpi engine that is linked with MPI, where it is built. Not in it: CUDA, cuBLAS and NCCL, which `start` finds there, the
# driver, the C library, and MPI, which the mpi engine takes from that machine.
set -eu
sources=$1 programs=$2 output=$3 mpi_part=${4:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=$folder/tandem-gpu
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/share/tandem/topologies" "$bundle/share/tandem/scenarios"

for program in "$programs"/*; do
  cp -L "$program" "$bundle/bin/"
  strip "$bundle/bin/$(basename "$program")"
done
nvidia='lib(cudart|cublas|cublasLt|nccl|cuda|nvidia-ml)\.so'
system='(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv)\.so.*)'
ldd "$bundle"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u | while read -r name path; do
  if printf '%s\n' "$name" | grep -qE "^$nvidia"; then
    printf '%s\n' "$name" >>"$bundle/needs"
  elif ! printf '%s\n' "$name" | grep -qE "^$system"; then
    cp -L "$path" "$bundle/lib/$name"
    strip --strip-unneeded "$bundle/lib/$name" 2>/dev/null || true
  fi
done
touch "$bundle/needs"
# The first product loads cuBLAS, whose major version is CUDA's.
awk -F. '/^libcudart/ { print "libcublas.so." $3; print "libcublasLt.so." $3 }' "$bundle/needs" >"$folder/loaded"
sort -u -o "$bundle/needs" "$folder/loaded" "$bundle/needs"
if [ -n "$mpi_part" ]; then
  mkdir "$bundle/lib/tandem"
  cp "$mpi_part" "$bundle/lib/tandem/"
  strip --strip-unneeded "$bundle/lib/tandem/$(basename "$mpi_part")"
fi
cp -r "$sources/topologies/catalog" "$bundle/share/tandem/topologies/"
cp -r "$sources/scenarios/models" "$sources/scenarios/examples" "$sources/scenarios/data" "$bundle/share/tandem/scenarios/"
cp "$sources/scenarios/scenario.schema.json" "$bundle/share/tandem/scenarios/"
cp -r "$sources/tests/conformance/cases" "$bundle/share/tandem/tf_cases"
cp "$sources/tests/gpu/gpu.sh" "$sources/LICENSE" "$bundle/"
cp "$sources/tests/gpu/bundle_start.sh" "$bundle/start"
XZ_OPT=-T0 tar -C "$folder" -cJf "$output.part" tandem-gpu
mv "$output.part" "$output"  # whoever finds it finds it whole
megabytes=$(($(stat -c %s "$output") / 1000000))
echo "$output: $megabytes MB; needs on the machine: $(tr '\n' ' ' <"$bundle/needs")"
[ $megabytes -lt 60 ] || { echo "bundle.sh: more than 60 MB" >&2 && exit 1; }
