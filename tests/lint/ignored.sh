#!/bin/sh
# Files that a command leaves in the working folder cannot be committed by accident. Ends with 77 where git does not
# know this folder.
set -eu
cd "$1"
[ "$(git rev-parse --show-cdup 2>/dev/null || echo none)" = "" ] || exit 77
status=0
for file in small.sweep.jsonl small.sweep.jsonl.rank1 scenarios/examples/small.sweep.jsonl; do
  git check-ignore -q "$file" || { echo "$file: git does not ignore results of a sweep"; status=1; }
done
if git ls-files | grep -E '\.sweep\.jsonl(\.rank[0-9]+)?$'; then
  echo "results of a sweep are part of the sources"
  status=1
fi
exit $status
