#include "scenarios/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/plan/hand_changes.h"
#include "scenarios/plan/seen_points.h"
#include "scenarios/run/runner.h"
#include "scenarios/sweep/point_runner.h"
#include "scenarios/sweep/process_pool.h"
#include "scenarios/sweep/results_file.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// End a search whose time is up, and the whole simulations of points that cost too much.
class TimeIsUp {};
class WholeTakesTooLong {};

constexpr double kWhole_s = 30;  // whole simulations may take so long, or as long as the search before them

const Scenario& with_space(const Scenario& scenario) {
  if (!scenario.sweep) throw InputError({scenario.problem_at("", "has no `sweep:` to search; docs/plan.md")});
  const EngineInfo& engine = engine_info(scenario.engine.name);
  if (engine.needs_topology) return scenario;
  throw InputError({scenario.problem_at(
      "engine.name", fmt::format("engine '{}' measures; a plan needs one that predicts, such as sim", engine.name))});
}

// One call of run_plan().
class PlanRun {
 public:
  PlanRun(const Scenario& scenario, const PlanOptions& options, PlanTable& table)
      : options_(options),
        table_(table),
        base_(scenario),
        space_(scenario),
        points_(space_.points()),
        topology_(topology_for(scenario)),
        processes_(options.processes > 0 ? options.processes : usable_processors()) {
    for (const SweepSpace::Point& point : points_) files_.push_back(space_.files_hash(point));
  }

  void run() {
    try {
      open_results();
      see_points();
      search();
      state_losses();
      if (!has_seen_all()) throw TimeIsUp();
      if (options_.has_usual) compare_with_usual();
    } catch (const TimeIsUp&) {
      table_.stopped = fmt::format("the time is up ({:g} s)", *options_.within_s);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Points that an earlier search or sweep has simulated quickly.
  void open_results() {
    if (options_.results.empty()) return;
    results_ = std::make_unique<ResultsFile>(options_.results, SweepIdentity{base_.name, base_.hash},
                                             ResultsFile::kPatience, [this] { tick("bounds", 0, 1); });
    if (results_->stored().is_cut && options_.note)
      options_.note(fmt::format("{}: the last line was cut; its point runs again", results_->path().string()));
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < points_.size(); ++i) places[key_of(table_.sweep.points[i], files_[i])] = i;
    for (const StoredPoint& stored : results_->stored().points) {
      const auto found = places.find(key_of(stored.point, stored.files));
      if (found != places.end() && stored.point.state == PointState::done) stored_[found->second] = stored.point;
    }
  }

  static std::string key_of(const SweptPoint& point, const std::string& files) {
    std::string key = files;
    for (const auto& [field, value] : point.values) key += fmt::format("\n{}={}", field, value);
    return key;
  }

  void see_points() {
    const std::vector<PointGroup> groups = groups_of(space_, points_, processes_);
    GroupViewer viewer(space_, points_, groups, topology_);
    std::vector<int> jobs(groups.size());
    std::iota(jobs.begin(), jobs.end(), 0);
    int seen = 0;
    const auto take = [&](int group, const std::string& text) {
      for (SeenPoint& one : seen_from(text, groups[static_cast<std::size_t>(group)])) put(std::move(one));
      seen += static_cast<int>(groups[static_cast<std::size_t>(group)].size());
    };
    const auto lose = [&](int group, const std::string& why) {
      for (const std::size_t place : groups[static_cast<std::size_t>(group)]) lost_[place] = why;
    };
    ProcessPool pool(std::min(processes_, static_cast<int>(jobs.size())),
                     [&](int group) { return viewer.text(group); });
    // With a limit, half of the time is for simulations.
    const auto has_time = [this](int) { return !options_.within_s || passed_s() < *options_.within_s / 2; };
    pool.run(jobs, {.done = take,
                    .lost = lose,
                    .tick = [&] { tick("bounds", seen, static_cast<int>(points_.size())); },
                    .is_wanted = has_time});
    for (const auto& [place, point] : stored_) {
      if (table_.sweep.points[place].state != PointState::does_not_fit) set(place, point, false);
    }
  }

  void put(SeenPoint one) {
    SweptPoint& point = table_.sweep.points[one.place];
    one.point.values = std::move(point.values);
    point = std::move(one.point);
    table_.planned[one.place] = one.planned;
  }

  void set(std::size_t place, SweptPoint point, bool is_whole) {
    point.values = table_.sweep.points[place].values;
    table_.sweep.points[place] = std::move(point);
    table_.planned[place].is_whole = is_whole;
  }

  // Simulates, in the order of their least values, points that may be among the best, quickly; then those that may be
  // the best one, as a whole; and again where these are not as good as they looked.
  void search() {
    while (true) {
      if (const std::vector<int> jobs = candidates(false); !jobs.empty()) {
        simulate(jobs, false);
      } else if (const std::vector<int> whole = candidates(true); whole.empty() || !simulate_whole(whole)) {
        return;
      }
    }
  }

  // Returns false where that takes too long.
  bool simulate_whole(const std::vector<int>& jobs) {
    whole_until_s_ = passed_s() + std::max(kWhole_s, passed_s());
    try {
      simulate(jobs, true);
      whole_until_s_.reset();
      return true;
    } catch (const WholeTakesTooLong&) {
      table_.stopped = fmt::format(
          "simulated quickly, because a whole simulation takes too long: `tandem run` may differ by up to {:g} %",
          100 * kQuickError);
      whole_until_s_.reset();
      return false;
    }
  }

  // The value that a point must be below to be among those that are wanted or, of whole simulations, to be the best.
  double bar(bool is_whole) const {
    const std::vector<std::size_t> ranks = table_.ranking();
    const std::size_t wanted = is_whole ? 1 : options_.wanted;
    return ranks.size() < wanted ? std::numeric_limits<double>::infinity() : table_.value(ranks[wanted - 1]);
  }

  bool may_be_wanted(std::size_t place, bool is_whole, double bar) const {
    const PointState state = table_.sweep.points[place].state;
    if (table_.planned[place].units <= 0) return false;  // not seen
    if (is_whole) return state == PointState::done && !table_.planned[place].is_whole && table_.least(place) <= bar;
    return state == PointState::not_run && table_.least(place) < bar;
  }

  std::vector<int> candidates(bool is_whole) const {
    const double limit = bar(is_whole);
    std::vector<int> jobs;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (!lost_.contains(i) && may_be_wanted(i, is_whole, limit)) jobs.push_back(static_cast<int>(i));
    }
    std::ranges::stable_sort(jobs, {}, [this](int job) { return table_.least(static_cast<std::size_t>(job)); });
    return jobs;
  }

