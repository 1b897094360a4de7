// The details of a run as JSON, and back. A bar is an array, since there are thousands of them.
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/run/run_details.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr Category kCategories[] = {Category::compute, Category::communication, Category::update, Category::input,
                                    Category::other};

// [start, length, category, index of the name, 1 if the rank arrived last].
Json bar_to_json(const StepBar& bar, std::map<std::string, std::size_t>& names) {
  const std::size_t name = names.try_emplace(bar.name, names.size()).first->second;
  return Json::array({bar.start, bar.end - bar.start, static_cast<int>(bar.category), name, bar.arrived_last ? 1 : 0});
}

StepBar bar_from_json(const JsonField& field, const std::vector<std::string>& names) {
  const std::vector<JsonField> parts = field.items();
  if (parts.size() != 5) {
    field.error("must be [start, length, category, name, last]");
    return {};
  }
  const int category = parts[2].small_count();
  const std::size_t name = static_cast<std::size_t>(parts[3].count());
  if (category >= static_cast<int>(std::size(kCategories)) || name >= names.size()) {
    field.error("is of a category or name that the document does not have");
    return {};
  }
  return {.start = parts[0].count(),
          .end = parts[0].count() + parts[1].count(),
          .category = static_cast<Category>(category),
          .name = names[name],
          .arrived_last = parts[4].small_count() != 0};
}

CriticalStretch stretch_from_json(const JsonField& field, std::size_t lanes) {
  const std::vector<JsonField> parts = field.items();
  if (parts.size() != 3 || static_cast<std::size_t>(parts[0].small_count()) >= lanes) {
    field.error("must be [lane, start, length], with one of the lanes");
    return {};
  }
  const Nanoseconds start = parts[1].count();
  return {.lane = parts[0].small_count(), .start = start, .end = start + parts[2].count()};
}

Json picture_to_json(const StepPicture& picture) {
  std::map<std::string, std::size_t> names;
  Json lanes = Json::array();
  for (const StepLane& lane : picture.lanes) {
    Json bars = Json::array();
    for (const StepBar& bar : lane.bars) bars.push_back(bar_to_json(bar, names));
    lanes.push_back({{"device", lane.device}, {"devices", lane.devices}, {"stream", lane.stream}, {"bars", bars}});
  }
  std::vector<std::string> ordered(names.size());
  for (const auto& [name, index] : names) ordered[index] = name;
  Json critical = Json::object();
  for (const auto& [category, time] : picture.critical) critical[std::string(name_of(category))] = time;
  critical["idle"] = picture.critical_idle;
  Json stretches = Json::array();
  for (const CriticalStretch& one : picture.critical_stretches) {
    stretches.push_back(Json::array({one.lane, one.start, one.end - one.start}));
  }
  return {{"step", picture.step},
          {"length_ns", picture.length},
          {"critical_path_ns", critical},
          {"critical_path", stretches},
          {"lanes_left_out", picture.lanes_left_out},
          {"names", ordered},
          {"lanes", lanes}};
}

StepPicture picture_from_json(const JsonField& field) {
  StepPicture picture{.step = field.required("step").small_count(),
                      .length = field.required("length_ns").count(),
                      .lanes = {},
                      .lanes_left_out = field.required("lanes_left_out").small_count(),
                      .critical = {}};
  const JsonField critical = field.required("critical_path_ns");
  for (const Category category : kCategories) {
    const JsonField time = critical.optional(std::string(name_of(category)));
    if (time.present()) picture.critical.emplace_back(category, time.count());
  }
  picture.critical_idle = critical.required("idle").count();
  std::vector<std::string> names;
  for (const JsonField& name : field.required("names").items()) names.push_back(name.text());
  for (const JsonField& item : field.required("lanes").items()) {
    StepLane lane{.device = item.required("device").text(),
                  .devices = item.required("devices").small_count(),
                  .stream = item.required("stream").small_count(),
                  .bars = {}};
    for (const JsonField& bar : item.required("bars").items()) lane.bars.push_back(bar_from_json(bar, names));
    picture.lanes.push_back(std::move(lane));
  }
  for (const JsonField& item : field.required("critical_path").items()) {
    picture.critical_stretches.push_back(stretch_from_json(item, picture.lanes.size()));
  }
  return picture;
}

}  // namespace

