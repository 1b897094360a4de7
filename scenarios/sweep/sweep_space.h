// The points of a sweep, and the scenario of each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/reading/sweep_settings.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/scenario/shared_parts.h"

namespace tandem {

class SweepSpace {
 public:
  using Point = std::vector<std::uint32_t>;                         // for each field, the index of a value
  using Values = std::vector<std::pair<std::string, std::string>>;  // fields and their values, as text

  // `base` must have a sweep and outlive this. Throws InputError for fields that scenarios do not have, and for names
  // in conditions that mean nothing here.
  explicit SweepSpace(const Scenario& base);

  // Returns the combinations that meet the conditions, in the order of the file; the last field varies fastest. Throws
  // InputError if there are too many to try or to run, if there are none, and for a condition whose values do not go
  // together.
  std::vector<Point> points() const;

  const Scenario& base() const { return base_; }
  std::vector<std::string> fields() const;
  Values values(const Point& point) const;
  // Returns the hash of the files that the values of a point name, or "" if they name none.
  std::string files_hash(const Point& point) const;
  // Returns the parts that the base was made of, with which reading points begins.
  SharedParts parts() const;
  // Returns the scenario of a point. Throws InputError for a combination that is not a valid scenario.
  Scenario scenario(const Point& point, SharedParts& parts) const;
  // Returns the base with the point's values of some fields only.
  Scenario variant(const Point& point, const std::vector<std::size_t>& fields, SharedParts& parts) const;

 private:
  // The meaning of a name in a condition. It depends on the values of the first `axes` fields only.
  struct Meaning {
    std::size_t axes = 0;
    std::function<ConditionValue(const Point& point)> value;
  };
  struct Check {
    const SweepCondition* condition = nullptr;
    std::vector<Meaning> names;
    std::size_t axes = 0;
  };

  void check_fields() const;
  Meaning meaning_of(const std::string& name, const SweepCondition& in) const;
  Meaning devices_of_points(const SweepCondition& in) const;
  Meaning meaning_of_path(const std::string& path, const std::string& name, const SweepCondition& in) const;
  Meaning workers_of_topology(const SweepCondition& in) const;
  Meaning by_axis(std::size_t axis, const std::string& rest, const SweepCondition& in) const;
  bool is_swept(const std::string& path) const;
  [[noreturn]] void fail(const SweepCondition& in, const std::string& message) const;
  bool holds(const Check& check, const Point& point) const;
  void add_points(Point& point, std::vector<Point>& points, std::int64_t& tried) const;

  const Scenario& base_;
  const SweepSettings& sweep_;
  std::vector<Check> checks_;
};

}  // namespace tandem
