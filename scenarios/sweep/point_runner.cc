#include "scenarios/sweep/point_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/estimates/size_check.h"
#include "scenarios/job/job.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/unused_keys.h"
#include "scenarios/sweep/results_file.h"

namespace tandem {
std::string text_of_problems(const InputError& error) {
  std::string text = error.diagnostics().front().text();
  if (const std::size_t more = error.diagnostics().size() - 1; more > 0) text += fmt::format(" (and {} more)", more);
  return text;
}

std::string PointRunner::line(int number, bool is_whole) {
  const auto place = static_cast<std::size_t>(number);
  needs_more_ = false;
  const SweepSpace::Point& choice = points_[place];
  SweptPoint point =
      run([&] { return space_.scenario(choice, parts_); }, is_whole,
          [&] {
            if (space_.files_hash(choice) == files_[place]) return;
            throw RunError("a file that its values name has changed since the sweep began; run the sweep again");
          });
  if (needs_more_) return {};
  point.values = space_.values(choice);
  return line_of(point, files_[place]);
}

std::string PointRunner::line_of_other(const std::function<Scenario(SharedParts& parts)>& make) {
  needs_more_ = false;
  return line_of(run([&] { return make(parts_); }, false, [] {}), "");
}

SweptPoint PointRunner::run(const std::function<Scenario()>& make, bool is_whole, const std::function<void()>& check) {
  SweptPoint point{.values = {}, .state = PointState::failed};
  try {
    Scenario scenario = make();
    point.strategy = scenario.strategy.name;
    point.devices = static_cast<int>(training_devices(scenario));
    if (!scenario.topology) scenario.topology = topology_;
    const RunOptions options{.memory_share = memory_share_,
                             .measures_scaling = false,
                             .is_quick = !is_whole,
                             .figures = is_whole ? Figures::all : Figures::of_steps,
                             .only_report = true};
    const Report report = run_scenario(scenario, options).report;
    check();
    SweptPoint done = swept_point(report, point.devices);
    std::copy_if(report.notes.begin(), report.notes.end(), std::back_inserter(done.unused), is_about_unused_keys);
    return done;
  } catch (const MemoryError& error) {
    point.state = PointState::does_not_fit;
    point.problem = memory_text(error.need());
    point.limit = "memory";
    point.memory = error.need();
  } catch (const SizeError& error) {
    needs_more_ = memory_share_ < 1;
    point.state = PointState::lost;  // it may run on another machine, or later
    point.problem = error.what();
  } catch (const InputError& error) {
    point.problem = text_of_problems(error);
  } catch (const std::bad_alloc&) {
    point.state = PointState::lost;
    point.problem = "out of memory on this machine";
  } catch (const std::exception& error) {
    point.problem = error.what();
  }
  return point;
}

}  // namespace tandem
