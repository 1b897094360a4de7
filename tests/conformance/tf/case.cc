#include "tests/conformance/tf/case.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "strategies/base/errors.h"
#include "tests/conformance/tf/results_of_workers.h"

namespace tandem {
namespace {

std::map<std::string, CaseFunction>& functions() {
  static std::map<std::string, CaseFunction> table;
  return table;
}

bool only_explains(const std::string& key) {
  static const std::set<std::string> keys = {"note", "when",      "message_hint",         "message",
                                             "rule", "tolerance", "wrong_answer_to_avoid"};
  return keys.contains(key);
}

bool accepts(const std::string& alternatives, const std::string& kind) {
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = alternatives.find(" or ", begin);
    if (alternatives.substr(begin, end - begin) == kind) return true;
    if (end == std::string::npos) return false;
    begin = end + 4;
  }
}

std::string differs(const std::string& path, const Json& expected, const Json& actual) {
  return path + ": expected " + expected.dump() + ", found " + actual.dump();
}

std::string compare(const std::string& path, const Json& expected, const Json& actual, double tolerance);

std::string compare_objects(const std::string& path, const Json& expected, const Json& actual, double tolerance) {
  if (expected.contains("tolerance")) tolerance = expected["tolerance"].get<double>();
  if (expected.contains("error")) {
    const bool is_error = actual.is_object() && actual.contains("error");
    return is_error && accepts(expected["error"], actual["error"]) ? "" : differs(path, expected, actual);
  }
  if (!actual.is_object()) return differs(path, expected, actual);
  for (const auto& [key, value] : expected.items()) {
    if (only_explains(key)) continue;
    std::string below = path;
    below.append(".").append(key);
    if (!actual.contains(key)) return below + ": nothing found";
    if (key == "each") {
      if (!actual[key].is_array() || actual[key].empty()) return below + ": not a list of results";
      for (const Json& element : actual[key]) {
        if (std::string wrong = compare(below, value, element, tolerance); !wrong.empty()) return wrong;
      }
    } else if (std::string wrong = compare(below, value, actual[key], tolerance); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string compare(const std::string& path, const Json& expected, const Json& actual, double tolerance) {
  if (expected.is_object()) return compare_objects(path, expected, actual, tolerance);
  if (expected.is_number() && actual.is_number()) {
    const double difference = std::abs(expected.get<double>() - actual.get<double>());
    const bool equal = tolerance > 0 ? difference <= tolerance : expected.get<float>() == actual.get<float>();
    return equal ? "" : differs(path, expected, actual);
  }
  if (expected.is_array()) {
    if (!actual.is_array() || actual.size() != expected.size()) return differs(path, expected, actual);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string below = path + "[" + std::to_string(i) + "]";
      if (std::string wrong = compare(below, expected[i], actual[i], tolerance); !wrong.empty()) return wrong;
    }
    return "";
  }
  return expected == actual ? "" : differs(path, expected, actual);
}

template <typename Kind>
Json as_error(const char* name, const std::exception& thrown) {
  return dynamic_cast<const Kind*>(&thrown) ? Json{{"error", name}, {"message", thrown.what()}} : Json();
}

Json kind_of(const std::exception& thrown) {
  for (const Json& found :
       {as_error<RuntimeError>("RuntimeError", thrown), as_error<ValueError>("ValueError", thrown),
        as_error<TypeError>("TypeError", thrown), as_error<KeyError>("KeyError", thrown),
        as_error<AttributeError>("AttributeError", thrown), as_error<AssertionError>("AssertionError", thrown),
        as_error<NotImplementedError>("NotImplementedError", thrown),
        as_error<InvalidArgumentError>("InvalidArgument", thrown), as_error<OutOfRangeError>("OutOfRange", thrown),
        as_error<NotFoundError>("NotFound", thrown), as_error<DeadlineExceededError>("DeadlineExceeded", thrown),
        as_error<UnknownError>("Unknown", thrown), as_error<DataLossError>("DataLoss", thrown)}) {
    if (!found.is_null()) return found;
  }
  return {{"error", "other"}, {"message", thrown.what()}};
}

}  // namespace

int Case::setting(const char* name, int otherwise) const {
  return setup.contains(name) ? setup[name].get<int>() : otherwise;
}

int CaseWorld::replicas() const {
  return spec_.setting("replicas", spec_.setting("replicas_per_worker", spec_.setting("group_size", 1)));
}

int CaseWorld::workers() const {
  return spec_.setting("workers", 1);
}

std::vector<Json> CaseWorld::on_workers(int workers, int devices, const Program& program) const {
  opened_an_engine_ = true;
  return results_of_workers(world_options(world_, workers, devices), world_.engine, program);
}

std::vector<Json> CaseWorld::on_cluster(std::vector<WorkerSpec> workers, const Program& program) const {
  int devices = 1;
  for (const WorkerSpec& worker : workers) devices = std::max(devices, worker.device_count);
  EngineOptions options = world_options(world_, static_cast<int>(workers.size()), devices);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    options.workers[i].job = workers[i].job;
    options.workers[i].task = workers[i].task;
    options.workers[i].device_count = workers[i].device_count;
  }
  opened_an_engine_ = true;
  return results_of_workers(std::move(options), world_.engine, program);
}

bool add_cases(CaseTable table) {
  for (const auto& [id, function] : table) functions().emplace(id, function);
  return true;
}

const CaseFunction* find_case(const std::string& id) {
  const auto found = functions().find(id);
  return found == functions().end() ? nullptr : &found->second;
}

// $TANDEM_TF_CASES is for programs that have left their source tree.
std::vector<Case> read_cases() {
  const char* folder = std::getenv("TANDEM_TF_CASES");
  std::vector<Case> cases;
  std::set<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder != nullptr ? folder : TANDEM_SOURCE_DIR "/tests/conformance/cases"))
    files.insert(entry.path());
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    for (const Json& row : Json::parse(in)) {
      cases.push_back({.area = file.stem(),
                       .id = row["id"],
                       .api = row["api"],
                       .strategy = row["strategy"],
                       .setup = row.value("setup", Json::object()),
                       .expect = row["expect"],
                       .not_applicable = row.value("not_applicable", ""),
                       .is_pure = row.value("pure", false)});
    }
  }
  return cases;
}

Json error_of(const std::function<void()>& call) {
  try {
    call();
    return nullptr;
  } catch (const std::exception& thrown) {
    return kind_of(thrown);
  }
}

std::string mismatch(const Json& expected, const Json& actual) {
  return compare("expect", expected, actual, 0);
}

}  // namespace tandem
