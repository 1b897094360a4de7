#!/bin/sh
# predict.sh TANDEM MPIEXEC SCENARIOS [MBIT]: calibrates four hosts behind one switch, and predicts from that what the same
# hosts do there, with one slow host, and in two leaves behind a slower spine; then runs it for real, on each network.
# Tries three times at most, because whatever else the machine does makes the hosts slower; a wrong model is wrong each
# time. Exits with 77, and says why, where such hosts cannot be made.
set -u
tandem=$1
mpiexec=$2
examples=$3
mbit=${4:-100}
slow_mbit=$((mbit * 2 / 5))
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/network/hosts.sh
. "$here/hosts.sh"

# Runs the scenario on the network as it is, and on the topology that stands for it.
predict() { # NETWORK TOPOLOGY
  on_hosts 4 "$tandem" compare "$scenario" --engines mpi,sim --topology "$2" --replicas 1 --steps 30 -q --json \
    -o "$folder/$1.json" >"$folder/out" 2>&1 || fail "the comparison on $1: $(cat "$folder/out")"
}
changed() { # CHANGE...: the calibrated topology with another network
  python3 "$here/other_network.py" "$folder/star.yaml" "$@" || fail "the topology: $*"
}

# Ends its shell with 1 where a prediction is too far off.
predict_all() {
  trap remove_hosts EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$folder"
  need_star 4 "$mbit"
  # Every step of a collective on its own, because the links of the other networks differ.
  scenario=$folder/digits-multi-worker.yaml
  sed 's/^  name: cpu$/  name: sim\n  collectives: message/' "$examples/digits-multi-worker.yaml" >"$scenario"
  grep -q 'collectives: message' "$scenario" || fail "the scenario has no engine to replace"
  on_hosts 4 "$tandem" calibrate --engine mpi --quick --devices 1 -o "$folder/star.yaml" >"$folder/out" 2>&1 ||
    fail "the calibration: $(cat "$folder/out")"
  tr '\r' '\n' <"$folder/out" | grep ' each, simulated '
  predict star "$folder/star.yaml"
  changed >"$folder/links.yaml"
  predict star_by_links "$folder/links.yaml"

  set_rate 3 "$slow_mbit"
  changed --slow w3 0.4 >"$folder/slow.yaml"
  predict slow_host "$folder/slow.yaml"
  set_rate 3 "$mbit"

  add_bridge && join_bridges 0 1 "$slow_mbit" && ip link set "${prefix}v2" master "${prefix}b1" &&
    ip link set "${prefix}v3" master "${prefix}b1" || fail "the second leaf"
  changed --leaf w2,w3 0.4 >"$folder/leaves.yaml"
  predict leaf_spine "$folder/leaves.yaml"
  python3 "$here/judge_predictions.py" "$folder" star star_by_links slow_host leaf_spine || exit 1
}

for attempt in 1 2 3; do
  (predict_all)
  status=$?
  [ "$status" = 1 ] || exit "$status"
  echo "attempt $attempt of 3 has failed"
done
exit 1
