// The cases of TensorFlow's own tests, as a table: what is set up, what is done, what comes out.
//
// tests/conformance/cases/<area>.json holds the setup and what is expected; the steps are a function of the same id in
// <area>_cases.cc, which executes them in a world and returns what came out, as JSON of the same form. Every case runs
// on every engine, except for those that say "pure": they check a rule (how a batch is divided, what a resolver reads)
// without any engine, and run once. A case that has no meaning here says why in "not_applicable".
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/worlds.h"

namespace tandem {

using Json = nlohmann::json;

struct Case {
  std::string area, id, api, strategy;
  Json setup, expect;
  std::string not_applicable;
  bool is_pure = false;  // opens no engine

  int setting(const char* name, int otherwise) const;
};

// Where a case runs.
class CaseWorld {
 public:
  CaseWorld(World world, const Case& spec) : world_(std::move(world)), spec_(spec) {}

  const Case& spec() const { return spec_; }
  bool opened_an_engine() const { return opened_an_engine_; }
  // Of the setup: "replicas" or "replicas_per_worker", else 1; "workers", else 1.
  int replicas() const;
  int workers() const;

  // Calls the program on each worker of a cluster of this world and returns what each came to, in worker order.
  using Program = std::function<Json(Worker& worker)>;
  std::vector<Json> on_workers(int workers, int devices, const Program& program) const;
  // With workers of any jobs; sets device types by the world.
  std::vector<Json> on_cluster(std::vector<WorkerSpec> workers, const Program& program) const;
  // The same with one worker of `replicas()` devices.
  Json on_worker(const Program& program) const { return on_workers(1, replicas(), program).front(); }

 private:
  World world_;
  const Case& spec_;
  mutable bool opened_an_engine_ = false;
};

using CaseFunction = std::function<Json(const CaseWorld& world)>;
using CaseTable = std::initializer_list<std::pair<const char*, CaseFunction>>;

// Adds an area's functions; call it from a namespace-scope initialiser.
bool add_cases(CaseTable table);
const CaseFunction* find_case(const std::string& id);

std::vector<Case> read_cases();

// {"error": "ValueError", "message": ...} of what the call throws, or null when it returns.
Json error_of(const std::function<void()>& call);

// What is wrong with `actual`, or "" when it has everything expected. Keys that only explain are left out; "tolerance"
// holds for every number beside and below it; {"error": "A or B"} accepts either; "each" compares every element.
std::string mismatch(const Json& expected, const Json& actual);

}  // namespace tandem
