// Predictions of published measurements, and their errors. An error is predicted / measured - 1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/errors/prediction_groups.h"

namespace tandem {

// One size of a collective.
struct ValidationPoint {
  std::string file{};
  std::string site{};    // who published it; files of one site are not independent
  std::string family{};  // the machine: "hgx-h100, 2 nodes"
  PredictionGroup group = PredictionGroup::collectives_nvlink;
  std::string collective{};  // "all_reduce"
  std::string dtype{};       // in nccl-tests' words
  int devices = 0;
  int nodes = 1;
  std::int64_t bytes = 0;
  double measured_us = 0;
  double predicted_us = 0;
  std::string basis{};      // on which the prediction rests: "links", "interpolated"
  std::string algorithm{};  // the model's choice: "ring LL128, 24 channels"; may be empty
  std::string apart{};      // the rule by which it is reported apart: "no P2P"; empty: it counts

  double error() const { return predicted_us / measured_us - 1; }
};

// The most memory of a device, as frameworks count it: what tensors took, or what the allocator had reserved for them.
struct PublishedPeak {
  std::int64_t bytes = 0;
  bool is_reserved = false;
};

// One row of a training table.
struct TrainingPoint {
  std::string file{};
  std::string source{};  // who published it; files of one source are not independent
  std::string family{};  // the machine: "hgx-h100, 2 nodes"
  std::string model{};
  std::string run{};  // its name; may be empty
  std::string strategy{};
  std::string compared_as{};  // PredictionKind::strategy
  int devices = 1;
  int nodes = 1;
  std::string unit{};  // of both: "images/s"
  double measured = 0;
  double predicted = 0;
  double linear = 0;    // the number of devices times the one-device row; 0: there is none
  std::string basis{};  // "fitted on one GPU", "device figures"
  std::string apart{};  // as above
  std::optional<PublishedPeak> peak{};
  std::int64_t predicted_peak = 0;  // of the device that needs most

  double error() const { return predicted / measured - 1; }
  double peak_error() const { return static_cast<double>(predicted_peak) / static_cast<double>(peak->bytes) - 1; }
};

// Returns the number of machines by which errors are grouped.
inline std::string nodes_text(int nodes) {
  return nodes == 1 ? "one node" : "several nodes";
}

// A measurement that was not replayed, and why.
struct LeftOut {
  std::string file{};
  std::string why{};
};

struct Validation {
  std::string protocol{};
  std::vector<ValidationPoint> points{};
  std::vector<TrainingPoint> training{};
  std::vector<LeftOut> left_out{};
  std::vector<LeftOut> notes{};               // what of a file was read in another way than it is written
  std::vector<std::string> contradictions{};  // measured times that are too short for the links of their machine
  std::string nothing{};                      // why nothing was predicted; empty: something was
};

// Returns tables of the errors by one node or several, collective and size, beside the spread of measurements that were
// repeated; with `by_family`, also for each machine.
std::string validation_text(const Validation& validation, bool by_family = true);
// Lists the files of points whose error is more than `limit` (0.35: 35 %), most points first.
std::string validation_tail_text(const Validation& validation, double limit);
nlohmann::ordered_json validation_json(const Validation& validation);

}  // namespace tandem
