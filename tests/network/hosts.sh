# Hosts that are network namespaces of this machine, on bridges whose ports are shaped to rates. Sourced by the tests
# here, which set `mpiexec`. A script that makes them must run `remove_hosts` at its end.
# The hosts share the processors of this machine, so rates are to be low enough for the network to be the limit.

# Who is not root becomes it in namespaces of their own, where the machine lets users have such, and begins again there.
no_root=
if [ "$(id -u)" != 0 ]; then
  if no_root=$(unshare --user --map-root-user --net --mount true 2>&1); then
    exec unshare --user --map-root-user --net --mount env TANDEM_OWN_NAMESPACES=yes "$0" "$@"
  fi
elif [ "${TANDEM_OWN_NAMESPACES:-}" = yes ]; then
  no_root=$(mount -t tmpfs tmpfs /run 2>&1 && ip link set lo up 2>&1)  # /run: for the names of network namespaces
fi

prefix=td$$
subnet=10.$((64 + $$ / 250 % 64)).$(($$ % 250))
folder=$(mktemp -d)
hosts=0
bridges=0
cables=

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "failed: $*"
  exit 1
}

remove_hosts() {
  while [ "$hosts" -gt 0 ]; do
    hosts=$((hosts - 1))
    ip netns del "$prefix-$hosts" 2>/dev/null
  done
  for cable in $cables; do ip link del "$cable" 2>/dev/null; done
  while [ "$bridges" -gt 0 ]; do
    bridges=$((bridges - 1))
    ip link del "${prefix}b$bridges" 2>/dev/null
  done
  rm -rf "$folder"
}

# Says why, and ends, where such hosts cannot be made: that takes root or user namespaces, and Open MPI to launch by an
# agent.
need_hosts() {
  for tool in ip tc unshare; do
    command -v "$tool" >/dev/null || skip "no $tool (Debian: iproute2, util-linux)"
  done
  "$mpiexec" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' || skip "$mpiexec is not Open MPI's, whose agent this needs"
  [ -z "$no_root" ] || skip "only root can make network namespaces, and here are no user namespaces to be root in: $no_root"
}

shape() { # SHAPED-DEVICE MBIT [TC-OPTION...]: what is sent there
  shaped_device=$1 shaped_to=$2
  shift 2
  tc "$@" qdisc replace dev "$shaped_device" root tbf rate "${shaped_to}mbit" burst 16kb latency 400ms
}

add_bridge() { # the first one reaches this machine, where the job is launched
  ip link add "${prefix}b$bridges" type bridge && ip link set "${prefix}b$bridges" up || return 1
  [ "$bridges" -gt 0 ] || ip addr add "$subnet.254/24" dev "${prefix}b0" || return 1
  bridges=$((bridges + 1))
}

join_bridges() { # A B MBIT: a cable between two bridges
  cables="$cables ${prefix}t$1$2"
  ip link add "${prefix}t$1$2" type veth peer name "${prefix}t$2$1" &&
    ip link set "${prefix}t$1$2" master "${prefix}b$1" up && ip link set "${prefix}t$2$1" master "${prefix}b$2" up &&
    shape "${prefix}t$1$2" "$3" && shape "${prefix}t$2$1" "$3"
}

# One port of a host: the bridge's end shapes what comes in, its own what goes out.
set_rate() { # HOST MBIT
  shape "${prefix}v$1" "$2" && shape eth0 "$2" -n "$prefix-$1"
}

add_host() { # BRIDGE MBIT
  ip netns add "$prefix-$hosts" && ip link add "${prefix}v$hosts" type veth peer name eth0 netns "$prefix-$hosts" &&
    ip link set "${prefix}v$hosts" master "${prefix}b$1" up && ip -n "$prefix-$hosts" link set lo up &&
    ip -n "$prefix-$hosts" addr add "$subnet.$((hosts + 1))/24" dev eth0 && ip -n "$prefix-$hosts" link set eth0 up &&
    set_rate "$hosts" "$2" || return 1
  hosts=$((hosts + 1))
}

need_star() { # HOSTS MBIT: so many behind one switch, or a skip with its reason
  need_hosts
  add_bridge 2>"$folder/reason" || skip "no bridge: $(cat "$folder/reason")"
  while [ "$hosts" -lt "$1" ]; do
    add_host 0 "$2" 2>"$folder/reason" || skip "no host behind a shaped port: $(cat "$folder/reason")"
  done
}

# Runs a program on the first N hosts, a rank on each. Open MPI starts its daemon on a host by the agent; the host's
# address ends in its number + 1.
on_hosts() { # N PROGRAM ARGS...
  ranks=$1
  shift
  cat >"$folder/agent" <<EOF
#!/bin/sh
host=$prefix-\$((\${1##*.} - 1))
shift
exec ip netns exec "\$host" unshare --uts sh -c "hostname \$host; \$*"
EOF
  chmod +x "$folder/agent"
  names=""
  i=0
  while [ "$i" -lt "$ranks" ]; do
    i=$((i + 1))
    names="$names${names:+,}$subnet.$i:1"
  done
  TMPDIR=$folder OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 240 "$mpiexec" --mca plm_rsh_agent "$folder/agent" \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" \
    --mca btl_tcp_sndbuf 0 --mca btl_tcp_rcvbuf 0 --mca hwloc_base_binding_policy none --host "$names" -n "$ranks" "$@" </dev/null
}
