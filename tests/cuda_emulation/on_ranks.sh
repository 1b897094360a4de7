#!/bin/sh
# on_ranks.sh MPIEXEC -n RANKS PROGRAM ARGS...: as tests/mpi/on_ranks.sh, for a program with emulated GPUs, whose NCCL
# meets in a folder.
set -u
TANDEM_EMULATED_JOB=$(mktemp -d)
export TANDEM_EMULATED_JOB
trap 'rm -rf "$TANDEM_EMULATED_JOB"' EXIT
"$(dirname "$0")/../mpi/on_ranks.sh" "$@"
