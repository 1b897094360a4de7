#!/bin/sh
# predict.sh TANDEM MPIEXEC SCENARIOS [MBIT]: calibrates four hosts behind one switch, and predicts from that what the same
# hosts do there, with all-reduces and with one to three workers of a parameter server; and what they do with one slow
# host, and in two leaves behind a slower spine. Then runs it for real, on each network.
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

# Runs a scenario on the network as it is, and on the topology that stands for it.
predict() { # NAME TOPOLOGY [SCENARIO HOSTS]
  on_hosts "${4:-4}" "$tandem" compare "${3:-$scenario}" --engines mpi,sim --topology "$2" --replicas 1 --steps 30 -q \
    --json -o "$folder/$1.json" >"$folder/out" 2>&1 || fail "the comparison on $1: $(cat "$folder/out")"
}
# Makes a scenario of an example: every step of a collective on its own, because the links of the other networks differ;
# and nothing is expected of so few steps.
shortened() { # EXAMPLE
  sed 's/^  name: cpu$/  name: sim\n  collectives: message/; /^expect:/,$d' "$examples/$1" >"$folder/$1"
  grep -q 'collectives: message' "$folder/$1" || fail "the scenario $1 has no engine to replace"
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
  shortened digits-multi-worker.yaml
  shortened digits-parameter-server.yaml
  scenario=$folder/digits-multi-worker.yaml
  on_hosts 4 "$tandem" calibrate --engine mpi --quick --devices 1 -o "$folder/star.yaml" >"$folder/out" 2>&1 ||
    fail "the calibration: $(cat "$folder/out")"
  tr '\r' '\n' <"$folder/out" | grep ' each, simulated '
  predict star "$folder/star.yaml"
  changed >"$folder/links.yaml"
  predict star_by_links "$folder/links.yaml"
  for workers in 1 2 3; do # and the server
    predict "server_of_$workers" "$folder/star.yaml" "$folder/digits-parameter-server.yaml" $((workers + 1))
  done

  set_rate 3 "$slow_mbit"
  changed --slow w3 0.4 >"$folder/slow.yaml"
  predict slow_host "$folder/slow.yaml"
  set_rate 3 "$mbit"

  add_bridge && join_bridges 0 1 "$slow_mbit" && ip link set "${prefix}v2" master "${prefix}b1" &&
    ip link set "${prefix}v3" master "${prefix}b1" || fail "the second leaf"
  changed --leaf w2,w3 0.4 >"$folder/leaves.yaml"
  predict leaf_spine "$folder/leaves.yaml"
  python3 "$here/judge_predictions.py" "$folder" star star_by_links server_of_1 server_of_2 server_of_3 \
    slow_host leaf_spine || exit 1
}

for attempt in 1 2 3; do
  (predict_all)
  status=$?
  [ "$status" = 1 ] || exit "$status"
  echo "attempt $attempt of 3 has failed"
done
exit 1
