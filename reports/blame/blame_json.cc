#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/blame/blame_text.h"
#include "reports/run/report_json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kSecond_ns = 1e9;

std::int64_t nanoseconds_of(double seconds) {
  constexpr double kMost = 4e18;  // 127 years
  return std::llround(std::clamp(seconds * kSecond_ns, -kMost, kMost));
}

Json parts_to_json(const std::vector<BlamedPart>& parts) {
  Json list = Json::array();
  for (const BlamedPart& part : parts) {
    list.push_back({{"name", part.name}, {"slowdown", part.slowdown}, {"by_step", part.by_step}});
  }
  return list;
}

std::vector<BlamedPart> blamed_parts(const JsonField& field, std::size_t steps) {
  std::vector<BlamedPart> parts;
  for (const JsonField& item : field.items()) {
    BlamedPart part{.name = item.required("name").text(), .slowdown = item.required("slowdown").number()};
    const JsonField by_step = item.required("by_step");
    for (const JsonField& slowdown : by_step.items()) part.by_step.push_back(slowdown.number());
    if (part.by_step.size() != steps) by_step.error("expected a slowdown for each step");
    parts.push_back(std::move(part));
  }
  return parts;
}

Json fix_to_json(const Fix& fix) {
  return {{"what", fix.what}, {"step_time_ns", nanoseconds_of(fix.step_s)}, {"share", fix.share}};
}

double seconds_of(const JsonField& field) {
  return static_cast<double>(field.count()) / kSecond_ns;
}

Fix fix_of(const JsonField& field) {
  return {.what = field.required("what").text(),
          .step_s = seconds_of(field.required("step_time_ns")),
          .share = field.required("share").number()};
}

void read_blamed_workers(const JsonField& root, Blame& blame) {
  const JsonField list = root.required("by_worker");
  for (const JsonField& item : list.items()) {
    const auto place = blame.workers.size();
    const RecordedWorker worker{.replica = item.required("dp_rank").small_count(),
                                .stage = item.required("stage").small_count(),
                                .rank = item.required("rank").small_count()};
    blame.workers.push_back(worker);
    blame.by_worker.push_back(item.required("slowdown").number());
    const std::size_t stages = std::max<std::size_t>(1, blame.stages);
    if (static_cast<std::size_t>(worker.replica) != place / stages ||
        static_cast<std::size_t>(worker.stage) != place % stages) {
      item.error("expected workers in the order of their DP ranks, then of their stages");
    }
  }
  if (blame.workers.empty() || blame.workers.size() != blame.replicas * blame.stages) {
    list.error("expected a worker for each DP rank and stage");
  }
}

void read_path(const JsonField& root, Blame& blame) {
  for (const JsonField& item : root.required("critical_path").items()) {
    const JsonField rank = item.required("rank");
    const int wanted = rank.small_count();
    const auto worker = std::find_if(blame.workers.begin(), blame.workers.end(),
                                     [&](const RecordedWorker& one) { return one.rank == wanted; });
    if (worker == blame.workers.end()) {
      rank.error("is no rank of by_worker");
      continue;
    }
    blame.path.push_back({.worker = static_cast<int>(worker - blame.workers.begin()),
                          .type = item.required("type").text(),
                          .step_s = seconds_of(item.required("step_time_ns"))});
  }
}

}  // namespace

nlohmann::ordered_json blame_to_json(const Blame& blame) {
  Json json = document_of("blame");
  json["job"] = blame.name;
  json["ops"] = blame.ops;
  json["dp_ranks"] = blame.replicas;
  json["stages"] = blame.stages;
  json["slowdown"] = blame.slowdown;
  json["launch_slowdown"] = blame.launch_slowdown;
  json["step_time_ns"] = {{"recorded", nanoseconds_of(blame.recorded_s)},
                          {"replayed", nanoseconds_of(blame.replayed_s)},
                          {"ideal", nanoseconds_of(blame.ideal_s)}};
  json["clocks_apart_ns"] = nanoseconds_of(blame.clocks_s);
  json["by_step"] = Json::array();
  for (std::size_t i = 0; i < blame.steps.size(); ++i) {
    json["by_step"].push_back({{"step", blame.steps[i]}, {"slowdown", blame.step_slowdowns[i]}});
  }
  json["by_worker"] = Json::array();
  for (std::size_t i = 0; i < blame.workers.size(); ++i) {
    const RecordedWorker& worker = blame.workers[i];
    json["by_worker"].push_back({{"rank", worker.rank},
                                 {"dp_rank", worker.replica},
                                 {"stage", worker.stage},
                                 {"slowdown", blame.by_worker[i]}});
  }
  json["worst_rank"] = blame.workers[static_cast<std::size_t>(blame.worst_worker)].rank;
  json["by_dp_rank"] = parts_to_json(blame.by_replica);
  json["by_stage"] = parts_to_json(blame.by_stage);
  json["by_type"] = parts_to_json(blame.by_type);
  json["fixes"] = Json::array();
  for (const Fix& fix : blame.fixes) json["fixes"].push_back(fix_to_json(fix));
  json["slowest_workers"] = fix_to_json(blame.slowest_workers);
  json["last_stage"] = fix_to_json(blame.last_stage);
  json["critical_path"] = Json::array();
  for (const BlamedPath& part : blame.path) {
    json["critical_path"].push_back({{"rank", blame.workers[static_cast<std::size_t>(part.worker)].rank},
                                     {"type", part.type},
                                     {"step_time_ns", nanoseconds_of(part.step_s)}});
  }
  json["notes"] = blame.notes;
  return json;
}

Blame blame_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const JsonField step_time = root.required("step_time_ns");
  Blame blame{.name = root.required("job").text(),
              .ops = static_cast<std::size_t>(root.required("ops").whole_number()),
              .replicas = static_cast<std::size_t>(root.required("dp_ranks").positive_count()),
              .stages = static_cast<std::size_t>(root.required("stages").positive_count()),
              .recorded_s = seconds_of(step_time.required("recorded")),
              .replayed_s = seconds_of(step_time.required("replayed")),
              .ideal_s = seconds_of(step_time.required("ideal")),
              .slowdown = root.required("slowdown").number(),
              .launch_slowdown = root.required("launch_slowdown").number(),
              .clocks_s = seconds_of(root.required("clocks_apart_ns"))};
  for (const JsonField& item : root.required("by_step").items()) {
    blame.steps.push_back(item.required("step").small_count());
    blame.step_slowdowns.push_back(item.required("slowdown").number());
  }
  read_blamed_workers(root, blame);
  blame.by_replica = blamed_parts(root.required("by_dp_rank"), blame.steps.size());
  blame.by_stage = blamed_parts(root.required("by_stage"), blame.steps.size());
  blame.by_type = blamed_parts(root.required("by_type"), blame.steps.size());
  for (const JsonField& item : root.required("fixes").items()) blame.fixes.push_back(fix_of(item));
  blame.slowest_workers = fix_of(root.required("slowest_workers"));
  blame.last_stage = fix_of(root.required("last_stage"));
  read_path(root, blame);
  for (const JsonField& note : root.required("notes").items()) blame.notes.push_back(note.text());
  const JsonField worst = root.required("worst_rank");
  const int wanted = worst.small_count();
  const auto worker = std::find_if(blame.workers.begin(), blame.workers.end(),
                                   [&](const RecordedWorker& one) { return one.rank == wanted; });
  if (worker == blame.workers.end()) worst.error("is no rank of by_worker");
  blame.worst_worker = static_cast<int>(worker - blame.workers.begin());
  reading.finish();
  return blame;
}

}  // namespace tandem
