#include "scenarios/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "engine/engine_info.h"
#include "reports/base/work_estimate.h"
#include "scenarios/run/runner.h"
#include "scenarios/sweep/point_cost.h"
#include "scenarios/sweep/point_places.h"
#include "scenarios/sweep/point_runner.h"
#include "scenarios/sweep/process_pool.h"
#include "scenarios/sweep/rank_files.h"
#include "scenarios/sweep/results_file.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The points of a sweep, and which of them are finished.
class KnownPoints {
 public:
  KnownPoints(const SweepSpace& space, const std::vector<SweepSpace::Point>& points, SweepTable& table)
      : table_(table), places_(space, points) {}

  // Returns, for each point, the hash of its files when the sweep began.
  const std::vector<std::string>& files() const { return places_.files(); }

  // Returns the place of the point, if it is one of this sweep.
  std::optional<std::size_t> find(const StoredPoint& stored) const {
    return places_.find(stored.point.values, stored.files);
  }

  void set(std::size_t place, const SweptPoint& point) {
    if (!is_finished(place)) table_.points[place] = point;
  }

  // A lost point is not finished, because it may succeed the next time.
  bool is_finished(std::size_t place) const {
    const PointState state = table_.points[place].state;
    return state != PointState::not_run && state != PointState::lost;
  }

 private:
  SweepTable& table_;
  PointPlaces places_;
};

constexpr std::size_t kMostSized = 2000;  // points whose scenarios are read to know their sizes

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What points are expected to cost.
class PointCosts {
 public:
  PointCosts(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
             std::shared_ptr<const Topology> topology)
      : space_(space), points_(points), topology_(std::move(topology)), parts_(space.parts()) {}

  std::optional<PointEstimate> of(std::size_t place) {
    try {
      Scenario scenario = space_.scenario(points_[place], parts_);
      if (!scenario.topology) scenario.topology = topology_;
      return estimate_of(scenario);
    } catch (const Error&) {
      return std::nullopt;  // its row will say why
    }
  }

 private:
  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  std::shared_ptr<const Topology> topology_;
  SharedParts parts_;
};

// One call of run_sweep().
class SweepRun {
 public:
  SweepRun(const Scenario& scenario, const SweepOptions& options, SweepTable& table)
      : options_(options),
        table_(table),
        base_(scenario),
        space_(scenario),
        points_(space_.points()),
        known_(space_, points_, table),
        identity_{scenario.name, scenario.hash},
        ranks_(options.results, options.rank, identity_) {}

  void run() {
    open_results();
    read_others();
    try {
      const std::vector<int> jobs = remaining_jobs();
      if (!jobs.empty()) run_jobs(jobs);
      if (is_first_of_several()) collect_ranks();
    } catch (...) {
      if (is_first_of_several()) hear_ranks();  // for the table of what is finished
      throw;
    }
    if (results_) keep_what_others_have();
    if (!ranks_.is_first() && kept_.empty() && !has_lost_) fs::remove(results_->path());
  }

 private:
  bool is_first_of_several() const { return ranks_.has_several() && ranks_.is_first(); }

  void open_results() {
    if (options_.results.empty()) return;
    const auto tick = [this] {
      if (options_.progress) options_.progress(0, static_cast<int>(points_.size()), std::nullopt);
    };
    results_ = std::make_unique<ResultsFile>(ranks_.mine(), identity_, ResultsFile::kPatience, tick);
    if (results_->stored().is_cut) {
      note(fmt::format("{}: the last line was cut; its point runs again", results_->path().string()));
    }
    for (const StoredPoint& stored : results_->stored().points) {
      if (const auto place = take(stored)) kept_.insert(*place);
    }
  }

  // Takes the result of a finished point, and returns its place if it belongs to this sweep.
  std::optional<std::size_t> take(const StoredPoint& stored) {
    const auto place = stored.point.state == PointState::lost ? std::nullopt : known_.find(stored);
    if (place) known_.set(*place, stored.point);
    return place;
  }

  // Reads the files to merge and those of other ranks. Points that these lost in earlier sweeps, they repeat.
  void read_others() {
    for (const fs::path& file : options_.merge) {
      if (!fs::exists(file)) throw InputError({{.file = file.string(), .path = "", .message = "no such file"}});
      for (const StoredPoint& stored : read_results(file, identity_).points) take(stored);
    }
    for (const StoredPoint& stored : ranks_.news().points) take(stored);
  }

  // Takes what other ranks have finished or lost meanwhile.
  void hear_ranks() {
    for (const StoredPoint& stored : ranks_.news().points) {
      if (take(stored)) continue;
      if (const auto place = known_.find(stored)) known_.set(*place, stored.point);
    }
  }

