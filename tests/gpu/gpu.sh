#!/bin/sh
# What a machine with GPUs must show, one step after the other: `./start gpu`, in the source tree and in a bundle.
#
#   gpu.sh [--out FOLDER] [--time SECONDS] [--again] [STEP...]
#
# Each step has a time limit and a log. The most telling comes first, and the summary is written anew after each step, so
# that a run that is cut short is useful. A second call goes on where the first one ended; --again forgets what did not
# pass. TANDEM_PROGRAMS is the folder of the programs.
#
# In FOLDER (gpu-results): summary.txt, cases.tsv, logs/, machine.yaml (the calibrated topology), fidelity.md (rows for
# docs/fidelity.md), and *.json of each comparison.
set -u
programs=${TANDEM_PROGRAMS:?the folder of the programs}
scenarios=${TANDEM_SCENARIOS:?the folder of the examples}
out=gpu-results budget_s=86400 again=""
while [ $# != 0 ]; do
  case "$1" in
  --out) out=$2 && shift 2 ;;
  --time) budget_s=$2 && shift 2 ;;
  --again) again=yes && shift ;;
  -*) echo "gpu.sh: no option '$1' (--out, --time, --again)" >&2 && exit 2 ;;
  *) break ;;
  esac
done
all="machine kernels train failures against_raw calibrate compare nccl engine strategies divisions tf_cases calibrate_full sanitize"
for step in "$@"; do
  case " $all " in *" $step "*) ;; *) echo "gpu.sh: no step '$step' (known: $all)" >&2 && exit 2 ;; esac
done
[ $# != 0 ] || eval "set -- $all"

mkdir -p "$out/logs"
out=$(cd "$out" && pwd)
cases=$out/cases.tsv
touch "$cases"
if [ -n "$again" ]; then
  grep -E "	(passed|skipped)	" "$cases" >"$cases.new"
  mv "$cases.new" "$cases"
fi
began_s=$(date +%s)
width=$(nproc)  # of suites whose cases run beside each other
[ "$width" -le 8 ] || width=8

left_s() { echo $((budget_s - $(date +%s) + began_s)); }
say() { printf '%s\n' "gpu: $*" >&2; }

write_summary() {
  {
    echo "Tandem on $(head -n 1 "$out/logs/gpus.log" 2>/dev/null || echo "this machine's GPUs")"
    echo
    printf '%-14s %7s %7s %8s %9s %9s\n' step passed failed skipped "too long" seconds
    awk -F '\t' '
      !($1 in seen) { order[++steps] = $1; seen[$1] = 1 }
      { count[$1, $3]++; seconds[$1] += $4 }
      END {
        for (i = 1; i <= steps; ++i) {
          step = order[i]
          printf "%-14s %7d %7d %8d %9d %9d\n", step, count[step, "passed"], count[step, "failed"],
            count[step, "skipped"], count[step, "too_long"], seconds[step]
        }
      }' "$cases"
    if grep -qE "	(failed|too_long)	" "$cases"; then
      echo
      echo "Not passed (logs/STEP.CASE.log):"
      awk -F '\t' '$3 == "failed" || $3 == "too_long" { printf "  %s  %s: %s, exit code %s\n", $1, $2, $3, $5 }' "$cases"
    fi
  } >"$out/summary.txt"
}

has_result() { # STEP CASE
  awk -F '\t' -v step="$1" -v name="$2" '$1 == step && $2 == name { found = 1 } END { exit !found }' "$cases"
}

# run_case STEP CASE LIMIT_S COMMAND...: one process, unless it has a result already. 77, or a test that says so: skipped.
run_case() {
  step=$1 name=$2 limit_s=$3
  shift 3
  ! has_result "$step" "$name" || return 0
  rest_s=$(left_s)
  [ "$rest_s" -gt 0 ] || return 0
  is_cut=""
  [ "$rest_s" -ge "$limit_s" ] || { limit_s=$rest_s is_cut=yes; }
  log=$out/logs/$step.$(printf '%s' "$name" | tr -c 'A-Za-z0-9._-' '_').log
  case_s=$(date +%s)
  timeout -k 10 "$limit_s" "$@" >"$log" 2>&1 </dev/null
  code=$?
  case_s=$(($(date +%s) - case_s))
  case $code in
  0) if grep -q '\[  SKIPPED \]' "$log"; then result=skipped; else result=passed; fi ;;
  77) result=skipped ;;
  124 | 137) result=too_long ;;
  *) result=failed ;;
  esac
  [ $result != too_long ] || [ -z "$is_cut" ] || return 0  # the whole run is over, not this case's time
  printf '%s\t%s\t%s\t%s\t%s\n' "$step" "$name" "$result" "$case_s" "$code" >>"$cases"
  [ $result = passed ] || [ $result = skipped ] || say "$step: $name: $result"
}

