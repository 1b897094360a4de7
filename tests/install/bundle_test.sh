#!/bin/sh
# bundle_test.sh BUNDLE_SH SOURCES TANDEM MPI_PART MPIEXEC -n: what a bundle carries is enough for a machine that has the
# C library and a shell. Unpacks a bundle of `tandem` in a root file system with nothing else and runs it there; where
# MPI_PART is not empty, also on two ranks of this machine, with the MPI that it finds. Exits with 77, and says why,
# where this user may not change the root.
set -eu
bundle_sh=$1 sources=$2 tandem=$3 mpi_part=$4 mpiexec=$5 number=$6
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "failed: $*" >&2 && exit 1; }
root=$scratch/root
mkdir -p "$root/bin" "$root/proc" "$root/dev" "$root/tmp" "$scratch/programs"
: >"$root/dev/null"

# The tools that `start` calls, and of the libraries only the C library and what those tools need.
copy() {
  mkdir -p "$root$(dirname "$1")"
  cp -L "$1" "$root$1"
}
shell_tools='sh cat dirname grep printf'
for tool in $shell_tools; do
  path=$(command -v "$tool")
  case "$path" in /*) ;; *) path=/usr/bin/$tool ;; esac  # a shell's own
  cp -L "$path" "$root/bin/"
  ldd "$path" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' >>"$scratch/of_tools"
done
ldd "$tandem" | awk '$1 ~ /^\// { print $1 } $1 ~ /^lib(c|m|dl|rt|pthread|resolv)\.so/ { print $3 }' |
  cat - "$scratch/of_tools" | sort -u | while read -r library; do copy "$library"; done

# What every Linux has beside its files: /proc, and /dev/null.
# shellcheck disable=SC2016
in_root() {
  unshare --user --map-root-user --mount --pid --fork /bin/sh -c 'mount --rbind /proc "$0/proc" &&
    mount --bind /dev/null "$0/dev/null" && exec chroot "$0" /bin/sh -c "$1"' "$root" "$1"
}
if ! reason=$(unshare --user --map-root-user --mount --pid --fork /bin/sh -c 'mount --rbind /proc /mnt && chroot / true' 2>&1); then
  echo "skipped: this user may not change the root: $reason"
  exit 77
fi
in_root 'dirname /a/b' >/dev/null || fail "the tools in the empty root"

ln -s "$tandem" "$scratch/programs/tandem"
XZ_OPT=-1 "$bundle_sh" "$sources" "$scratch/programs" "$scratch/bundle.tar.xz" "$mpi_part"
tar -C "$root" -xJf "$scratch/bundle.tar.xz"

run() { in_root "cd /tmp && HOME=/tmp /tandem-gpu/start $1" >"$scratch/said" 2>&1; }
run --version || { cat "$scratch/said" && fail "--version"; }
cat "$scratch/said"
run 'run ../tandem-gpu/share/tandem/scenarios/examples/digits-sim.yaml -q -o sim.txt' || [ $? = 1 ] ||
  { cat "$scratch/said" && fail "a simulated run"; }
grep -q 'step time' "$root/tmp/sim.txt" || fail "no report of the simulated run"
run 'run ../tandem-gpu/share/tandem/scenarios/examples/digits.yaml --steps 40 -q -o cpu.txt' || [ $? = 1 ] ||
  { cat "$scratch/said" && fail "a measured run"; }
grep -q 'step time' "$root/tmp/cpu.txt" || fail "no report of the measured run"
[ -n "$mpi_part" ] || exit 0

# Launched as a rank of two where there is no MPI: refused by name.
status=0
in_root 'cd /tmp && OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 /tandem-gpu/start run --engine mpi \
  ../tandem-gpu/share/tandem/scenarios/examples/digits-multi-worker.yaml' >"$scratch/said" 2>&1 || status=$?
{ [ $status = 4 ] && grep -q libmpi "$scratch/said"; } || { cat "$scratch/said" && fail "without MPI: exit $status"; }
status=0
"$sources/tests/mpi/on_ranks.sh" "$mpiexec" "$number" 2 "$root/tandem-gpu/start" run --engine mpi --steps 40 -q \
  -o "$scratch/mpi.txt" "$root/tandem-gpu/share/tandem/scenarios/examples/digits-multi-worker.yaml" >"$scratch/said" 2>&1 ||
  status=$?
case "$status" in
0 | 1) ;;
77) cat "$scratch/said" && exit 0 ;;  # no rank can be launched; the rest has passed
*) cat "$scratch/said" && fail "two ranks: exit $status" ;;
esac
grep -q 'ranks' "$scratch/mpi.txt" || fail "no report of two ranks"