  // A rank runs the points whose index has the rank as its remainder, whatever the others have finished when it begins.
  std::vector<int> remaining_jobs() const {
    std::vector<int> jobs;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (ranks_.has_turn(i) && !known_.is_finished(i)) jobs.push_back(static_cast<int>(i));
    }
    return jobs;
  }

  int processes_for(const std::vector<int>& jobs) const {
    const bool measures = !engine_info(base_.engine.name).needs_topology;
    const int usual = measures ? 1 : usable_processors();
    return std::min(options_.processes > 0 ? options_.processes : usual, static_cast<int>(jobs.size()));
  }

  // The sizes of jobs in seconds of CPU time; 0 for those that will be refused.
  std::vector<double> sizes_of(const std::vector<int>& jobs, const std::shared_ptr<const Topology>& topology) const {
    PointCosts costs(space_, points_, topology);
    std::vector<double> sizes;
    sizes.reserve(jobs.size());
    const std::size_t stride = 1 + jobs.size() / kMostSized;  // the others are as large as the one before
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (i % stride != 0) {
        sizes.push_back(sizes.back());
        continue;
      }
      const auto estimate = costs.of(static_cast<std::size_t>(jobs[i]));
      sizes.push_back(estimate ? estimate->cpu_s : 0);
    }
    return sizes;
  }

  // Points that run side by side may take equal parts of the memory. Those that need more run afterwards, alone.
  void run_jobs(const std::vector<int>& jobs) {
    const bool is_model = engine_info(base_.engine.name).needs_topology;
    const std::shared_ptr<const Topology> topology = is_model ? topology_for(base_) : nullptr;
    done_ = 0;
    const std::vector<double> sizes = sizes_of(jobs, topology);
    std::vector<int> ordered;
    std::vector<double> ordered_sizes;
    for (const std::size_t place : mixed_order(sizes)) {
      ordered.push_back(jobs[place]);
      ordered_sizes.push_back(sizes[place]);
      job_places_[jobs[place]] = ordered.size() - 1;
    }
    work_.emplace(std::move(ordered_sizes));
    const std::vector<int> large = run_jobs(ordered, processes_for(jobs), topology);
    if (!large.empty()) run_jobs(large, 1, topology);
  }

  // Returns the points that need more than their share of the memory.
  std::vector<int> run_jobs(const std::vector<int>& jobs, int processes,
                            const std::shared_ptr<const Topology>& topology) {
    PointRunner runner(space_, points_, known_.files(), topology, 1.0 / processes);
    ProcessPool pool(processes, [&runner](int job) { return runner.line(job); });
    const int all = done_ + static_cast<int>(jobs.size());
    std::vector<int> large;
    const auto progress = [&] {
      if (options_.progress) options_.progress(done_, all, work_->left_s(now_s(), processes));
    };
    const auto begin = [&](int job) { work_->begin(job_places_.at(job), now_s()); };
    const auto finish = [&](int job, const std::string& line) {
      if (line.empty()) {
        work_->put_back(job_places_.at(job));
        return large.push_back(job);
      }
      take_result(static_cast<std::size_t>(job), line);
      const bool ran = table_.points[static_cast<std::size_t>(job)].state == PointState::done;
      work_->end(job_places_.at(job), now_s(), ran);
    };
    const auto lose = [&](int job, const std::string& why) {
      const auto place = static_cast<std::size_t>(job);
      SweptPoint point = table_.points[place];
      point.state = PointState::lost;
      point.problem = why;
      take_result(place, line_of(point, known_.files()[place]));
      work_->end(job_places_.at(job), now_s(), false);
    };
    pool.run(jobs, {.done = finish, .lost = lose, .tick = progress, .begun = begin});
    return large;
  }

  void take_result(std::size_t place, const std::string& line) {
    ++done_;
    known_.set(place, point_of_line(line, "a result", static_cast<int>(place)).point);
    if (results_) results_->add(line);
    if (known_.is_finished(place)) {
      kept_.insert(place);
    } else {
      has_lost_ = true;
    }
  }

  // Waits until every point is known, or nothing is heard of the others for too long.
  void collect_ranks() {
    const auto missing = [this] {
      hear_ranks();
      const std::size_t count = missing_points(), all = points_.size();
      if (count > 0 && options_.progress)
        options_.progress(static_cast<int>(all - count), static_cast<int>(all), std::nullopt);
      return count;
    };
    wait_for_ranks(options_.wait_s, missing, "sweep");
  }

  std::size_t missing_points() const {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (table_.points[i].state == PointState::not_run) ++missing;
    }
    return missing;
  }

  // Stores all results in the first rank's file, so that the others' files are no longer needed.
  void keep_what_others_have() {
    if (!ranks_.is_first()) return;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (known_.is_finished(i) && !kept_.contains(i)) {
        results_->add(line_of(table_.points[i], known_.files()[i]));
      }
    }
    ranks_.remove_others();
  }

  void note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }

  const SweepOptions& options_;
  SweepTable& table_;
  const Scenario& base_;
  SweepSpace space_;
  std::vector<SweepSpace::Point> points_;
  KnownPoints known_;
  SweepIdentity identity_;
  RankFiles ranks_;
  std::unique_ptr<ResultsFile> results_;   // null: nothing is kept
  std::set<std::size_t> kept_;             // in the file of this rank
  int done_ = 0;                           // points that this run has finished or lost
  bool has_lost_ = false;                  // in this run
  std::map<int, std::size_t> job_places_;  // in work_
  std::optional<WorkEstimate> work_;
};

const Scenario& with_sweep(const Scenario& scenario) {
  if (scenario.sweep) return scenario;
  throw InputError({scenario.problem_at("", "has no `sweep:`; docs/sweep.md describes it")});
}

}  // namespace

SweepTable swept_points(const Scenario& scenario) {
  const SweepSpace space(with_sweep(scenario));
  SweepTable table{.scenario = scenario.name, .engine = scenario.engine.name, .fields = space.fields(), .points = {}};
  for (const SweepSpace::Point& point : space.points()) table.points.push_back({.values = space.values(point)});
  return table;
}

void estimate_points(const Scenario& scenario, SweepTable& table) {
  const SweepSpace space(with_sweep(scenario));
  const std::vector<SweepSpace::Point> points = space.points();
  PointCosts costs(space, points, scenario.topology);
  for (std::size_t i = 0; i < points.size(); ++i) table.points[i].estimate = costs.of(i);
}

void run_sweep(const Scenario& scenario, const SweepOptions& options, SweepTable& table) {
  SweepRun(with_sweep(scenario), options, table).run();
}

}  // namespace tandem