# cases_of STEP LIMIT_S PROGRAM FILTER: the cases of a GoogleTest program, into STEP.list. One that lists none has failed.
cases_of() {
  "$programs/$3" --gtest_list_tests "--gtest_filter=$4" 2>"$out/$1.errors" |
    awk '/^[^ ].*\.( |$)/ { suite = $1; next } /^ / { print suite $1 }' >"$out/$1.list"
  # shellcheck disable=SC2016
  [ -s "$out/$1.list" ] || run_case "$1" list "$2" sh -c 'cat "$0" && exit 1' "$out/$1.errors"
  rm -f "$out/$1.errors"
}

# suite STEP LIMIT_S PROGRAM FILTER: each case in a process of its own, one after the other.
suite() {
  cases_of "$@"
  while IFS= read -r case_name; do
    run_case "$1" "$case_name" "$2" "$programs/$3" "--gtest_filter=$case_name"
  done <"$out/$1.list"
  rm -f "$out/$1.list"
}

# wide_suite STEP LIMIT_S PROGRAM FILTER: many cases in a few processes beside each other, as opening a GPU takes longer
# than most cases. What has not passed there, and what a process was at when it ended, runs again in a process of its own,
# and that result counts.
wide_suite() {
  cases_of "$@"
  rm -f "$out/logs/$1".shard-*.log "$out/$1.alone"
  : >"$out/$1.rest"
  passed_before=-1
  while [ "$(left_s)" -gt 0 ]; do
    awk -F '\t' -v step="$1" 'FILENAME == ARGV[1] { if ($1 == step) done[$2] = 1; next } !($1 in done)' \
      "$cases" "$out/$1.list" >"$out/$1.rest"
    passed=$(awk -F '\t' -v step="$1" '$1 == step { ++n } END { print n + 0 }' "$cases")
    [ -s "$out/$1.rest" ] && [ "$passed" != "$passed_before" ] || break
    passed_before=$passed
    limit_s=$2
    [ "$(left_s)" -ge "$limit_s" ] || limit_s=$(left_s)
    shard=0
    while [ $shard -lt "$width" ]; do
      filter=$(awk -v n="$width" -v shard=$shard 'NR % n == shard' "$out/$1.rest" | paste -sd : -)
      if [ -n "$filter" ]; then
        timeout -k 10 "$limit_s" "$programs/$3" "--gtest_filter=$filter" >"$out/logs/$1.shard-$shard.log" 2>&1 </dev/null &
      else
        : >"$out/logs/$1.shard-$shard.log"
      fi
      shard=$((shard + 1))
    done
    wait
    cat "$out/logs/$1".shard-*.log | sed -nE 's/^\[ +(OK|SKIPPED|FAILED|RUN) +\] ([^ ,]+).*/\1 \2 &/p' |
      awk -v step="$1" -v alone="$out/$1.alone" '
        $1 == "RUN" { began[$2] = 1; next }
        !match($0, /\([0-9]+ ms\)$/) { next }
        { milliseconds = substr($0, RSTART + 1) + 0 }
        $1 == "OK" { delete began[$2]; printf "%s\t%s\tpassed\t%.0f\t0\n", step, $2, milliseconds / 1000 }
        $1 == "SKIPPED" { delete began[$2]; printf "%s\t%s\tskipped\t%.0f\t0\n", step, $2, milliseconds / 1000 }
        END { for (name in began) print name >alone }' >>"$cases"
    [ -f "$out/$1.alone" ] || continue
    while IFS= read -r case_name; do
      run_case "$1" "$case_name" "$2" "$programs/$3" "--gtest_filter=$case_name"
    done <"$out/$1.alone"
    rm -f "$out/$1.alone"
  done
  while IFS= read -r case_name; do  # what no process came to
    run_case "$1" "$case_name" "$2" "$programs/$3" "--gtest_filter=$case_name"
  done <"$out/$1.rest"
  rm -f "$out/$1.list" "$out/$1.rest"
}

tandem() { # STEP CASE LIMIT_S ARGUMENT...
  case_step=$1 case_name=$2 case_limit_s=$3
  shift 3
  run_case "$case_step" "$case_name" "$case_limit_s" "$programs/tandem" "$@"
}

