// Cases whose replicas may stand on one worker or on several, and arithmetic of which their steps are made.
#pragma once

#include <functional>
#include <type_traits>

#include "strategies/types/mirrored.h"
#include "tests/conformance/tf/stage.h"

namespace tandem {

using Steps = std::function<Json(Stage& stage)>;
using Summary = std::function<Json(const Json& list)>;

// What all elements of a list equal; the list itself when they differ. "On every replica" is said with it.
Json common(const Json& list);

// Like staged(), but `summary` gets the workers' results as one list, in worker order, also that of a single worker.
CaseFunction staged_together(Steps steps, Summary summary = common);

// Performs the steps under MultiWorkerMirrored with `replicas()` replicas in every division of them among workers: one
// each, all on one, and what lies between. The steps return a list with an element for each replica of the worker;
// `summary` gets the list over all replicas. Divisions that come to different results are all returned, with their
// names.
CaseFunction in_groups(Steps steps, Summary summary = common);

// A value per replica of this worker: of(i), i the id among all replicas in sync.
Value per_local_replica(const Stage& stage, const std::function<Value(int replica_id)>& of);

// A second strategy on the same devices.
MirroredStrategy another(const Stage& stage);

// {"error": "TypeError"} where a call with such an argument does not compile: what Python finds out when it runs.
template <typename Parameter, typename Argument>
Json refused_by_the_compiler() {
  return std::is_convertible_v<Argument, Parameter> ? Json() : Json{{"error", "TypeError"}};
}

// On the tensor's device, in the order of its compute stream.
Tensor plus(const Tensor& tensor, double number);
Tensor times(const Tensor& tensor, double factor);
Tensor times(const Tensor& a, const Tensor& b);
Tensor minus(const Tensor& a, const Tensor& b);
Tensor sum_of(const Tensor& vector);  // over the only axis

}  // namespace tandem
