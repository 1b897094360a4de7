#!/bin/sh
# cut.sh TANDEM MPIEXEC SCENARIOS: cuts the cable of one of two hosts while both train. Every rank ends in bounded time, says
# which one is not heard of any more, and leaves no report.
# Exits with 77, and says why, where such hosts cannot be made.
set -u
tandem=$1
mpiexec=$2
scenario=$3/digits-multi-worker.yaml
rate_mbit=50
most_s=120
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/network/hosts.sh
. "$here/hosts.sh"
trap remove_hosts EXIT
trap 'exit 130' INT TERM

processes_with() { # TEXT: those whose command line has it
  for process in /proc/[0-9]*; do
    tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q "$1" && echo "${process#/proc/}"
  done
}
ranks_of_job() {
  for process in $(processes_with "$folder/report.json"); do
    [ "$(readlink "/proc/$process/exe" 2>/dev/null)" = "$(readlink -f "$tandem")" ] && echo "$process"
  done
}
wait_until() { # SECONDS COMMAND...
  left=$1
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 1
  done
}
both_train() { # a rank has threads of its streams once it trains
  trains=0
  for rank in $(ranks_of_job); do
    threads=$(find "/proc/$rank/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
    [ "$threads" -ge 7 ] && trains=$((trains + 1))
  done
  [ "$trains" -eq 2 ]
}
none_left() { [ -z "$(ranks_of_job)" ]; }

need_star 2 "$rate_mbit"

{
  on_hosts 2 "$tandem" run "$scenario" --engine mpi --replicas 1 --steps 1000000 -q --json -o "$folder/report.json" \
    >"$folder/out" 2>&1
} &
wait_until 60 both_train || fail "the ranks do not begin: $(cat "$folder/out")"
sleep 2
ip link set "${prefix}v1" down || fail "the cable of host 1"
wait_until "$most_s" none_left || fail "processes are left after $most_s s: $(ranks_of_job)"
[ ! -e "$folder/report.json" ] || fail "a report of half a run"
grep "tandem: rank 1 on $prefix-1 has not answered rank 0 on $prefix-0 for 20 s; the job ends" "$folder/out" ||
  fail "nobody says which rank is not heard of: $(cat "$folder/out")"
# shellcheck disable=SC2046
kill $(processes_with "$folder/agent") 2>/dev/null # Open MPI 4.1's mpirun waits for its daemon on host 1