step_machine() {
  nvidia-smi -L >"$out/logs/gpus.log" 2>/dev/null || echo "GPUs that nvidia-smi does not list" >"$out/logs/gpus.log"
  tandem machine versions 60 --version
  command -v nvidia-smi >/dev/null 2>&1 || return 0
  run_case machine nvidia-smi 60 nvidia-smi -q
  run_case machine links 60 nvidia-smi topo -m
}

step_kernels() { wide_suite kernels 120 kernels '*'; }
step_failures() { suite failures 120 failures '*'; }
step_engine() { wide_suite engine 120 engine '*/cuda*'; }
step_strategies() { wide_suite strategies 120 strategies '*cuda*'; }
step_divisions() { wide_suite divisions 120 divisions '*_cuda'; }
step_tf_cases() { wide_suite tf_cases 120 tf_cases 'Cases/*__cuda:Cases/*__cuda_graphs'; }

step_train() {
  for graphs in "" --graphs; do
    # shellcheck disable=SC2086
    tandem train "digits$graphs" 180 run "$scenarios/digits-gpu.yaml" --engine cuda $graphs --json -o "$out/digits$graphs.json"
    # shellcheck disable=SC2086
    tandem train "gpt$graphs" 180 run "$scenarios/gpt-tiny.yaml" --engine cuda --device-type gpu $graphs --json -o "$out/gpt$graphs.json"
    # shellcheck disable=SC2086
    tandem train "moe$graphs" 180 run "$scenarios/moe-tiny.yaml" --engine cuda --device-type gpu $graphs --json -o "$out/moe$graphs.json"
  done
}

step_against_raw() { run_case against_raw all 300 "$programs/against_raw"; }

step_calibrate() {
  tandem calibrate quick 600 calibrate --engine cuda --quick --dtypes f32,bf16 -o "$out/machine.yaml"
}
step_calibrate_full() {
  tandem calibrate_full full 3600 calibrate --engine cuda --dtypes f32,tf32,bf16,f16 -o "$out/machine-full.yaml"
}

# Measured beside predicted on the calibrated topology, for numbers of logical devices.
step_compare() {
  topology=$out/machine.yaml
  [ ! -f "$out/machine-full.yaml" ] || topology=$out/machine-full.yaml
  [ -f "$topology" ] || { say "compare: no topology; calibrate first" && return 0; }
  for replicas in 1 2 4 8; do
    for scenario in digits-gpu gpt-tiny layers-small resnet50-hgx-h100 bert-large-hgx-h100; do
      document=$out/compare-$scenario-$replicas.json
      tandem compare "$scenario-$replicas" 600 compare "$scenarios/$scenario.yaml" --engines cuda,sim --device-type gpu \
        --topology "$topology" --replicas "$replicas" --json -o "$document"
      [ ! -f "$document" ] || tandem compare "$scenario-$replicas-table" 60 report "$document"
    done
  done
  {
    echo "Measured with $("$programs/tandem" --version | head -n 1) on $(head -n 1 "$out/logs/gpus.log")."
    for log in "$out"/logs/compare.*-table.log; do
      [ -f "$log" ] || continue
      printf '\n%s:\n```\n' "$(basename "$log" -table.log | sed 's/^compare\.//')"
      cat "$log"
      echo '```'
    done
  } >"$out/fidelity.md"
}

step_nccl() {
  gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
  [ "$gpus" -ge 2 ] || return 0
  peer=$(command -v all_reduce_perf || true)
  tandem nccl all_reduce 300 collectives all_reduce --engine cuda -g "$gpus" -b 8 -e 256M -f 2 --json -o "$out/all_reduce.json"
  [ -n "$peer" ] || { say "nccl: no all_reduce_perf here to compare with" && return 0; }
  run_case nccl all_reduce_perf 300 "$peer" -g "$gpus" -b 8 -e 256M -f 2
  tandem nccl beside_all_reduce_perf 300 collectives all_reduce --engine cuda -g "$gpus" -b 8 -e 256M -f 2 \
    --against "$out/logs/nccl.all_reduce_perf.log"
}

step_sanitize() {
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
  [ -n "$sanitizer" ] || { say "sanitize: no compute-sanitizer here" && return 0; }
  for tool in memcheck racecheck synccheck initcheck; do
    run_case sanitize "$tool" 1800 "$sanitizer" --tool "$tool" --error-exitcode 3 "$programs/kernels"
  done
}

for step in "$@"; do
  [ "$(left_s)" -gt 0 ] || { say "the time is over; call it again to go on" && break; }
  say "$step"
  "step_$step"
  write_summary
done
cat "$out/summary.txt"
! grep -qE "	(failed|too_long)	" "$cases"
