#!/bin/sh
# Runs what this bundle has, with the CUDA, cuBLAS and NCCL of this machine.
#
#   ./start gpu [--out FOLDER] [--time SECONDS] [STEP...]   what a machine with GPUs must show
#   ./start ARGS...                                        tandem ARGS...
#
# The libraries are looked for in TANDEM_CUDA_LIBRARIES (folders, divided by ':'), LD_LIBRARY_PATH, what the loader
# knows, CUDA's own folders, Conda's, and those of Python's wheels. `./start --version` says which were found.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

folders() {
  printf '%s\n' "${TANDEM_CUDA_LIBRARIES:-}" "${LD_LIBRARY_PATH:-}" | tr ':' '\n'
  for folder in "${CUDA_HOME:-}/lib64" /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*/lib \
    /opt/cuda/lib64 /usr/lib/*-linux-gnu /usr/lib64 "${CONDA_PREFIX:-}/lib"; do
    printf '%s\n' "$folder"
  done
  command -v python3 >/dev/null 2>&1 || return 0
  python3 -c 'import site, sys
for folder in sys.path + site.getsitepackages() + [site.getusersitepackages()]: print(folder)' 2>/dev/null |
    while IFS= read -r site; do
      for folder in "$site"/nvidia/*/lib; do printf '%s\n' "$folder"; done
    done
}

# The folder of a library, by its name with the major version, which must fit.
folder_of() {
  folders | while IFS= read -r folder; do
    [ -n "$folder" ] && [ -e "$folder/$1" ] && printf '%s\n' "$folder" && break
  done
}

libraries=$here/lib missing=""
while IFS= read -r name; do
  folder=$(folder_of "$name" || true)
  if [ -n "$folder" ]; then
    libraries=$libraries:$folder
  elif ! ldconfig -p 2>/dev/null | grep -qF "$name "; then
    missing="$missing $name"
  fi
done <"$here/needs"
if [ -n "$missing" ]; then
  echo "start: not found on this machine:$missing; TANDEM_CUDA_LIBRARIES names the folders to look in" >&2
  exit 4
fi
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TANDEM_DATA_DIR=$here/share/tandem
TANDEM_PROGRAMS=$here/bin TANDEM_SCENARIOS=$here/share/tandem/scenarios/examples TANDEM_TF_CASES=$here/share/tandem/tf_cases
export LD_LIBRARY_PATH TANDEM_DATA_DIR TANDEM_PROGRAMS TANDEM_SCENARIOS TANDEM_TF_CASES

if [ "${1:-}" = gpu ]; then
  shift
  exec "$here/gpu.sh" "$@"
fi
exec "$here/bin/tandem" "$@"
