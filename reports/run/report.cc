#include "reports/run/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/collective.h"

namespace tandem {

std::string_view version() {
  return TANDEM_VERSION;
}

namespace {

double rate(double units, const StepTime& time) {
  const double step_s = static_cast<double>(time.mean) * 1e-9;
  return step_s > 0 && std::isfinite(units) ? units / step_s : 0;
}

constexpr std::array<StepPart, 8> kFigures{{{"compute", &PerStep::compute},
                                            {"update", &PerStep::update},
                                            {"exposed_input", &PerStep::exposed_input},
                                            {"exposed_communication", &PerStep::exposed_communication},
                                            {"other", &PerStep::other},
                                            {"idle", &PerStep::idle},
                                            {"input", &PerStep::input},
                                            {"communication", &PerStep::communication}}};

}  // namespace

std::span<const StepPart> step_parts() {
  return std::span(kFigures).first(6);
}

std::span<const StepPart> step_figures() {
  return kFigures;
}

const CallShare* awaited_rank(const CollectiveSummary& collective) {
  if (collective_of_record(collective.operation) == CollectiveKind::send_receive) return nullptr;
  return awaited_rank(collective.ranks);
}

double MachineUse::lost() const {
  const auto to_others = static_cast<double>(std::min(waited, others));
  // Stolen time is divided among the programs in proportion to the time they used.
  const double own_share = own + others > 0 ? static_cast<double>(own) / static_cast<double>(own + others) : 0;
  const double all = to_others + static_cast<double>(stolen) * own_share;
  return all > 0 ? all / (static_cast<double>(own) + all) : 0;
}

bool MachineUse::is_disturbed() const {
  return lost() > kDisturbed ||
         std::any_of(gpus.begin(), gpus.end(), [](const GpuUse& use) { return tandem::is_disturbed(use); });
}

bool is_disturbed(const GpuUse& use) {
  return use.slowed > MachineUse::kDisturbed * use.readings || use.others_share > MachineUse::kDisturbed;
}

double Report::throughput() const {
  if (!asynchronous || summary.workers.empty()) return rate(units_per_step, summary.step_time);
  double sum = 0;
  for (const WorkerSummary& worker : summary.workers) sum += rate(units_of_step(), worker.step_time);
  return sum;
}

}  // namespace tandem
