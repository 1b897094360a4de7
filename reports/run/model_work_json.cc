#include "reports/run/model_work_json.h"

#include <nlohmann/json.hpp>

#include "reports/run/model_work.h"

namespace tandem {

nlohmann::ordered_json rates_to_json(const RunRates& rates) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const RateFigure& figure : rate_figures()) {
    if (const double value = rates.*figure.value; value > 0) json[figure.name] = value;
  }
  return json;
}

RunRates rates_from_json(const JsonField& field) {
  RunRates rates;
  for (const RateFigure& figure : rate_figures()) {
    if (const JsonField value = field.optional(figure.name); value.present()) rates.*figure.value = value.number();
  }
  return rates;
}

void add_work_and_price(nlohmann::ordered_json& document, const Report& report) {
  if (const auto& work = report.work) {
    document["model_work"] = {{"flops_per_unit", work->flops_per_unit},
                              {"tokens_per_unit", work->tokens_per_unit},
                              {"devices", work->devices},
                              {"peak_flops_per_s", work->peak_flops_per_s},
                              {"dtype", work->dtype}};
  }
  if (const auto& price = report.price) {
    document["price"] = {{"per_machine_hour", price->per_hour},
                         {"currency", price->currency},
                         {"machines", price->machines},
                         {"units_per_epoch", price->units_per_epoch}};
  }
  if (const auto& power = report.power)
    document["power"] = {{"per_machine_w", power->of_machine_w}, {"machines", power->machines}};
  if (report.work || report.price || report.power) document["rates"] = rates_to_json(rates_of(report));
}

void read_work_and_price(const JsonField& root, Report& report) {
  if (const JsonField work = root.optional("model_work"); work.present()) {
    report.work = ModelWork{.flops_per_unit = work.required("flops_per_unit").number(),
                            .tokens_per_unit = work.required("tokens_per_unit").number(),
                            .devices = work.required("devices").positive_count(),
                            .peak_flops_per_s = work.required("peak_flops_per_s").number(),
                            .dtype = work.required("dtype").text()};
  }
  if (const JsonField price = root.optional("price"); price.present()) {
    report.price = JobPrice{.per_hour = price.required("per_machine_hour").number(),
                            .currency = price.required("currency").text(),
                            .machines = price.required("machines").positive_count(),
                            .units_per_epoch = price.required("units_per_epoch").number()};
  }
  if (const JsonField power = root.optional("power"); power.present()) {
    report.power = JobPower{.of_machine_w = power.required("per_machine_w").number(),
                            .machines = power.required("machines").positive_count()};
  }
  root.optional("rates");  // follows from these
}

}  // namespace tandem
