#include "reports/run/model_work.h"

#include <fmt/format.h>

#include <array>

#include "reports/base/text_table.h"
#include "reports/run/report.h"
#include "topologies/base/units.h"
#include "topologies/price.h"

namespace tandem {
namespace {

constexpr double kSecondsOfAnHour = 3600;

std::string flops_text(double flops_per_s) {
  return format_quantity(flops_per_s, Dimension::flops_per_second);
}

ShownRate shown_flops(const ModelWork& work, const RunRates& rates) {
  std::string detail = flops_text(rates.model_flops_per_s_per_device) + " a device";
  if (rates.mfu > 0) detail += fmt::format(", {} of its peak in {} (MFU)", percent_text(rates.mfu), work.dtype);
  return {.name = "model flops",
          .value = flops_text(rates.model_flops_per_s),
          .detail = fmt::format("{}; {}FLOP per step", detail, count_text(rates.flops_per_step))};
}

std::string machines_text(int machines) {
  return machines == 1 ? "one machine" : fmt::format("{} machines", machines);
}

ShownRate shown_cost(const Report& report, const RunRates& rates) {
  const JobPrice& price = *report.price;
  const auto money = [&](double amount) { return money_text(amount, price.currency); };
  const std::string unit = report.throughput_unit.substr(0, report.throughput_unit.find('/'));
  std::string detail = fmt::format("per step; {} per million {}", money(rates.cost_per_unit * kMillion), unit);
  if (rates.cost_per_token > 0)
    detail += fmt::format(", {} per million tokens", money(rates.cost_per_token * kMillion));
  if (rates.cost_per_epoch > 0) detail += fmt::format(", {} per epoch", money(rates.cost_per_epoch));
  return {.name = "cost",
          .value = money(rates.cost_per_step),
          .detail = fmt::format("{} ({} at {})", detail, machines_text(price.machines),
                                price_text({.per_hour = price.per_hour, .currency = price.currency}))};
}

ShownRate shown_energy(const Report& report, const RunRates& rates) {
  const JobPower& power = *report.power;
  const std::string unit = report.throughput_unit.substr(0, report.throughput_unit.find('/'));
  return {.name = "energy",
          .value = energy_text(rates.energy_per_step_j),
          .detail =
              fmt::format("per step; {} per million {} ({} at {})", energy_text(rates.energy_per_unit_j * kMillion),
                          unit, machines_text(power.machines), format_quantity(power.of_machine_w, Dimension::watts))};
}

constexpr std::array<RateFigure, 12> kRunRates{
    {{"model_flops_per_s", &RunRates::model_flops_per_s},
     {"model_flops_per_s_per_device", &RunRates::model_flops_per_s_per_device},
     {"mfu", &RunRates::mfu},
     {"flops_per_step", &RunRates::flops_per_step},
     {"tokens_per_s", &RunRates::tokens_per_s},
     {"tokens_per_s_per_device", &RunRates::tokens_per_s_per_device},
     {"cost_per_step", &RunRates::cost_per_step},
     {"cost_per_unit", &RunRates::cost_per_unit},
     {"cost_per_token", &RunRates::cost_per_token},
     {"cost_per_epoch", &RunRates::cost_per_epoch},
     {"energy_per_step_j", &RunRates::energy_per_step_j},
     {"energy_per_unit_j", &RunRates::energy_per_unit_j}}};

}  // namespace

std::string energy_text(double joules) {
  constexpr double kWattHour = 3600;
  return format_quantity(joules / kWattHour, Dimension::watts) + "h";
}

std::span<const RateFigure> rate_figures() {
  return kRunRates;
}

RunRates rates_of(const Report& report) {
  RunRates rates;
  const double throughput = report.throughput();
  if (const auto& work = report.work) {
    rates.flops_per_step = work->flops_per_unit * report.units_of_step();
    rates.model_flops_per_s = work->flops_per_unit * throughput;
    rates.model_flops_per_s_per_device = rates.model_flops_per_s / work->devices;
    rates.tokens_per_s = work->tokens_per_unit * throughput;
    rates.tokens_per_s_per_device = rates.tokens_per_s / work->devices;
    if (work->peak_flops_per_s > 0) rates.mfu = rates.model_flops_per_s / work->peak_flops_per_s;
  }
  if (const auto& price = report.price; price && throughput > 0) {
    rates.cost_per_unit = price->per_hour * price->machines / kSecondsOfAnHour / throughput;
    rates.cost_per_step = rates.cost_per_unit * report.units_of_step();
    rates.cost_per_epoch = rates.cost_per_unit * price->units_per_epoch;
    const double tokens = report.work ? report.work->tokens_per_unit : 0;
    if (tokens > 0) rates.cost_per_token = rates.cost_per_unit / tokens;
  }
  if (const auto& power = report.power; power && throughput > 0) {
    rates.energy_per_unit_j = power->of_machine_w * power->machines / throughput;
    rates.energy_per_step_j = rates.energy_per_unit_j * report.units_of_step();
  }
  return rates;
}

std::vector<ShownRate> shown_rates(const Report& report) {
  const RunRates rates = rates_of(report);
  std::vector<ShownRate> shown;
  if (rates.tokens_per_s > 0) {
    shown.push_back({.name = "tokens",
                     .value = rate_text(rates.tokens_per_s, "tokens/s"),
                     .detail = rate_text(rates.tokens_per_s_per_device, "tokens/s") + " a device"});
  }
  if (rates.model_flops_per_s > 0) shown.push_back(shown_flops(*report.work, rates));
  if (rates.cost_per_step > 0) shown.push_back(shown_cost(report, rates));
  if (rates.energy_per_step_j > 0) shown.push_back(shown_energy(report, rates));
  return shown;
}

}  // namespace tandem
