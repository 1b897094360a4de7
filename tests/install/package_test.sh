#!/bin/sh
# package_test.sh CPACK BUILD: the Debian package names what it needs, and what it carries runs from where it is unpacked,
# with nothing of this tree. Exits with 77, and says why, where packages cannot be made.
set -eu
cpack=$1 build=$2
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool (Debian: dpkg-dev, file)" && exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "failed: $*" >&2 && exit 1; }
"$cpack" --config "$build/CPackConfig.cmake" -B "$scratch" >"$scratch/said" 2>&1 || { cat "$scratch/said" && fail cpack; }
package=$(ls "$scratch"/tandem_*.deb)
dpkg-deb --field "$package" Package Version Architecture Depends
for needed in libc6 libsimgrid libopenblas libyaml-cpp libfmt libhwloc libpugixml; do
  dpkg-deb --field "$package" Depends | grep -q "$needed" || fail "does not depend on $needed"
done
dpkg-deb --extract "$package" "$scratch/unpacked"
cd "$scratch"
tandem() { env -i PATH=/usr/bin:/bin HOME="$scratch" "$scratch/unpacked/usr/bin/tandem" "$@"; }
tandem --version
tandem run "$scratch/unpacked/usr/share/tandem/scenarios/examples/digits-sim.yaml" -q -o report.txt >said 2>&1 || [ $? = 1 ] ||
  { cat said && fail "a simulated run"; }
grep -q 'step time' report.txt || fail "no report"
tandem topology show hgx-h100 >topology.txt || fail "the catalog"
for file in man/man1/tandem.1 bash-completion/completions/tandem zsh/site-functions/_tandem fish/vendor_completions.d/tandem.fish; do
  grep -q sweep "$scratch/unpacked/usr/share/$file" || fail "no subcommands in share/$file"
done
documents=$scratch/unpacked/usr/share/doc/tandem
[ "$(head -1 "$documents/copyright")" = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/" ] ||
  fail "no copyright file in Debian's format"
# Each licence that a paragraph of files names has a paragraph with its text.
for licence in $(sed -n '/^Files:/,/^$/s/^License: //p' "$documents/copyright"); do
  grep -A1 "^License: $licence\$" "$documents/copyright" | grep -q '^ ' || fail "no text of the licence $licence"
done
grep -q 'Apache License' "$documents/LICENSE" || fail "no licence"
[ ! -e "$scratch/unpacked/usr/lib/tandem/tandem_mpi.so" ] || ! ldd "$scratch/unpacked/usr/lib/tandem/tandem_mpi.so" | grep 'not found' ||
  fail "the part that is linked with MPI"
