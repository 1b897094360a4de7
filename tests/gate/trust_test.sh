#!/bin/sh
# trust.sh with a program that gives known verdicts.
set -eu
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/tandem" <<'PROGRAM'
#!/bin/sh
result() {
  printf '{\n  "verdict": "%s",\n  "change": {\n    "estimate": %s,\n    "lower": 0\n  },\n  "pairs": %s\n}\n' "$1" "$2" "$3"
  exit "$4"
}
case "$1" in --version) echo "tandem 9.9" && exit ;; esac
case "${TANDEM_SLOW_DOWN:-0}" in
0) result ok -0.0004 8 0 ;;
0.02) result inconclusive 0.019 32 6 ;;
*) result regressed 0.045 8 1 ;;
esac
PROGRAM
chmod +x "$work/tandem"
"$folder/trust.sh" --tandem "$work/tandem" --same 4 --slower 2 --out "$work/section" 2>"$work/progress"
expect() {
  grep -qxF "$1" "$work/section" || { echo "missing: $1" && cat "$work/section" && exit 1; }
}
expect '| +0 % | 4 | 0 | 0 | 4 | 0 | -0.04 % | 8.0 |'
expect '| +2 % | 2 | 0 | 0 | 0 | 2 | +1.90 % | 32.0 |'
expect '| +10 % | 2 | 2 | 0 | 0 | 0 | +4.50 % | 8.0 |'
grep -q '^Measured on 20..-..-.. with tandem 9.9, short.yaml on ' "$work/section"
[ "$(wc -l <"$work/progress")" = 12 ] || { echo "a line a comparison" && exit 1; }

# A call that was ended goes on where it was, with lines of the same program only.
"$folder/trust.sh" --tandem "$work/tandem" --same 2 --slower 1 --lines "$work/lines" --out "$work/part" 2>/dev/null
cp "$work/part" "$work/section"
expect '| +0 % | 2 | 0 | 0 | 2 | 0 | -0.04 % | 8.0 |'
"$folder/trust.sh" --tandem "$work/tandem" --same 4 --slower 2 --lines "$work/lines" --out "$work/section" 2>"$work/progress"
expect '| +0 % | 4 | 0 | 0 | 4 | 0 | -0.04 % | 8.0 |'
expect '| +10 % | 2 | 2 | 0 | 0 | 0 | +4.50 % | 8.0 |'
[ "$(wc -l <"$work/progress")" = 6 ] || { echo "only what was missing" && exit 1; }
"$folder/trust.sh" --tandem "$work/tandem" --same 0 --slower 0 --lines "$work/lines" --out "$work/again"
cmp "$work/section" "$work/again"
status=0
sed -i 's/^# tandem 9.9/# tandem 9.8/' "$work/lines"
"$folder/trust.sh" --tandem "$work/tandem" --lines "$work/lines" 2>"$work/error" || status=$?
[ "$status" = 2 ] || { echo "lines of another program: $status" && exit 1; }
grep -q 'are of tandem 9.8' "$work/error"

# What fails ends the whole, and says why.
cat >"$work/tandem" <<'PROGRAM'
#!/bin/sh
[ "$1" != --version ] || exit 0
echo "it broke" >&2
exit 5
PROGRAM
status=0
"$folder/trust.sh" --tandem "$work/tandem" --same 1 2>"$work/error" || status=$?
[ "$status" = 5 ] || { echo "status $status" && exit 1; }
grep -q 'it broke' "$work/error" || { cat "$work/error" && exit 1; }
status=0
"$folder/trust.sh" --tandem "$work/nowhere" 2>"$work/error" || status=$?
[ "$status" = 2 ] || { echo "no program: $status" && exit 1; }
if command -v shellcheck >/dev/null 2>&1; then shellcheck "$folder/trust.sh" "$folder/trust_test.sh"; fi
echo "trust: as expected"
