#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "scenarios/reading/sweep_settings.h"
#include "scenarios/scenario/shared_parts.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostSweptValues = 100'000;

bool is_below(std::string_view path, std::string_view other) {
  return path.size() > other.size() && path.starts_with(other) && path[other.size()] == '.';
}

class SweepReader {
 public:
  SweepReader(const YamlReader& map, const YamlDocument& document) : map_(map), document_(document) {}

  std::shared_ptr<const SweepSettings> read() {
    const YamlReader values = map_.required("values");
    if (values.is_map()) {
      for (const auto& [path, value] : values.entries()) read_axis(path, value);
    }
    if (values.present() && !values.is_map()) {
      values.error("expected a map from fields of the scenario, such as strategy.tensor, to lists or ranges of values");
    } else if (values && sweep_->axes.empty() && values.diagnostics().empty()) {
      values.error("needs at least one field of the scenario, such as strategy.tensor: [1, 2, 4]");
    }
    for (const YamlReader& text : map_.optional("where").list()) read_condition(text);
    return sweep_;
  }

 private:
  void read_axis(const std::string& path, const YamlReader& value) {
    check_path(path, value);
    SweepAxis axis{.path = path, .line = value.line(), .column = value.column()};
    if (value.is_map()) {
      axis.is_range = true;
      read_range(value, axis);
    } else if (value.is_list()) {
      read_list(value, axis);
    } else {
      value.error("expected a list of values, or a range such as {from: 1, to: 64, times: 2}");
    }
    if (!axis.values.empty()) sweep_->axes.push_back(std::move(axis));
  }

  void check_path(const std::string& path, const YamlReader& value) const {
    for (const SweepAxis& other : sweep_->axes) {
      if (is_below(path, other.path) || is_below(other.path, path)) {
        value.error(fmt::format("'{}' is part of '{}'; give one of them", std::max(path, other.path),
                                std::min(path, other.path)));
      }
    }
    for (const char* fixed : {"schema_version", "sweep", "name"}) {
      if (path == fixed || is_below(path, fixed)) value.error(fmt::format("'{}' cannot be swept", fixed));
    }
    if (path == "engine" || path == "engine.name") {
      value.error(
          "the engine cannot be swept: simulated points run side by side, measured ones alone; write a sweep "
          "for each engine");
    }
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
      const YamlNode* above = node_at(document_.root(), path.substr(0, dot));
      if (above != nullptr && above->kind != YamlKind::map) {
        value.error(fmt::format("'{}' is '{}' in this scenario, no map that has '{}'", path.substr(0, dot),
                                text_of(*above), path.substr(dot + 1)));
        return;
      }
    }
  }

  void read_list(const YamlReader& list, SweepAxis& axis) const {
    std::set<std::string> seen;
    std::map<double, std::string> numbers;
    const YamlNode* node = node_at(document_.root(), "sweep.values");
    for (const YamlNode::Entry& entry : node->entries) {
      if (entry.key == axis.path) axis.values.assign(entry.value->items.begin(), entry.value->items.end());
    }
    std::size_t place = 0;
    for (const YamlReader& value : list.list()) {
      const std::string text = text_of(*axis.values[place++]);
      if (!seen.insert(text).second) {
        value.error(fmt::format("'{}' for the second time", text));
      } else if (const auto number = number_of(value)) {
        const auto [known, is_new] = numbers.try_emplace(*number, text);
        if (!is_new) value.error(fmt::format("'{}' is '{}' again", text, known->second));
      }
    }
    if (axis.values.empty()) list.error("has no values; needs at least one");
  }

  // Returns the number that a value is, in whatever unit.
  static std::optional<double> number_of(const YamlReader& value) {
    if (!value.is_scalar()) return std::nullopt;
    for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::bytes_per_second,
                                      Dimension::flops_per_second, Dimension::hertz, Dimension::watts}) {
      if (const auto number = parse_quantity(value.text(), dimension)) return number;
    }
    return std::nullopt;
  }

  static std::optional<double> read_number(const YamlReader& value) {
    if (!value) return std::nullopt;
    const auto number = value.is_scalar() ? parse_quantity(value.text(), Dimension::bytes) : std::nullopt;
    if (!number) value.error("expected a number, or a size such as 25MB");
    if (number && *number < 0) value.error(fmt::format("must not be negative, found {}", value.text()));
    return number;
  }

  // Reads a range: from, from + step, ... or from, from x times, ... up to `to`.
  void read_range(const YamlReader& map, SweepAxis& axis) const {
    const auto from = read_number(map.required("from"));
    const auto to = read_number(map.required("to"));
    map.exactly_one_of({"step", "times"});
    const YamlReader step = map.optional("step"), times = map.optional("times");
    const auto by = read_number(step ? step : times);
    if (!from || !to || !by) return;
    if (step && *by <= 0) return step.error("must be greater than 0");
    if (!step && (*by <= 1 || *from <= 0))
      return times.error("needs a factor greater than 1 and `from` greater than 0");
    if (*from > *to) return map.error(fmt::format("no value is from {} to {}", *from, *to));
    const double count = step ? std::floor((*to - *from) / *by) : std::floor(std::log(*to / *from) / std::log(*by));
    if (count >= static_cast<double>(kMostSweptValues)) {
      return map.error(fmt::format("has {:.3g} values; at most {}", count + 1, kMostSweptValues));
    }
    // Allows for rounding, which could miss the bound with a factor such as 10.
    const double last = *to * (1 + 1e-12);
    double value = *from;
    int steps = 0;
    while (value <= last) {
      add_made(value, map, axis);
      value = step ? *from + ++steps * *by : value * *by;
    }
  }

  void add_made(double value, const YamlReader& range, SweepAxis& axis) const {
    const bool is_whole = std::abs(value) < 1e15 && std::round(value) == value;
    YamlNode node{.kind = YamlKind::scalar, .line = range.line(), .column = range.column()};
    node.text = is_whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
    axis.values.push_back(sweep_->made.emplace_back(std::make_unique<const YamlNode>(std::move(node))).get());
  }

  void read_condition(const YamlReader& value) const {
    const std::string text = value.text();
    if (text.empty()) return;
    try {
      sweep_->where.push_back({Condition(text), value.line(), value.column(), value.path()});
    } catch (const ConditionError& error) {
      value.error(fmt::format("'{}', at character {}: {}", text, error.where() + 1, error.what()));
    }
  }

  const YamlReader& map_;
  const YamlDocument& document_;
  std::shared_ptr<SweepSettings> sweep_ = std::make_shared<SweepSettings>();
};

}  // namespace

std::shared_ptr<const SweepSettings> read_sweep(const YamlReader& map, const YamlDocument& document) {
  return map ? SweepReader(map, document).read() : nullptr;
}

}  // namespace tandem
