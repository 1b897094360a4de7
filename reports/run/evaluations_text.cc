#include "reports/run/evaluations_text.h"

#include <fmt/format.h>

#include "reports/base/text_table.h"

namespace tandem {
namespace {

std::string steps_between(const Evaluations& evaluations) {
  return evaluations.every == 1 ? "after every step" : fmt::format("every {} steps", evaluations.every);
}

std::string count_of(const Evaluations& evaluations) {
  const auto done = static_cast<std::int64_t>(evaluations.done.size());
  if (evaluations.overtaken() == 0) return std::to_string(done);
  return fmt::format("{} ({} more were overtaken by newer variables)", done, evaluations.overtaken());
}

}  // namespace

std::string evaluations_sentence(const Evaluations& evaluations) {
  const std::string work =
      fmt::format("{} x {} examples {}", evaluations.passes, evaluations.batch,
                  evaluations.is_beside ? "by an evaluator beside training" : "on all devices that train");
  const std::string share = percent_text(evaluations.share());
  std::string text = fmt::format("median of {}, {}: {}; training waited {}{}, {} of the job", count_of(evaluations),
                                 steps_between(evaluations), work, time_text(evaluations.waited),
                                 evaluations.is_beside ? " for copies of the variables" : "", share);
  if (evaluations.afterwards > 0)
    text += fmt::format("; the last one ended {} after training", time_text(evaluations.afterwards));
  return text;
}

std::string evaluated_values_text(const Evaluations& evaluations) {
  if (evaluations.done.empty() || !evaluations.done.back().loss) return "";
  const Evaluated &first = evaluations.done.front(), &last = evaluations.done.back();
  return fmt::format("loss {:.6g} -> {:.6g}, accuracy {} -> {}", first.loss.value_or(0), last.loss.value_or(0),
                     percent_text(first.accuracy.value_or(0)), percent_text(last.accuracy.value_or(0)));
}

std::string evaluations_text(const Evaluations& evaluations) {
  const std::string time = evaluations.done.empty() ? "-" : time_text(evaluations.median_time());
  std::string text =
      wrapped_list(fmt::format("evaluation  {:>12}   ", time), words_of(evaluations_sentence(evaluations)), "");
  if (const std::string values = evaluated_values_text(evaluations); !values.empty())
    text += fmt::format("{:27}{}\n", "", values);
  return text;
}

}  // namespace tandem
