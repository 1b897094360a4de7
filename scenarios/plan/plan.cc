#include "scenarios/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/plan/ordered_search.h"
#include "scenarios/plan/plan_store.h"
#include "scenarios/plan/point_pool.h"
#include "scenarios/plan/seen_points.h"
#include "scenarios/plan/usual_comparison.h"
#include "scenarios/run/runner.h"
#include "scenarios/sweep/process_pool.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {
namespace {

// End a search whose time is up, whole simulations that cost too much, simulations of which no more are needed, and the
// part of another rank than the first one, once that has ended.
class TimeIsUp {};
class WholeTakesTooLong {};
class SearchIsDecided {};
class FirstRankHasEnded {};

constexpr double kWhole_s = 30;  // whole simulations may take so long, or as long as the search before them

const Scenario& with_space(const Scenario& scenario) {
  if (!scenario.sweep) throw InputError({scenario.problem_at("", "has no `sweep:` to search; docs/plan.md")});
  const EngineInfo& engine = engine_info(scenario.engine.name);
  if (engine.needs_topology) return scenario;
  throw InputError({scenario.problem_at(
      "engine.name", fmt::format("engine '{}' measures; a plan needs one that predicts, such as sim", engine.name))});
}

// One call of run_plan(). Several ranks look at different points, which all of them then know; they simulate points of
// one list in turn, as long as these are wanted; what is left, the first one does.
class PlanRun {
 public:
  PlanRun(const Scenario& scenario, const PlanOptions& options, PlanTable& table)
      : options_(options),
        table_(table),
        space_(scenario),
        points_(space_.points()),
        topology_(topology_for(scenario)),
        processes_(options.processes > 0 ? options.processes : usable_processors()),
        store_(space_, points_, options.results, options.rank,
               {.seen = [this](std::size_t place, const KeptOfPlan& seen) { put(place, seen); },
                .simulated = [this](std::size_t place, const SweptPoint& point) { count(place, table_.value(point)); },
                .lost = [this](std::size_t place, const std::string& why) { lose(place, why); }}) {}

  void run() {
    try {
      store_.open([this] { tick("bounds", 0, 1); }, options_.note);
      see_points();
      search();
      if (store_.ranks().is_first()) {
        state_losses();
        if (options_.within_s && unseen_points() > 0) throw TimeIsUp();
        if (options_.has_usual) compare_with_usual();
      }
    } catch (const TimeIsUp&) {
      store_.hear();
      show_what_is_known();
      table_.stopped = fmt::format("the time is up ({:g} s)", *options_.within_s);
    } catch (const FirstRankHasEnded&) {
    } catch (const RanksAreSilent&) {
      show_what_is_known();
      if (store_.ranks().is_first()) throw;  // which speaks for all of them
    } catch (...) {
      show_what_is_known();
      throw;
    }
    store_.close();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void see_points() {
    const Rank& rank = store_.ranks().rank();
    std::vector<PointGroup> groups = groups_of_rank(groups_of(space_, points_), rank.index, rank.count);
    for (PointGroup& group : groups) std::erase_if(group, [this](std::size_t place) { return !is_unseen(place); });
    groups = groups_for_processes(groups, processes_);
    if (!groups.empty()) see(groups);
    if (store_.ranks().has_several()) {
      const auto unseen = [this] {
        hear_of_bounds();
        return has_time_to_see() ? unseen_points() : 0;
      };
      wait_for_ranks(options_.wait_s, unseen, "plan");
    }
  }

  void see(const std::vector<PointGroup>& groups) {
    GroupViewer viewer(space_, points_, store_.files(), groups, topology_);
    std::vector<int> jobs(groups.size());
    std::iota(jobs.begin(), jobs.end(), 0);
    const auto take = [this](int, const std::string& lines) { store_.add_seen(lines); };
    const auto lose_group = [&](int group, const std::string& why) {
      for (const std::size_t place : groups[static_cast<std::size_t>(group)]) {
        lose(place, why);
        store_.lose(place, why, true);
      }
    };
    ProcessPool pool(std::min(processes_, static_cast<int>(jobs.size())),
                     [&](int group) { return viewer.text(group); });
    pool.run(jobs, {.done = take,
                    .lost = lose_group,
                    .tick = [this] { hear_of_bounds(); },
                    .is_wanted = [this](int) { return has_time_to_see(); }});
  }

  // With a limit, half of the time is for simulations.
  bool has_time_to_see() const { return !options_.within_s || passed_s() < *options_.within_s / 2; }

  bool is_unseen(std::size_t place) const {
    return table_.sweep.points[place].state == PointState::not_run && table_.planned[place].units <= 0 &&
           !lost_.contains(place);
  }

  std::size_t unseen_points() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) count += is_unseen(i) ? 1 : 0;
    return count;
  }

