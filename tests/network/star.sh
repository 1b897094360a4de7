#!/bin/sh
# star.sh TANDEM MPIEXEC SCENARIOS: two hosts behind one switch, and a rank of the mpi engine on each, over TCP. Checks that
# they learn what one process learns, and that the largest all-reduce takes the time that the rate allows.
# Exits with 77, and says why, where such hosts cannot be made.
set -u
tandem=$1
mpiexec=$2
scenario=$3/digits-multi-worker.yaml
rate_mbit=50
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/network/hosts.sh
. "$here/hosts.sh"
trap remove_hosts EXIT
trap 'exit 130' INT TERM

need_star 2 "$rate_mbit"
on_hosts 2 "$tandem" run "$scenario" --engine mpi --replicas 1 --steps 20 -q --json -o "$folder/measured.json" \
  >"$folder/out" 2>&1 || fail "the run on two hosts: $(cat "$folder/out")"
"$tandem" run "$scenario" --engine cpu --workers 2 --replicas 1 --steps 20 -q --json -o "$folder/expected.json" ||
  fail "the run in one process"
python3 "$here/judge_star.py" "$folder/measured.json" "$folder/expected.json" 2 "$rate_mbit"
