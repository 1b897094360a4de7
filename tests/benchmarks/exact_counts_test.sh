#!/bin/sh
# Every difference that exact_counts finds has its message, and what is equal passes. exact_counts_test.sh EXACT_COUNTS SAMPLE
set -eu
exact_counts=$1
sample=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() { echo "exact_counts_test: $*" >&2; exit 1; }

# expect STATUS TEXT COMMAND...: the command ends so and prints this.
expect() {
  status=$1
  text=$2
  shift 2
  got=0
  "$@" >output 2>&1 || got=$?
  [ "$got" != 77 ] || exit 77
  [ "$got" = "$status" ] || fail "'$*' ended with $got instead of $status: $(cat output)"
  grep -qF -- "$text" output || fail "'$*' does not print '$text': $(cat output)"
}

# changed SED_SCRIPT: the stored counts, changed, are sample.json.
changed() { sed "$1" good.json >sample.json; ! cmp -s good.json sample.json || fail "'$1' changes nothing"; }

leave_out='{"sample": [{"benchmarks": "fails", "reason": "needs a device"}, {"benchmarks": "counts_nothing.*", "reason": "empty"}]}'
echo "$leave_out" >left_out.json
check() { expect "$1" "$2" "$exact_counts" check sample.json "$sample"; }

"$exact_counts" check sample.json "$sample" >output 2>&1 && fail "nothing is stored, and the check passes"
expect 0 "stored 2 benchmarks" "$exact_counts" update sample.json "$sample"
cp sample.json good.json
check 0 "sample: 2 benchmarks, 2 left out, 0 differences"
grep -qF "left out: fails: needs a device" output || fail "what is left out is not named: $(cat output)"
grep -q noise sample.json && fail "a counter that is not exact is stored"

changed 's/"exact.ops": 7/"exact.ops": 8/'
check 1 "counts/7: counter exact.ops is 7, stored is 8; if this is meant: cmake --build "
grep -qF "1 differences" output || fail "one counter differs: $(cat output)"
changed 's/"exact.ops": 1000000007/"exact.ops": 1000000008/'
check 1 "counts/1000000007: counter exact.ops is 1000000007, stored is 1000000008"
changed 's/"exact.seconds": 0.1/"exact.seconds": 0.10000000000000002/'
check 1 "counts/7: counter exact.seconds is 0.1, stored is 0.10000000000000002"
changed 's/exact.ops/exact.operations/'
check 1 "counts/7: counter exact.operations is missing, stored is 7"
grep -qF "counts/7: counter exact.ops is 7, stored is nothing" output || fail "a new counter: $(cat output)"
changed 's,"counts/7","counts/9",'
check 1 "counts/7: sample.json has no such benchmark; if it is new: cmake --build "
grep -qF "counts/9: stored in sample.json, but $sample does not run it" output || fail "a missing one: $(cat output)"

# Allocations belong to one build; the other counts to every one.
changed 's/"exact.allocations": 5/"exact.allocations": 6/'
check 1 "counts/7: counter exact.allocations is 5, stored is 6"
export SAMPLE_BUILD="another compiler"
check 0 "allocations are not compared: those stored are of 'one compiler', the program is of 'another compiler'"
changed 's/"exact.ops": 7/"exact.ops": 8/'
check 1 "counts/7: counter exact.ops is 7, stored is 8"
unset SAMPLE_BUILD
cp good.json sample.json

echo '{"sample": [{"benchmarks": "fails", "reason": "needs a device"}]}' >left_out.json
check 1 "counts_nothing/1: sets no exact counter"
echo '{}' >left_out.json
check 1 "fails failed: no such device"
echo '{"sample": [{"benchmarks": "fail", "reason": "only a part of a name"}]}' >left_out.json
check 1 "the pattern 'fail' of 'sample' matches no other benchmark"
echo "$leave_out" >left_out.json
check 0 "0 differences"

expect 0 "appended a line" "$exact_counts" history history.jsonl . sample.json "$sample"
expect 0 "appended a line" "$exact_counts" history history.jsonl . sample.json "$sample"
[ "$(wc -l <history.jsonl)" = 2 ] || fail "two runs are two lines"
grep -qF '"exact":{"exact.allocations":5,"exact.ops":7,"exact.seconds":0.1}' history.jsonl || fail "no counts: $(cat history.jsonl)"
sed '1s/"exact.ops":7/"exact.ops":8/' history.jsonl >changed.jsonl
expect 0 "sample counts/7" "$exact_counts" table changed.jsonl
grep "counts/7" output | grep -qF "s*" || fail "the changed count is not marked: $(cat output)"
grep "counts/1000000007" output | grep -qF "s*" && fail "a count is marked that did not change: $(cat output)"
exit 0
