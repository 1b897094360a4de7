#!/bin/sh
# star.sh TANDEM MPIEXEC SCENARIOS: hosts that are network namespaces of this machine, joined by a bridge, with every port
# shaped to a rate; ranks of the mpi engine on them, over TCP. Checks that they learn what one process learns, and that
# the largest all-reduce takes the time that the rate allows. The hosts share the processors of this machine, so the rate
# is low enough for the network to be the limit.
# Exits with 77, and says why, where such hosts cannot be made: that takes root, and Open MPI to launch by an agent.
set -u
tandem=$1
mpiexec=$2
scenario=$3/digits-multi-worker.yaml
hosts=2
rate_mbit=50
here=$(cd "$(dirname "$0")" && pwd)
prefix=td$$
subnet=10.$((64 + $$ / 250 % 64)).$(($$ % 250))
folder=$(mktemp -d)

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "failed: $*"
  exit 1
}
remove() {
  i=0
  while [ "$i" -lt "$hosts" ]; do
    ip netns del "$prefix-$i" 2>/dev/null
    i=$((i + 1))
  done
  ip link del "${prefix}b" 2>/dev/null
  rm -rf "$folder"
}
trap remove EXIT
trap 'exit 130' INT TERM

# One port of a host: the bridge's end shapes what comes in, its own what goes out.
add_host() {
  ip netns add "$prefix-$1" && ip link add "${prefix}v$1" type veth peer name eth0 netns "$prefix-$1" &&
    ip link set "${prefix}v$1" master "${prefix}b" up && ip -n "$prefix-$1" link set lo up &&
    ip -n "$prefix-$1" addr add "$subnet.$(($1 + 1))/24" dev eth0 && ip -n "$prefix-$1" link set eth0 up &&
    tc qdisc add dev "${prefix}v$1" root tbf rate "${rate_mbit}mbit" burst 32kb latency 400ms &&
    tc -n "$prefix-$1" qdisc add dev eth0 root tbf rate "${rate_mbit}mbit" burst 32kb latency 400ms
}

for tool in ip tc unshare; do
  command -v "$tool" >/dev/null || skip "no $tool (Debian: iproute2, util-linux)"
done
"$mpiexec" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' || skip "$mpiexec is not Open MPI's, whose agent this needs"
[ "$(id -u)" = 0 ] || skip "only root can make network namespaces"
{ ip link add "${prefix}b" type bridge && ip addr add "$subnet.254/24" dev "${prefix}b" &&
  ip link set "${prefix}b" up; } 2>"$folder/reason" || skip "no bridge: $(cat "$folder/reason")"
i=0
while [ "$i" -lt "$hosts" ]; do
  add_host "$i" 2>"$folder/reason" || skip "no host behind a shaped port: $(cat "$folder/reason")"
  i=$((i + 1))
done

# Open MPI starts its daemon on a host by this command; the host's address ends in its number + 1.
cat >"$folder/agent" <<EOF
#!/bin/sh
host=$prefix-\$((\${1##*.} - 1))
shift
exec ip netns exec "\$host" unshare --uts sh -c "hostname \$host; \$*"
EOF
chmod +x "$folder/agent"
names=$subnet.1:1,$subnet.2:1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
timeout 300 "$mpiexec" --mca plm_rsh_agent "$folder/agent" --mca pml ob1 --mca btl tcp,self \
  --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" --mca hwloc_base_binding_policy none \
  --host "$names" -n "$hosts" "$tandem" run "$scenario" --engine mpi --replicas 1 --steps 20 -q --json \
  -o "$folder/measured.json" </dev/null >"$folder/out" 2>&1 || fail "the run on $hosts hosts: $(cat "$folder/out")"
"$tandem" run "$scenario" --engine cpu --workers "$hosts" --replicas 1 --steps 20 -q --json -o "$folder/expected.json" ||
  fail "the run in one process"
python3 "$here/judge_star.py" "$folder/measured.json" "$folder/expected.json" "$hosts" "$rate_mbit"
