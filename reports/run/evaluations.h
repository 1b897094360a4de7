// The evaluations of a run: forward passes over examples that are set apart, by the workers that train, which wait for
// them, or by an evaluator beside them.
//
// Times are nanoseconds of the engine's clock. Evaluations count from the first step on, those of the warm-up included.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

// One evaluation, of the variables after `step` steps.
struct Evaluated {
  std::int64_t step = 0;
  Nanoseconds time = 0;
  // The mean over the examples, and the share of them that was classified right, where the workload has values.
  std::optional<double> loss{}, accuracy{};

  bool operator==(const Evaluated&) const = default;
};

struct Evaluations {
  bool is_beside = false;         // by an evaluator
  std::int64_t every = 1;         // steps
  int passes = 1;                 // of one evaluation, over `batch` examples each
  std::int64_t batch = 1;         // over all devices that evaluate
  std::int64_t due = 0;           // one that is due and not done was overtaken by a newer one
  Nanoseconds waited = 0;         // training, in all: for evaluations, or for copies of the variables
  Nanoseconds job = 0;            // from the beginning of the first step to the end of the last one and its evaluation
  Nanoseconds afterwards = 0;     // how long an evaluator went on after that
  std::vector<Evaluated> done{};  // in order

  // Returns the median of the evaluations' times; 0 if there are none.
  Nanoseconds median_time() const;
  Nanoseconds time() const;  // of all of them
  // Returns the share of the job's time that training waited.
  double share() const { return job > 0 ? static_cast<double>(waited) / static_cast<double>(job) : 0; }
  std::int64_t overtaken() const { return due - static_cast<std::int64_t>(done.size()); }
  bool operator==(const Evaluations&) const = default;
};

}  // namespace tandem
