// What a step does of the model's work, and what it costs: rates and shares that people compare across machines.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

struct Report;

// The work of a model that is a table of layers. "Unit" is what a batch counts: an example, a sequence.
struct ModelWork {
  // Floating-point operations for a unit: two for each multiply-accumulate of the layers' products, attention's
  // included, and three times those of the forward pass for both passes. What is computed again to save memory does not
  // count (Chowdhery et al., PaLM, 2022, appendix B).
  double flops_per_unit = 0;
  double tokens_per_unit = 0;   // 0: the model reads no tokens
  int devices = 1;              // that train
  double peak_flops_per_s = 0;  // of all of them, in the type in which the workload multiplies; 0: unknown
  std::string dtype{};          // that type, "bf16"

  bool operator==(const ModelWork&) const = default;
};

inline constexpr double kMillion = 1e6;  // tokens or units for which a price is shown

// What the machines of a job cost.
struct JobPrice {
  double per_hour = 0;         // of one machine
  std::string currency{};      // "$"
  int machines = 1;            // on which the job has a device or a server
  double units_per_epoch = 0;  // 0: unknown

  bool operator==(const JobPrice&) const = default;
};

// What the machines of a job take while it runs.
struct JobPower {
  double of_machine_w = 0;
  int machines = 1;  // on which the job has a device or a server

  bool operator==(const JobPower&) const = default;
};

// Rates and costs of a run, 0 where they are unknown. Costs are in JobPrice::currency, energies in joules.
struct RunRates {
  double model_flops_per_s = 0;  // of all devices that train
  double model_flops_per_s_per_device = 0;
  double mfu = 0;  // the share of their peak: model flops utilisation
  double flops_per_step = 0;
  double tokens_per_s = 0;
  double tokens_per_s_per_device = 0;
  double cost_per_step = 0;
  double cost_per_unit = 0;
  double cost_per_token = 0;
  double cost_per_epoch = 0;
  double energy_per_step_j = 0;
  double energy_per_unit_j = 0;
};
RunRates rates_of(const Report& report);

// A figure of RunRates and its name in documents.
struct RateFigure {
  const char* name;
  double RunRates::*value;
};
std::span<const RateFigure> rate_figures();

// Returns "2.310 kWh".
std::string energy_text(double joules);

// Returns these figures in words, for lines of a text or tiles of a page: a name, a value, and what else is to say.
struct ShownRate {
  std::string name, value, detail;
};
std::vector<ShownRate> shown_rates(const Report& report);

}  // namespace tandem
