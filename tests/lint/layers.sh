#!/bin/sh
# Links go one way: checks what each folder includes, and that no world shows where none may. Prints each offence.
set -eu
cd "$1"
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT

# forbid FOLDER REGEX WHY
forbid() {
  grep -rnE --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' "$2" "$1" 2>/dev/null | sed "s|\$|    <- $3|" >>"$offences" || true
}

forbid topologies '#include "(engine|strategies|reports|scenarios|cli)/' 'topologies/ sees nothing of ours'
forbid engine '#include "(strategies|reports|scenarios|cli)/' 'engine/ sees topologies/ only'
forbid strategies '#include "(reports|scenarios|cli)/' 'strategies/ sees engine/ only'
forbid reports '#include "(strategies|scenarios|cli)/' 'reports/ sees the timeline only'
forbid reports '#include "engine/(engine|worker|device|task|cpu|cuda|sim)' 'reports/ sees the timeline only'
forbid scenarios '#include "cli/' 'scenarios/ does not see cli/'
for folder in strategies reports scenarios cli; do
  forbid "$folder" '#include [<"](simgrid|mpi\.h|cuda|nccl|cblas|engine/(cpu|cuda|sim)/)' 'no backend above engine/'
  forbid "$folder" 'thread_local' 'state of a task belongs in Task::context()'
done
for folder in strategies reports scenarios cli; do
  forbid "$folder" 'is_simulated' 'no code asks which world it is in'
done
forbid strategies '"(cpu|sim|cuda|mpi)"' 'no engine is named in strategies/'
forbid strategies '(steady_clock|system_clock|random_device|std::thread|std::mutex|condition_variable)' \
  'clocks, randomness and waiting are the engine'"'"'s'
forbid engine/sim '(steady_clock|system_clock|random_device)' 'simulated time is the only time'
for header in engine/*.h topologies/*.h strategies/*.h reports/*.h scenarios/*.h; do
  grep -nHE '#include [<"](simgrid|mpi\.h|cuda|nccl|cblas)' "$header" | sed 's|$|    <- a public header names a backend|' >>"$offences" || true
done

if [ -s "$offences" ]; then
  cat "$offences"
  exit 1
fi
echo "layers: no offence"
