#include "scenarios/run/memory_curve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "scenarios/estimates/device_memory.h"

namespace tandem {
namespace {

// A layer's kernels are named after it, with these words behind the name (LayerKernels).
struct KernelWork {
  std::string_view layer;
  bool is_backward = false;
  auto operator<=>(const KernelWork&) const = default;
};

KernelWork work_of_kernel(std::string_view name) {
  for (const std::string_view words : {" then gradient", " weight gradient", " input gradient", " gradient"}) {
    if (name.ends_with(words)) return {name.substr(0, name.size() - words.size()), true};
  }
  constexpr std::string_view kThen = " then";
  return {name.ends_with(kThen) ? name.substr(0, name.size() - kThen.size()) : name, false};
}

KernelWork work_at(const StepMoment& moment, const DeviceShare& share) {
  const std::vector<Layer>& layers = share.stages.at(static_cast<std::size_t>(moment.action.chunk)).layers;
  return {layers.at(moment.layer).name, moment.action.pass != PipelineAction::Pass::forward};
}

std::set<std::string_view> layer_names(const DeviceShare& share) {
  std::set<std::string_view> names;
  for (const DeviceShare::Stage& stage : share.stages) {
    for (const Layer& layer : stage.layers) names.insert(layer.name);
  }
  return names;
}

// The records of the device that does most of this work in a step, by their start.
std::vector<const Record*> records_of_device(const Timeline& timeline, const DeviceShare& share, int step) {
  const std::set<std::string_view> names = layer_names(share);
  std::map<int, std::vector<const Record*>> devices;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::op || record.step != step) continue;
    if (names.contains(work_of_kernel(record.name.text()).layer)) devices[record.device].push_back(&record);
  }
  std::vector<const Record*> most;
  for (auto& [device, records] : devices) {
    if (records.size() > most.size()) most = std::move(records);
  }
  return most;
}

const Record* last_step(const Timeline& timeline, int worker) {
  const Record* last = nullptr;
  for (const Record& record : timeline.records) {
    const bool is_of_worker = worker < 0 || record.worker == worker;
    if (record.kind == RecordKind::step && is_of_worker && (last == nullptr || record.step >= last->step))
      last = &record;
  }
  return last;
}

// Finds the records at which moments begin. Both are in the order of the work, of which records may have more: layers
// that are computed again.
class MomentTimes {
 public:
  explicit MomentTimes(const std::vector<const Record*>& records) : records_(records) {
    for (std::size_t i = 0; i < records.size(); ++i) places_[work_of_kernel(records[i]->name.text())].push_back(i);
  }

  // Called where the moments of a pass begin, and where they go on after a turn of the pass beside it. Two that take
  // turns begin at the same record.
  void go_on_with(const PipelineAction& pass) {
    if (beside_ && beside_->pass == pass) return std::swap(now_, *beside_);
    if (now_.pass.with_next && !beside_) {
      beside_ = std::exchange(now_, {pass, begin_});
      return;
    }
    begin_ = beside_ ? std::max(now_.from, beside_->from) : now_.from;
    beside_.reset();
    now_ = {pass, begin_};
  }

  // Returns the first record of this work after those of earlier moments; null where a layer has no kernels.
  const Record* next(const KernelWork& work) {
    const auto places = places_.find(work);
    if (places == places_.end()) return nullptr;
    const auto found = std::ranges::lower_bound(places->second, now_.from);
    if (found == places->second.end()) return nullptr;
    now_.from = *found + 1;
    return records_[*found];
  }

 private:
  struct Search {
    PipelineAction pass{};
    std::size_t from = 0;  // the record at which it goes on
  };

  const std::vector<const Record*>& records_;
  std::map<KernelWork, std::vector<std::size_t>> places_;
  Search now_{};
  std::optional<Search> beside_{};  // of the pass that takes turns with this one
  std::size_t begin_ = 0;
};

}  // namespace

std::optional<MemoryCurve> memory_curve(const Job& job, const Timeline& timeline) {
  const auto memory = memory_of_step(job);
  const Record* const any_step = last_step(timeline, -1);
  if (!memory || memory->moments.empty() || any_step == nullptr) return std::nullopt;
  const std::vector<const Record*> records = records_of_device(timeline, memory->share, any_step->step);
  if (records.empty()) return std::nullopt;
  const Record* const step = last_step(timeline, records.front()->worker);
  MemoryCurve curve{.device = timeline.devices.at(static_cast<std::size_t>(records.front()->device)).name,
                    .step = step->step,
                    .length = step->end_ns - step->start_ns,
                    .need = memory->need};
  const std::int64_t unused =
      memory->need.workspace - std::ranges::max_element(memory->moments, {}, &StepMoment::bytes)->workspace;
  MomentTimes times(records);
  Nanoseconds at = 0;
  curve.points.push_back({.at = 0, .workspace = unused});
  std::optional<PipelineAction> pass;
  for (const StepMoment& moment : memory->moments) {
    if (pass != moment.action) times.go_on_with(moment.action);
    pass = moment.action;
    if (const Record* const record = times.next(work_at(moment, memory->share))) {
      at = std::max(at, record->start_ns - step->start_ns);
    }
    curve.points.push_back({at, moment.activations, moment.workspace + unused, moment_text(moment, memory->share)});
  }
  curve.points.push_back({.at = std::max(at, records.back()->end_ns - step->start_ns), .workspace = unused});
  make_coarse(curve);
  return curve;
}

}  // namespace tandem