nlohmann::ordered_json run_details_to_json(const RunDetails& details) {
  Json waits = Json::array();
  for (const DeviceWaits& one : details.waits) {
    waits.push_back({{"device", one.device},
                     {"calls", one.calls},
                     {"last_arrivals", one.last_arrivals},
                     {"transferred_ns", one.transferred},
                     {"waited_ns", one.waited_by_step}});
  }
  Json links = Json::array();
  for (const LinkUse& link : details.links.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"from_kind", link.from_kind},
                     {"to_kind", link.to_kind},
                     {"kind", link.kind},
                     {"bytes", link.bytes},
                     {"bytes_per_s", link.bytes_per_s}});
  }
  Json json = {
      {"median_step", picture_to_json(details.median_step)},
      {"waiting",
       {{"steps", details.steps}, {"devices_left_out", details.waits_left_out}, {"devices", std::move(waits)}}}};
  json["links"] = {
      {"time_ns", details.links.time}, {"links_left_out", details.links.links_left_out}, {"carried", std::move(links)}};
  json["bounds"] = Json::array();
  for (const CollectiveBound& bound : details.bounds) {
    json["bounds"].push_back({{"operation", bound.operation},
                              {"devices", bound.devices},
                              {"bus_bandwidth", bound.bus_bandwidth},
                              {"limited_by", bound.limited_by}});
  }
  if (details.memory) json["memory"] = memory_curve_to_json(*details.memory);
  return json;
}

RunDetails run_details_from_json(const JsonField& field) {
  RunDetails details{.median_step = picture_from_json(field.required("median_step")), .steps = {}, .waits = {}};
  const JsonField waiting = field.required("waiting");
  details.waits_left_out = waiting.required("devices_left_out").small_count();
  for (const JsonField& step : waiting.required("steps").items()) details.steps.push_back(step.small_count());
  for (const JsonField& item : waiting.required("devices").items()) {
    DeviceWaits waits{.device = item.required("device").text(),
                      .calls = item.required("calls").small_count(),
                      .last_arrivals = item.required("last_arrivals").small_count(),
                      .transferred = item.required("transferred_ns").count(),
                      .waited_by_step = {}};
    for (const JsonField& time : item.required("waited_ns").items()) waits.waited_by_step.push_back(time.count());
    waits.waited_by_step.resize(details.steps.size());
    details.waits.push_back(std::move(waits));
  }
  const JsonField links = field.required("links");
  details.links.time = links.required("time_ns").count();
  details.links.links_left_out = links.required("links_left_out").small_count();
  for (const JsonField& item : links.required("carried").items()) {
    details.links.links.push_back({.from = item.required("from").text(),
                                   .to = item.required("to").text(),
                                   .from_kind = item.required("from_kind").text(),
                                   .to_kind = item.required("to_kind").text(),
                                   .kind = item.required("kind").text(),
                                   .bytes = item.required("bytes").number(),
                                   .bytes_per_s = item.required("bytes_per_s").number()});
  }
  for (const JsonField& item : field.optional("bounds").items()) {  // not in pages of earlier versions
    details.bounds.push_back({.operation = item.required("operation").text(),
                              .devices = item.required("devices").small_count(),
                              .bus_bandwidth = item.required("bus_bandwidth").number(),
                              .limited_by = item.required("limited_by").text()});
  }
  if (const JsonField memory = field.optional("memory"); memory.present()) {
    details.memory = memory_curve_from_json(memory);
  }
  return details;
}

}  // namespace tandem
