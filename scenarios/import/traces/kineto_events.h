// The events of a Kineto trace that matter, before they are put in order. Facts from pytorch/kineto,
// libkineto/src/output_json.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "topologies/base/json_stream.h"

namespace tandem {

// What is known about a collective, from its kernel or from the host's operation that launched it.
struct CollectiveFacts {
  std::string name{}, dtype{}, ranks{};
  std::int64_t in_elements = -1, out_elements = -1, group_size = -1, first_rank = 0, stride = 1;
  std::int64_t source = -1, target = -1;
};

struct KinetoEvents {
  struct Work {  // on a device
    int name = 0;
    std::int64_t start_ns = 0, duration_ns = 0, correlation = -1, external = -1;
    std::int64_t device = 0, stream = 0;
    int facts = -1;  // an index
    bool is_memory = false;
    FilePlace place{};
  };
  struct Call {  // of the runtime, on the host
    std::int64_t start_ns = 0, duration_ns = 0, correlation = -1;
    enum class Kind : std::uint8_t { launch, copy, synchronize } kind = Kind::launch;
  };
  std::vector<Work> works{};
  std::vector<Call> calls{};
  std::vector<CollectiveFacts> facts{};
  std::unordered_map<std::int64_t, int> facts_of_external{};  // ids of host operations
  std::vector<std::string> names{};
  std::string device{};
  int rank = 0, world = 0, steps = 0;  // world 0: the file does not say it
  int first_step = 0;                  // the least number of a step
  bool has_rank = false;
};

// Reads the whole document: an object with traceEvents, or a list of events. Throws InputError.
KinetoEvents read_kineto_events(JsonStream& json);

}  // namespace tandem