  void put(std::size_t place, const KeptOfPlan& seen) {
    set(place, seen.point, false);
    table_.planned[place] = seen.planned;
  }

  void set(std::size_t place, SweptPoint point, bool is_whole) {
    point.values = std::move(table_.sweep.points[place].values);
    table_.sweep.points[place] = std::move(point);
    table_.planned[place].is_whole = is_whole;
  }

  void lose(std::size_t place, const std::string& why) {
    lost_[place] = why;
    count(place, std::numeric_limits<double>::infinity());
  }

  // Simulates, in the order of their least values, points that may be among the best, quickly; then those that may be
  // the best one, as a whole; and again where these are not as good as they looked. Ranks share the first of these.
  void search() {
    std::vector<int> jobs = candidates(false);
    simulate_quickly(jobs, store_.ranks().has_several());
    while (store_.ranks().is_first()) {
      jobs = candidates(true);
      if (jobs.empty() || !simulate_whole(jobs)) return;
      jobs = candidates(false);
      simulate_quickly(jobs, false);
    }
  }

  // The value that a point must be below to be among those that are wanted or, of whole simulations, to be the best.
  double bar(bool is_whole) const { return BestValues(is_whole ? 1 : options_.wanted, table_.values()).bar(); }

  bool may_be_wanted(std::size_t place, bool is_whole, double bar) const {
    const PointState state = table_.sweep.points[place].state;
    if (table_.planned[place].units <= 0 || lost_.contains(place)) return false;
    if (is_whole) return state == PointState::done && !table_.planned[place].is_whole && table_.least(place) <= bar;
    return state == PointState::not_run && table_.least(place) < bar;
  }

