#!/bin/sh
# What `tandem check --against` is worth on this machine: how often it is wrong about a program that is compared with
# itself, and how often it finds a change that is there. Prints a section for docs/fidelity.md.
#
#   trust.sh [--tandem PROGRAM] [--scenario FILE] [--same N] [--slower N] [--lines FILE] [--out FILE]
#
# N comparisons with itself (300), and N (30) for each of +2, 3, 5 and 10 %: this tandem's device work then takes so much
# longer (TANDEM_SLOW_DOWN), the other's does not. A comparison takes 16 to 64 launches of a third of a second: the whole takes
# an hour or more, on a machine that does nothing else. Each comparison is a line on stderr when it is done. With --lines they are kept there,
# and a call that was ended goes on where it was; with --same 0 --slower 0 it prints what there is.
set -eu
tandem=tandem scenario=tests/gate/short.yaml same=300 slower=30 lines='' out=-
while [ $# -gt 1 ]; do
  case "$1" in
  --tandem) tandem=$2 ;;
  --scenario) scenario=$2 ;;
  --same) same=$2 ;;
  --slower) slower=$2 ;;
  --lines) lines=$2 ;;
  --out) out=$2 ;;
  *) echo "trust.sh: no option '$1' (--tandem, --scenario, --same, --slower, --lines, --out)" >&2 && exit 2 ;;
  esac
  shift 2
done
[ $# = 0 ] || { echo "trust.sh: '$1' has no value" >&2 && exit 2; }
tandem=$(command -v "$tandem") || { echo "trust.sh: no such program" >&2 && exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# The other program: this one, never slowed down.
export TRUST_TANDEM="$tandem"
# shellcheck disable=SC2016
printf '#!/bin/sh\nunset TANDEM_SLOW_DOWN\nexec "$TRUST_TANDEM" "$@"\n' >"$work/other"
chmod +x "$work/other"

# field NAME: the first value of that name in the result's document.
field() {
  sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" "$work/result" | head -1
}

# compare SHARE: a line "verdict change pairs", such as "regressed 0.051 8".
compare() {
  status=0
  if [ "$1" = 0 ]; then
    "$tandem" check "$scenario" --against "$work/other" --json -q >"$work/result" 2>"$work/error" || status=$?
  else
    TANDEM_SLOW_DOWN=$1 "$tandem" check "$scenario" --against "$work/other" --json -q >"$work/result" 2>"$work/error" ||
      status=$?
  fi
  case "$status" in
  0 | 1 | 6) ;;
  *) cat "$work/error" >&2 && exit "$status" ;;
  esac
  printf '%s %s %s\n' "$(field verdict)" "$(field estimate)" "$(field pairs)"
}

# done_of SHARE: how many of its comparisons are done.
done_of() {
  grep -c " $1 [a-z]" "$lines" || true
}

# compare_until SHARE N: compares until N are done.
compare_until() {
  count=$(done_of "$1")
  while [ "$count" -lt "$2" ]; do
    line="$(date -u +%Y-%m-%d) $1 $(compare "$1")"
    printf '%s\n' "$line" >>"$lines"
    count=$((count + 1))
    echo "+$1, $count: ${line#* * }" >&2
  done
}

# row SHARE: a row of the table.
row() {
  grep " $1 [a-z]" "$lines" | sort -g -k4,4 | awk -v share="$1" '
    { count[$3]++; change[NR] = $4; pairs += $5 }
    END {
      if (NR == 0) exit
      median = NR % 2 ? change[(NR + 1) / 2] : (change[NR / 2] + change[NR / 2 + 1]) / 2
      printf "| +%g %% | %d | %d | %d | %d | %d | %+.2f %% | %.1f |\n", share * 100, NR, count["regressed"], count["improved"],
             count["ok"], count["inconclusive"], median * 100, pairs / NR
    }'
}

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
setting="$("$tandem" --version | head -1), $(basename "$scenario") on ${processor:-a machine} ($(nproc) cores)"
[ -n "$lines" ] || lines=$work/lines
[ -s "$lines" ] || printf '# %s\n' "$setting" >"$lines"
if [ "$(head -1 "$lines")" != "# $setting" ]; then
  echo "trust.sh: the lines of $lines are of $(head -1 "$lines" | cut -c3-), not of $setting" >&2 && exit 2
fi

# All rows grow together, so that a call that is ended has something of each.
rounds=$same
[ "$slower" -le "$rounds" ] || rounds=$slower
round=0
while [ "$round" -lt "$rounds" ]; do
  round=$((round + 1))
  compare_until 0 $((same * round / rounds))
  for share in 0.02 0.03 0.05 0.10; do compare_until "$share" $((slower * round / rounds)); done
done

{
  days=$(sed -n '2,$s/ .*//p' "$lines" | sort -u)
  printf 'Measured on %s with %s. The change is the median of the estimates.\n\n' \
    "$(printf '%s\n' "$days" | sed -n '1p;$p' | uniq | paste -sd ' ' | sed 's/ / to /')" "$setting"
  echo '| device work | comparisons | regressed | improved | ok | inconclusive | change | pairs of launches |'
  echo '|---|---|---|---|---|---|---|---|'
  for share in 0 0.02 0.03 0.05 0.10; do row "$share"; done
} >"$work/section"
if [ "$out" = - ]; then cat "$work/section"; else cp "$work/section" "$out"; fi