  void simulate(const std::vector<int>& jobs, bool is_whole) {
    const char* stage = is_whole ? "whole simulations" : "quick simulations";
    std::vector<int> large;
    double limit = bar(is_whole);
    const auto run_on = [&](const std::vector<int>& some, int processes) {
      PointRunner runner(space_, points_, files_, topology_, 1.0 / processes);
      ProcessPool pool(std::min(processes, static_cast<int>(some.size())),
                       [&](int job) { return runner.line(job, is_whole); });
      const auto take = [&](int job, const std::string& line) {
        if (line.empty()) return large.push_back(job);
        take_line(static_cast<std::size_t>(job), line, is_whole);
        limit = bar(is_whole);
      };
      const auto lose = [&](int job, const std::string& why) { lost_[static_cast<std::size_t>(job)] = why; };
      pool.run(some,
               {.done = take,
                .lost = lose,
                .tick = [&] { tick(stage, static_cast<int>(table_.simulated()), static_cast<int>(points_.size())); },
                .is_wanted = [&](int job) { return may_be_wanted(static_cast<std::size_t>(job), is_whole, limit); }});
    };
    run_on(jobs, processes_);
    if (const std::vector<int> alone = std::exchange(large, {}); !alone.empty()) run_on(alone, 1);
    for (const int job : large) lost_[static_cast<std::size_t>(job)] = "this machine is too small for it";
  }

  // A point whose process ended may be better than all others, as far as its bound says.
  void state_losses() {
    for (const auto& [place, why] : lost_) {
      SweptPoint& point = table_.sweep.points[place];
      if (point.state == PointState::done) {
        table_.stopped = "simulated quickly, because the process of a whole simulation ended: " + why;
      } else {
        point.state = PointState::lost;
        point.problem = why;
      }
    }
  }

