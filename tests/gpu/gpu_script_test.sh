#!/bin/sh
# gpu.sh, on programs of an emulated machine: it goes through its steps, keeps what is done, and says what failed; and a
# bundle's start finds libraries in a Python wheel's folder. gpu_script_test.sh SOURCES TANDEM KERNELS FAILURES
set -eu
sources=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "failed: $*" >&2 && exit 1; }
has() { grep -qE "$2" "$1" || { cat "$1" >&2 && fail "$1 lacks '$2'"; }; }

mkdir "$scratch/bin"
ln -s "$2" "$scratch/bin/tandem"
ln -s "$3" "$scratch/bin/kernels"
ln -s "$4" "$scratch/bin/failures"
printf '#!/bin/sh\nexit 3\n' >"$scratch/bin/against_raw"
printf '#!/bin/sh\n[ "$1" = --gtest_list_tests ] && printf "A.\\n  One\\n" || exec sleep 60\n' >"$scratch/bin/engine"
# Three cases: the second ends its process, unless it is alone; the third is skipped.
cat >"$scratch/bin/tf_cases" <<'END'
#!/bin/sh
[ "$1" != --gtest_list_tests ] || { printf 'A.\n  One  # GetParam() = 1\n  Two\n  Three\n' && exit 0; }
filter=${1#--gtest_filter=}
case :$filter: in *:A.One:*) printf '[ RUN      ] A.One\n[       OK ] A.One (1200 ms)\n' ;; esac
case :$filter: in *:A.Two:*)
  echo '[ RUN      ] A.Two'
  [ "$filter" = A.Two ] || exit 134
  echo '[       OK ] A.Two (0 ms)'
  ;;
esac
case :$filter: in *:A.Three:*) printf '[ RUN      ] A.Three\n[  SKIPPED ] A.Three (0 ms)\n[  SKIPPED ] 1 test, listed below:\n' ;; esac
END
printf '#!/bin/sh\necho "no such folder" >&2; exit 134\n' >"$scratch/bin/strategies"
chmod +x "$scratch/bin/against_raw" "$scratch/bin/engine" "$scratch/bin/strategies" "$scratch/bin/tf_cases"
mkdir "$scratch/scenarios"
cp "$sources/scenarios/examples/digits-gpu.yaml" "$scratch/scenarios/"
for model in gpt-tiny moe-tiny; do
  sed -e 's/^steps: .*/steps: 3/; s/^warmup_steps: .*/warmup_steps: 1/; /^expect:/,$d' \
    "$sources/scenarios/examples/$model.yaml" >"$scratch/scenarios/$model.yaml"
done
export TANDEM_PROGRAMS="$scratch/bin" TANDEM_SCENARIOS="$scratch/scenarios"
gpu() { "$sources/tests/gpu/gpu.sh" --out "$scratch/out" "$@" >"$scratch/said" 2>&1; }

gpu machine train failures || { cat "$scratch/said" && fail "a good run"; }
has "$scratch/out/summary.txt" '^train +6 +0 +0 +0'
has "$scratch/out/summary.txt" '^failures +4 +0 +0 +0'
has "$scratch/out/logs/machine.versions.log" '^engines: .*cuda'
has "$scratch/out/digits.json" '"engine": "cuda"'
before=$(stat -c %Y "$scratch/out/logs/train.digits.log")
gpu machine train failures || fail "going on"
[ "$(stat -c %Y "$scratch/out/logs/train.digits.log")" = "$before" ] || fail "what is done is done again"
[ "$(grep -c '^failures' "$scratch/out/cases.tsv")" = 4 ] || fail "a case twice"
if gpu against_raw; then fail "a failure is none"; fi
has "$scratch/out/summary.txt" 'against_raw +all: failed, exit code 3'
if gpu strategies; then fail "no cases are none"; fi
has "$scratch/out/summary.txt" 'strategies +list: failed'
has "$scratch/out/logs/strategies.list.log" 'no such folder'
if gpu tf_cases; then fail "what failed before is forgotten"; fi
has "$scratch/out/summary.txt" '^tf_cases +2 +0 +1 +0'
has "$scratch/out/cases.tsv" '^tf_cases	A.One	passed	1	0$'
printf '#!/bin/sh\n[ "$1" = --gtest_list_tests ] && printf "A.\\n  One\\n" || exit 127\n' >"$scratch/bin/engine"
if gpu engine; then fail "a program that does not begin"; fi
has "$scratch/out/cases.tsv" '^engine	A.One	failed	[0-9]*	127$'
sed -i '/^engine/d' "$scratch/out/cases.tsv"
printf '#!/bin/sh\n[ "$1" = --gtest_list_tests ] && printf "A.\\n  One\\n" || exec sleep 60\n' >"$scratch/bin/engine"
if gpu --time 1 engine; then :; fi
if grep -q '^engine' "$scratch/out/cases.tsv"; then fail "a case that was cut has a result"; fi
if gpu unknown; then fail "an unknown step"; fi
has "$scratch/said" "no step 'unknown' \(known: machine"

# A bundle.
mkdir -p "$scratch/bundle/bin" "$scratch/bundle/lib"
cp "$sources/tests/gpu/bundle_start.sh" "$scratch/bundle/start"
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"\n' >"$scratch/bundle/bin/tandem"
chmod +x "$scratch/bundle/bin/tandem" "$scratch/bundle/start"
echo libnot-here.so.7 >"$scratch/bundle/needs"
if "$scratch/bundle/start" --version >"$scratch/said" 2>&1; then fail "a missing library"; fi
has "$scratch/said" 'not found on this machine: libnot-here.so.7; TANDEM_CUDA_LIBRARIES'
command -v python3 >/dev/null 2>&1 || exit 0
export PYTHONUSERBASE="$scratch/python"
site=$(python3 -c 'import site; print(site.getusersitepackages())')
mkdir -p "$site/nvidia/some/lib"
touch "$site/nvidia/some/lib/libnot-here.so.7"
"$scratch/bundle/start" --version >"$scratch/said" 2>&1 || fail "a wheel's library"
has "$scratch/said" "/lib:$site/nvidia/some/lib"
