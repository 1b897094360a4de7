#!/bin/sh
# run.sh PROGRAM OUT [TARGET...]: lets libFuzzer look for inputs that a reader neither reads nor refuses, for
# TANDEM_FUZZ_SECONDS (60) a target. hwloc takes four times as long: libhwloc reads behind Tandem's own checks. New
# inputs are kept in OUT/corpus, and inputs that crash in OUT; the committed corpus stays as it is.
set -eu
program=$1 out=$2
shift 2
sources=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${TANDEM_FUZZ_SECONDS:-60}
[ $# != 0 ] || set -- $(cd "$sources/tests/fuzz/corpus" && ls)
failed=
for target in "$@"; do
  mkdir -p "$out/corpus/$target"
  time=$seconds
  [ "$target" != hwloc ] || time=$((4 * seconds))
  echo "fuzz: $target for $time s"
  TANDEM_FUZZ_TARGET=$target ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0} "$program" -max_total_time="$time" \
    -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -verbosity=0 -artifact_prefix="$out/$target-" \
    "$out/corpus/$target" "$sources/tests/fuzz/corpus/$target" 2>"$out/$target.log" || failed="$failed $target"
  grep -E 'number_of_executed_units|peak_rss|ERROR|SUMMARY' "$out/$target.log" | sed 's/^/  /' || true
done
[ -z "$failed" ] || { echo "fuzz: found something for:$failed (logs and inputs: $out)"; exit 1; }
echo "fuzz: nothing found"
