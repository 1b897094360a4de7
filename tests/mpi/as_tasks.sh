#!/bin/sh
# as_tasks.sh JOBS PROGRAM ARGS...: starts the program once for each task of a cluster, with its TF_CONFIG and nothing
# else, as from a terminal each. JOBS is like "chief=1,worker=2,ps=1". Their outputs come one after the other, once all
# have ended. Exits with the first code that is not 0, in the order of the tasks.
set -u
jobs=$(echo "$1" | tr ',' ' ')
shift
count=0
for job in $jobs; do count=$((count + ${job#*=})); done
ports=$(python3 -c "
import socket
sockets = [socket.socket() for _ in range($count)]
for one in sockets: one.bind(('127.0.0.1', 0))
print(*(one.getsockname()[1] for one in sockets))")
cluster=""
set_aside=$ports
for job in $jobs; do
  addresses=""
  left=${job#*=}
  while [ "$left" -gt 0 ]; do
    addresses="$addresses${addresses:+, }\"127.0.0.1:${set_aside%% *}\""
    set_aside=${set_aside#* }
    left=$((left - 1))
  done
  cluster="$cluster${cluster:+, }\"${job%=*}\": [$addresses]"
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number=0
processes=""
for job in $jobs; do
  index=0
  while [ "$index" -lt "${job#*=}" ]; do
    TF_CONFIG="{\"cluster\": {$cluster}, \"task\": {\"type\": \"${job%=*}\", \"index\": $index}}" \
      "$@" >"$folder/$number.out" 2>"$folder/$number.err" </dev/null &
    processes="$processes $!"
    number=$((number + 1))
    index=$((index + 1))
  done
done
code=0
for process in $processes; do
  wait "$process"
  ended=$?
  if [ "$code" -eq 0 ]; then code=$ended; fi
done
number=0
while [ "$number" -lt "$count" ]; do
  cat "$folder/$number.out"
  cat "$folder/$number.err" >&2
  number=$((number + 1))
done
exit "$code"