  // Whether something is known of each point. With a limit there may be no time for that.
  bool has_seen_all() const {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (table_.sweep.points[i].state == PointState::not_run && table_.planned[i].units <= 0) return false;
    }
    return true;
  }

  // The search has ended by then: if the time is up, only these comparisons are left out.
  void compare_with_usual() {
    try {
      run_usual();
    } catch (const TimeIsUp&) {
      if (options_.note) options_.note("the time is up before all comparisons with the scenario as it is");
    }
  }

  // The scenario as it is, for comparison.
  void run_usual() {
    run_variants({{}}, [this](std::size_t, SweptPoint point) { table_.usual = std::move(point); });
    const std::vector<std::size_t> ranks = table_.ranking();
    if (is_within_memory(table_.usual) && !ranks.empty()) change_by_hand(ranks.front());
  }

  // Changes the scenario as it is into the best one, field by field, and those together that mean nothing alone.
  void change_by_hand(std::size_t best) {
    const std::vector<ChangedFields> single = differences_of(space_, points_[best]);
    ChangedFields together;
    const auto take = [&](const ChangedFields& fields, SweptPoint point) {
      if (table_.value(point) == table_.value(table_.usual)) return;  // it was so already
      if (fields.size() == 1 && point.state == PointState::failed) return together.push_back(fields.front());
      table_.by_hand.push_back(hand_change(best, fields, within_memory(std::move(point))));
    };
    run_variants(
        single, [&](std::size_t i, SweptPoint point) { take(single[i], std::move(point)); }, best);
    std::ranges::sort(together);
    if (together.size() < 2 || together.size() == single.size()) return;
    run_variants(
        {together}, [&](std::size_t, SweptPoint point) { take(together, std::move(point)); }, best);
  }

  HandChange hand_change(std::size_t best, const ChangedFields& fields, SweptPoint point) const {
    HandChange change{.fields = {}, .point = std::move(point)};
    for (const std::size_t field : fields) {
      const auto& [name, value] = table_.sweep.points[best].values[field];
      change.fields.push_back({.field = name, .from = value_as_it_is(space_, field), .to = value});
    }
    return change;
  }

  static bool is_within_memory(const SweptPoint& point) {
    return point.state == PointState::done && (!point.memory || point.memory->is_within());
  }

  // A run may need slightly more memory than there is, as no point of the table does.
  static SweptPoint within_memory(SweptPoint point) {
    if (point.state != PointState::done || is_within_memory(point)) return point;
    point.state = PointState::does_not_fit;
    point.problem = memory_text(*point.memory);
    return point;
  }

  // Simulates the scenario with some values of a point at a time.
  void run_variants(const std::vector<ChangedFields>& variants,
                    const std::function<void(std::size_t variant, SweptPoint point)>& take, std::size_t place = 0) {
    const int processes = std::min(processes_, static_cast<int>(variants.size()));
    if (processes == 0) return;
    PointRunner runner(space_, points_, files_, topology_, 1.0 / processes);
    const auto make = [&](int variant, SharedParts& parts) {
      const ChangedFields& fields = variants[static_cast<std::size_t>(variant)];
      return fields.empty() ? base_ : space_.variant(points_[place], fields, parts);
    };
    ProcessPool pool(processes, [&](int variant) {
      return runner.line_of_other([&](SharedParts& parts) { return make(variant, parts); });
    });
    std::vector<int> jobs(variants.size());
    std::iota(jobs.begin(), jobs.end(), 0);
    std::map<int, SweptPoint> points;
    pool.run(jobs,
             {.done = [&](int job, const std::string& line) { points[job] = point_of_line(line, "a result", 0).point; },
              .lost = [](int, const std::string&) {},
              .tick = [this] { tick("the scenario as it is", 0, 1); }});
    for (auto& [job, point] : points) take(static_cast<std::size_t>(job), std::move(point));
  }

  void take_line(std::size_t place, const std::string& line, bool is_whole) {
    const SweptPoint point = point_of_line(line, "a result", static_cast<int>(place)).point;
    if (point.state == PointState::lost) {
      lost_[place] = point.problem;
      return;
    }
    set(place, point, is_whole);
    if (results_ && !is_whole) results_->add(line);
  }

  void tick(const char* stage, int done, int of) {
    if (options_.progress) options_.progress({.stage = stage, .done = done, .of = of, .gap = table_.gap()});
    if (options_.within_s && passed_s() > *options_.within_s) throw TimeIsUp();
    if (whole_until_s_ && passed_s() > *whole_until_s_) throw WholeTakesTooLong();
  }

  double passed_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  const PlanOptions& options_;
  PlanTable& table_;
  const Scenario& base_;
  SweepSpace space_;
  std::vector<SweepSpace::Point> points_;
  std::vector<std::string> files_;  // hashes
  std::shared_ptr<const Topology> topology_;
  int processes_;
  std::unique_ptr<ResultsFile> results_;
  std::map<std::size_t, SweptPoint> stored_;
  std::map<std::size_t, std::string> lost_;  // points whose process ended, and why
  Clock::time_point began_ = Clock::now();
  std::optional<double> whole_until_s_{};  // seconds from then on
};

}  // namespace

PlanTable planned_points(const Scenario& scenario, const PlanOptions& options) {
  const SweepSpace space(with_space(scenario));
  PlanTable table{
      .sweep = {.scenario = scenario.name, .engine = scenario.engine.name, .fields = space.fields(), .points = {}},
      .goal = options.goal,
      .wanted = options.wanted};
  for (const SweepSpace::Point& point : space.points()) table.sweep.points.push_back({.values = space.values(point)});
  table.planned.resize(table.sweep.points.size());
  return table;
}

void run_plan(const Scenario& scenario, const PlanOptions& options, PlanTable& table) {
  PlanRun(with_space(scenario), options, table).run();
}

}  // namespace tandem
