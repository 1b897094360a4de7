#!/bin/sh
# Links go one way: checks what each folder includes, that no world shows where none may, and that engines and
# strategies are named in their tables only. Prints each offence.
set -eu
cd "$1"
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT

# forbid PATH REGEX WHY [EXCEPT]: no line of our sources under PATH matches REGEX; "file:line:text" of an exception
# matches EXCEPT.
forbid() {
  grep -rnHE --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.json' "$2" "$1" 2>/dev/null |
    grep -vE "${4:-^\$}" | sed "s|\$|    <- $3|" >>"$offences" || true
}

# Floors.
forbid topologies '#include "(engine|strategies|reports|scenarios|cli)/' 'topologies/ sees nothing of ours'
forbid engine '#include "(strategies|reports|scenarios|cli)/' 'engine/ sees topologies/ only'
forbid strategies '#include "(reports|scenarios|cli)/' 'strategies/ sees engine/ only'
forbid reports '#include "(strategies|scenarios|cli)/' 'reports/ sees the timeline only'
forbid reports '#include "engine/' 'reports/ sees the timeline only' '"engine/(timeline|collective|communicator)\.h"'
forbid scenarios '#include "cli/' 'scenarios/ does not see cli/'

# Rooms of engine/: an engine stands on the contract, on the runtime of threads and on the kernels; cuda on cpu's memory,
# too, and mpi on cpu's devices.
for file in engine/*.h engine/*.cc engine/base/*; do
  forbid "$file" '#include "engine/(threads|cpu|cuda|mpi|sim|kernels)/' 'the contract sees no engine'
done
forbid engine/kernels '#include "engine/(threads|cpu|cuda|mpi|sim)/' 'kernels see the contract only'
forbid engine/threads '#include "engine/(cpu|cuda|mpi|sim)/' 'the runtime of threads sees no engine'
forbid engine/cpu '#include "engine/(cuda|mpi|sim)/' 'an engine sees no other'
forbid engine/cuda '#include "engine/(mpi|sim)/' 'an engine sees no other'
forbid engine/mpi '#include "engine/(cuda|sim)/' 'an engine sees no other'
forbid engine/mpi '#include <mpi\.h>' 'only the library that is opened at run time sees MPI' 'engine/mpi/transport/mpi_transport\.cc'
forbid engine/sim '#include "engine/(threads|cpu|cuda|mpi)/' 'an engine sees no other'

# Worlds.
for folder in strategies reports scenarios cli; do
  forbid "$folder" '#include [<"](simgrid|mpi\.h|cuda|nccl|cblas|engine/(threads|cpu|cuda|mpi|sim|kernels)/)' 'no backend above engine/'
  forbid "$folder" 'thread_local' 'state of a task belongs in Task::context()'
  forbid "$folder" 'is_simulated' 'no code asks which world it is in'
done
forbid strategies '(steady_clock|system_clock|random_device|std::thread|std::mutex|condition_variable)' \
  'clocks, randomness and waiting are the engine'"'"'s'
forbid engine/sim '(steady_clock|system_clock|random_device)' 'simulated time is the only time'
for folder in engine topologies scenarios/calibration scenarios/fitting; do
  forbid "$folder" '(std::|[ (])(expm?1?|exp2|log(1p|2|10)?|pow|erfc?|hypot|cbrt|[lt]gamma|a?(sin|cos|tan)h?)f?\(' \
    'its last bit differs between machines: topologies/base/portable_math.h' \
    '^topologies/base/(portable_math\.(h|cc)|units\.cc):|void (CpuStream::)?log\(|: *//|^engine/(cuda|cpu)/|: +log\('
done
for header in $(tests/lint/public_headers.sh); do
  forbid "$header" '#include [<"](simgrid|mpi\.h|cuda|nccl|cblas)' 'a public header names a backend'
  forbid "$header" '#include <(boost|yaml-cpp|CLI|toml\+\+)/|#include <(pugixml|nlohmann/json)\.hpp>' \
    'a public header is light' '^(topologies/graph|reports/base/json_fields)\.h:'
done

# Names. The types of devices "cpu" and "gpu" are no engines.
strategies='one_device|mirrored|multi_worker_mirrored|central_storage|parameter_server(_v2)?|cluster_coordinator|fully_sharded|tensor_parallel|pipeline_parallel'
for folder in strategies reports scenarios cli; do
  forbid "$folder" '"(cpu|cuda|sim|mpi)"' 'engines are named in EngineInfo' 'DeviceType::cpu|"gpu" : "cpu"|\["cpu", "gpu"\]'
done
for folder in reports scenarios cli; do
  forbid "$folder" "\"($strategies)\"" 'strategies are named in StrategyInfo'
done

if [ -s "$offences" ]; then
  cat "$offences"
  exit 1
fi
echo "layers: no offence"
