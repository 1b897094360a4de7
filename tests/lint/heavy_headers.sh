#!/bin/sh
# What our public headers cost those who include them, in preprocessed lines.
#
#   heavy_headers.sh SOURCE_DIR COMPILER [FLAGS...]    prints the ten heaviest
#   heavy_headers.sh --check SOURCE_DIR COMPILER ...   and fails when one of engine/ or strategies/ is over the limit
#
# The limit counts what a header brings beyond the part of the standard library that the contract with engines needs, so
# that it holds for every compiler: our own declarations, another library's, or a heavy standard header.
set -eu
limit=12000
contract='array cstdint exception functional map memory optional span string string_view variant vector'

check=no
if [ "$1" = --check ]; then check=yes; shift; fi
self=$(realpath "$0")
cd "$1"
shift

if [ "${1:-}" = --lines-of ]; then
  header=$2
  shift 2
  text=$(printf '#include "%s"\n' "$header" | "$@" -E -x c++ -)  # fails where the compiler does
  lines=$(printf '%s\n' "$text" | wc -l)
  printf '%s %s\n' "$lines" "$header"
  exit
fi

base=$(for header in $contract; do printf '#include <%s>\n' "$header"; done | "$@" -E -x c++ - | wc -l)
sizes=$(mktemp)
trap 'rm -f "$sizes"' EXIT
looked_at='.'
[ $check = no ] || looked_at='^(engine|strategies)/'
tests/lint/public_headers.sh | grep -E "$looked_at" |
  xargs -P "$(nproc)" -I {} "$self" . --lines-of {} "$@" | sort -rn >"$sizes"

echo "preprocessed lines ($base of them are the standard library's in every header of the contract):"
head -10 "$sizes"
[ $check = yes ] || exit 0
awk -v most=$((base + limit)) '$1 > most { print "over " most ": " $2 " (" $1 ")"; bad = 1 }
  END { exit bad }' "$sizes"