  std::vector<int> candidates(bool is_whole) const {
    const double limit = bar(is_whole);
    std::vector<int> jobs;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (may_be_wanted(i, is_whole, limit)) jobs.push_back(static_cast<int>(i));
    }
    std::ranges::stable_sort(jobs, {}, [this](int job) { return table_.least(static_cast<std::size_t>(job)); });
    return jobs;
  }

  void simulate_quickly(const std::vector<int>& jobs, bool is_shared) {
    begin_order(jobs);
    try {
      if (order_->is_decided()) throw SearchIsDecided();
      run_in_order(mine_of(jobs, is_shared));
      if (is_shared && store_.ranks().is_first()) {
        const auto missing = [this] {
          hear_of_order();
          return order_->missing();
        };
        wait_for_ranks(options_.wait_s, missing, "plan");
      }
    } catch (const SearchIsDecided&) {
    }
    for (std::size_t i = 0; i < order_->counted(); ++i) {
      const auto place = static_cast<std::size_t>(jobs[i]);
      if (const SweptPoint* point = store_.quick(place)) set(place, *point, false);
    }
    order_.reset();
  }

  void begin_order(const std::vector<int>& jobs) {
    std::vector<double> least;
    indices_.clear();
    for (const int job : jobs) {
      indices_[static_cast<std::size_t>(job)] = least.size();
      least.push_back(table_.least(static_cast<std::size_t>(job)));
    }
    order_.emplace(std::move(least), table_.values(), options_.wanted);
    for (const int job : jobs) {
      const auto place = static_cast<std::size_t>(job);
      if (const SweptPoint* point = store_.quick(place)) count(place, table_.value(*point));
    }
  }

  // Every n-th of the jobs that nobody has done. Where the time was up before all bounds were known, ranks may differ
  // in what they know, but not in whose a point is.
  std::vector<int> mine_of(const std::vector<int>& jobs, bool is_shared) const {
    const bool is_complete = unseen_points() == 0;
    std::vector<int> mine;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto turn = is_complete ? i : static_cast<std::size_t>(jobs[i]);
      if ((!is_shared || store_.ranks().has_turn(turn)) && !order_->is_known(i)) mine.push_back(jobs[i]);
    }
    return mine;
  }

  void run_in_order(const std::vector<int>& jobs) {
    const auto take = [this](std::size_t place, const std::string& line) {
      store_.add_quick(place, line);
      if (order_->is_decided()) throw SearchIsDecided();
    };
    const auto is_wanted = [this](int job) { return order_->is_wanted(indices_.at(static_cast<std::size_t>(job))); };
    const auto lose_job = [this](std::size_t place, const std::string& why) {
      store_.lose(place, why, false);
      lose(place, why);
    };
    pool().run(jobs, false,
               {.done = take, .lost = lose_job, .tick = [this] { hear_of_order(); }, .is_wanted = is_wanted});
  }

  // Takes the value of a point that is simulated now.
  void count(std::size_t place, double value) {
    if (!order_) return;
    if (const auto index = indices_.find(place); index != indices_.end()) order_->put(index->second, value);
  }

  // Returns false where that takes too long, or took too long in an earlier search.
  bool simulate_whole(const std::vector<int>& jobs) {
    const auto first = static_cast<std::size_t>(jobs.front());
    const double most_s = std::max(kWhole_s, passed_s());
    std::size_t next = 0;  // of the jobs, whose results count in their order
    try {
      if (store_.whole(first) == nullptr && store_.given_up_after_s(first) >= most_s) throw WholeTakesTooLong();
      whole_until_s_ = passed_s() + most_s;
      run_wholes(jobs, next);
      whole_until_s_.reset();
      return true;
    } catch (const WholeTakesTooLong&) {
      if (whole_until_s_ && next == 0) store_.add_given_up(first, most_s);
      table_.stopped = fmt::format(
          "simulated quickly, because a whole simulation takes too long: `tandem run` may differ by up to {:g} %",
          100 * kQuickError);
      whole_until_s_.reset();
      return false;
    }
  }

  void run_wholes(const std::vector<int>& jobs, std::size_t& next) {
    const auto count_wholes = [&] {
      for (; next < jobs.size(); ++next) {
        const auto place = static_cast<std::size_t>(jobs[next]);
        if (!may_be_wanted(place, true, bar(true))) continue;
        const SweptPoint* point = store_.whole(place);
        if (point == nullptr) return;
        set(place, *point, true);
      }
    };
    count_wholes();
    if (next == jobs.size()) return;
    std::vector<int> left;
    for (std::size_t i = next; i < jobs.size(); ++i) {
      if (store_.whole(static_cast<std::size_t>(jobs[i])) == nullptr) left.push_back(jobs[i]);
    }
    const auto go_on = [&] {
      count_wholes();
      if (next == jobs.size()) throw SearchIsDecided();
    };
    const auto take = [&](std::size_t place, const std::string& line) {
      store_.add_whole(place, point_of_line(line, "a result", static_cast<int>(place)).point);
      go_on();
    };
    const auto lose_job = [&](std::size_t place, const std::string& why) {
      lose(place, why);
      go_on();
    };
    const auto tell = [this] { tick("whole simulations", simulated(), all_points()); };
    try {
      pool().run(left, true, {.done = take, .lost = lose_job, .tick = tell, .is_wanted = [](int) { return true; }});
    } catch (const SearchIsDecided&) {
    }
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

  // Also what nobody would have simulated yet who does one point after the other.
  void show_what_is_known() {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const SweptPoint* point = store_.quick(i);
      if (point != nullptr && table_.sweep.points[i].state == PointState::not_run && table_.planned[i].units > 0)
        set(i, *point, false);
    }
  }

  // The search has ended by then: if the time is up, only these comparisons are left out.
  void compare_with_usual() {
    try {
      UsualComparison(space_, points_, store_, topology_, processes_, [this] {
        tick("the scenario as it is", 0, 1);
      }).run(table_);
    } catch (const TimeIsUp&) {
      if (options_.note) options_.note("the time is up before all comparisons with the scenario as it is");
    }
  }

  PointPool pool() const { return {space_, points_, store_.files(), topology_, processes_}; }
  int all_points() const { return static_cast<int>(points_.size()); }
  int simulated() const { return static_cast<int>(table_.simulated()); }

  void hear(const char* stage, int done) {
    tick(stage, done, all_points());
    if (store_.is_over()) throw FirstRankHasEnded();
    store_.hear();
  }

  void hear_of_bounds() { hear("bounds", all_points() - static_cast<int>(unseen_points())); }

  void hear_of_order() {
    hear("quick simulations", simulated() + static_cast<int>(order_->counted()));
    if (order_->is_decided()) throw SearchIsDecided();
  }

  void tick(const char* stage, int done, int of) {
    if (options_.progress) options_.progress({.stage = stage, .done = done, .of = of, .gap = table_.gap()});
    if (options_.within_s && passed_s() > *options_.within_s) throw TimeIsUp();
    if (whole_until_s_ && passed_s() > *whole_until_s_) throw WholeTakesTooLong();
  }

  double passed_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  const PlanOptions& options_;
  PlanTable& table_;
  SweepSpace space_;
  std::vector<SweepSpace::Point> points_;
  std::shared_ptr<const Topology> topology_;
  int processes_;
  std::map<std::size_t, std::string> lost_;       // points whose process ended, and why
  std::optional<OrderedSearch> order_{};          // of the quick simulations under way
  std::map<std::size_t, std::size_t> indices_{};  // in these, by place
  Clock::time_point began_ = Clock::now();
  std::optional<double> whole_until_s_{};  // seconds from then on
  PlanStore store_;
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
