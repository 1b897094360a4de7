#include "scenarios/faults/faults_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "scenarios/faults/durations.h"
#include "scenarios/faults/fault_trace.h"
#include "scenarios/job/tasks.h"
#include "scenarios/scenario/named_files.h"

namespace tandem {
namespace {

constexpr int kMostStep = 1'000'000'000;
constexpr std::int64_t kMostSeed = std::int64_t{1} << 62;
constexpr const char* kLinkSeparator = " - ";

std::uint64_t read_seed(const YamlReader& map) {
  return static_cast<std::uint64_t>(map.optional("seed").whole_number(0, kMostSeed, 1));
}

class FaultsReader {
 public:
  FaultsReader(const Scenario& scenario, const std::filesystem::path& folder) : scenario_(scenario), folder_(folder) {}

  FaultSettings read(const YamlReader& faults, const YamlReader& recovery) {
    for (const YamlReader& one : faults.list()) read_fault(one);
    if (recovery) read_recovery(recovery);
    return std::move(settings_);
  }

 private:
  void read_fault(const YamlReader& one) {
    one.exactly_one_of({"slow", "jitter", "fail", "trace"});
    if (const YamlReader slow = one.optional("slow")) read_slow(slow);
    if (const YamlReader jitter = one.optional("jitter")) read_jitter(jitter);
    if (const YamlReader fail = one.optional("fail")) read_fail(fail);
    if (const YamlReader trace = one.optional("trace")) read_trace(trace);
  }

  int tasks_of_job(const std::string& job) const {
    return job == "ps" ? parameter_servers(scenario_) : training_workers(scenario_);
  }

  // "3", "any", "each"
  void read_task(const YamlReader& value, FaultTarget& target) const {
    target.text = value.path().ends_with("ps") ? "ps:" : "worker:";
    if (value.is_scalar()) target.text += value.node()->text;
    const bool is_word = value.is_scalar() && (value.node()->text == "any" || value.node()->text == "each");
    if (is_word && target.job == "ps") return value.error("expected the task of a parameter server, such as 0");
    if (is_word) {
      target.which = value.node()->text == "any" ? FaultTarget::Which::any : FaultTarget::Which::each;
      return;
    }
    const int tasks = tasks_of_job(target.job);
    if (tasks == 0) return value.error(fmt::format("the job has no task of '{}'", target.job));
    target.task = value.integer(0, tasks - 1);
  }

  // "worker:3/GPU:5", or TensorFlow's "/job:worker/task:3/device:GPU:5"
  void read_device(const YamlReader& value, FaultTarget& target) const {
    target.text = value.text();
    std::string name = target.text;
    if (const std::size_t slash = name.find('/'); !name.starts_with('/') && slash != std::string::npos) {
      const std::size_t colon = name.find(':');
      if (colon < slash)
        name = "/job:" + name.substr(0, colon) + "/task" + name.substr(colon, slash - colon) +
               "/device:" + name.substr(slash + 1);
    }
    const DeviceId usual{.job = "worker", .task = 0, .type = scenario_.devices.type, .index = 0};
    const std::optional<DeviceId> id = DeviceId::parse(name, usual);
    if (!id) return value.error(fmt::format("expected a device such as worker:3/GPU:5, found '{}'", target.text));
    target.job = id->job == "localhost" || id->job == "chief" ? "worker" : id->job;
    target.task = id->task;
    if (target.job == "ps") return value.error("a parameter server trains on no device; one that fails is `ps: 0`");
    if (target.job != "worker") return value.error(fmt::format("unknown job '{}', expected worker", id->job));
    if (id->task < 0 || id->task >= tasks_of_job(target.job)) {
      return value.error(
          fmt::format("'{}' has the tasks 0 to {}, found {}", target.job, tasks_of_job(target.job) - 1, id->task));
    }
    if (id->type != scenario_.devices.type || id->index < 0 || id->index >= scenario_.devices.per_worker) {
      return value.error(fmt::format("each worker has {} device{} of type {}, found {}:{}",
                                     scenario_.devices.per_worker, scenario_.devices.per_worker == 1 ? "" : "s",
                                     name_of(scenario_.devices.type), name_of(id->type), id->index));
    }
    target.device = id->index;
  }

  // "w0.nic1" is each link of that node, "w0.nic1 - leaf0" the link between the two.
  void read_link(const YamlReader& value, FaultTarget& target) const {
    target.text = value.text();
    if (!scenario_.topology)
      return value.error("needs a topology whose nodes have names; `tandem topology show` lists them");
    const Topology& topology = *scenario_.topology;
    const std::size_t between = target.text.find(kLinkSeparator);
    const std::string first = target.text.substr(0, between);
    const std::string second =
        between == std::string::npos ? "" : target.text.substr(between + std::string_view(kLinkSeparator).size());
    for (const std::string& name : {first, second}) {
      if (!name.empty() && !topology.find(name)) {
        return value.error(fmt::format("the topology has no node '{}'; `tandem topology show` lists them", name));
      }
    }
    const NodeIndex node = *topology.find(first);
    const std::optional<NodeIndex> other = second.empty() ? std::nullopt : topology.find(second);
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link link = topology.link(index);
      const bool is_of_node = link.from == node || link.to == node;
      const bool is_of_other = !other || link.from == *other || link.to == *other;
      if (is_of_node && is_of_other) target.links.push_back(index);
    }
    if (target.links.empty()) value.error(fmt::format("there is no link '{}'", target.text));
  }

  FaultTarget read_target(const YamlReader& map, bool may_be_server) const {
    FaultTarget target;
    std::vector<std::string> keys{"worker", "device", "link"};
    if (may_be_server) keys.emplace_back("ps");
    map.exactly_one_of(keys);
    if (const YamlReader worker = map.optional("worker")) read_task(worker, target);
    if (const YamlReader device = map.optional("device")) read_device(device, target);
    if (const YamlReader link = map.optional("link")) read_link(link, target);
    if (!may_be_server) return target;
    if (const YamlReader server = map.optional("ps")) {
      target.job = "ps";
      read_task(server, target);
    }
    return target;
  }

  // [10, 20] or 10..20, both included
  static void read_steps(const YamlReader& value, FaultPeriod& when) {
    if (value.is_list()) {
      const std::vector<YamlReader> ends = value.list();
      if (ends.size() != 2) return value.error("expected the first and the last step, such as [10, 20]");
      when.first_step = ends[0].integer(0, kMostStep);
      when.last_step = ends[1].integer(0, kMostStep);
    } else {
      const std::string text = value.text();
      const std::size_t dots = text.find("..");
      int first = 0, last = 0;
      const auto read = [](std::string_view part, int& into) {
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), into);
        return error == std::errc{} && end == part.data() + part.size() && into >= 0;
      };
      const std::string_view whole = text;
      if (dots == std::string::npos || !read(whole.substr(0, dots), first) || !read(whole.substr(dots + 2), last)) {
        return value.error(fmt::format("expected the first and the last step, such as 10..20, found '{}'", text));
      }
      when.first_step = first;
      when.last_step = last;
    }
    if (*when.first_step > when.last_step) value.error("the last step comes before the first one");
  }

  void read_slow(const YamlReader& map) {
    SlowFault fault{.target = read_target(map, false)};
    fault.factor = map.required("factor").number({.least = 1, .most = 1e6, .otherwise = 1});
    const YamlReader from = map.optional("from"), to = map.optional("to"), steps = map.optional("steps"),
                     every = map.optional("every");
    if ((from || to) + static_cast<bool>(steps) + static_cast<bool>(every) > 1) {
      map.error("lasts either from one time to another, or for some steps, or comes again and again (every)");
    }
    if (from) fault.when.from_s = read_duration(from);
    if (to) {
      fault.when.to_s = read_duration(to, false);
      if (fault.when.to_s <= fault.when.from_s) to.error("must be later than `from`");
    }
    if (steps) read_steps(steps, fault.when);
    if (every) fault.again = read_recurrence(every);
    if (fault.target.which == FaultTarget::Which::any && !every)
      map.error("one of the workers, drawn each time, is for what comes again and again (every)");
    settings_.slow.push_back(std::move(fault));
  }

  static Recurrence read_recurrence(const YamlReader& map) {
    const YamlReader mean = map.required("mtbf"), duration = map.required("duration");
    const Recurrence recurrence{
        .mean_s = read_duration(mean, false), .duration_s = read_duration(duration, false), .seed = read_seed(map)};
    if (mean && duration && recurrence.duration_s >= recurrence.mean_s) duration.error("must be less than `mtbf`");
    return recurrence;
  }

  void read_jitter(const YamlReader& map) {
    Jitter jitter;
    jitter.on = map.optional("on").one_of<Jitter::On>(
        {{"compute", Jitter::On::compute}, {"network", Jitter::On::network}, {"input", Jitter::On::input}});
    jitter.variation = map.required("cv").number({.above = 0, .most = 2});
    jitter.seed = read_seed(map);
    settings_.jitter.push_back(jitter);
  }

  void read_fail(const YamlReader& map) {
    FailFault fault{.target = read_target(map, true)};
    map.exactly_one_of({"at", "step", "mttf"});
    fault.at_s = read_optional_duration(map.optional("at"));
    if (const YamlReader step = map.optional("step")) fault.step = step.integer(0, scenario_.steps - 1);
    if (const YamlReader mttf = map.optional("mttf")) fault.mttf_s = read_duration(mttf, false);
    fault.seed = read_seed(map);
    if (const YamlReader back = map.optional("back_after")) {
      const bool is_never = back.is_scalar() && back.node()->text == "never";
      fault.back_after_s = is_never ? std::numeric_limits<double>::infinity() : read_duration(back);
    }
    if (fault.target.which != FaultTarget::Which::one && !fault.mttf_s)
      map.error("any or each of the workers is for failures at random (mttf)");
    name_worker_of_link(map, fault.target);
    settings_.fail.push_back(std::move(fault));
  }

  // A link that is gone takes the worker along whose machine it belongs to.
  void name_worker_of_link(const YamlReader& map, FaultTarget& target) const {
    if (target.links.empty()) return;
    const Link link = scenario_.topology->link(target.links.front());
    const int machine = std::max(scenario_.topology->worker(link.from), scenario_.topology->worker(link.to));
    if (machine < 0 || machine >= training_workers(scenario_))
      return map.optional("link").error("belongs to no worker's machine: name a link of one");
    target.task = machine;
  }

  void read_trace(const YamlReader& value) {
    std::optional<double> unit_s;
    YamlReader file = value;
    if (value.is_map()) {
      file = value.required("file");
      if (const YamlReader unit = value.optional("unit")) {
        unit_s = unit.one_of<double>({{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}}, 1);
      }
    }
    const auto path = existing_file(file, folder_);
    if (!path) return;
    const std::vector<TraceEvent> events = included(file, [&] { return read_fault_trace(*path, unit_s); });
    settings_.trace.insert(settings_.trace.end(), events.begin(), events.end());
    std::ranges::stable_sort(settings_.trace, {}, &TraceEvent::date_s);
  }

  void read_recovery(const YamlReader& map) {
    RecoverySettings& recovery = settings_.recovery;
    if (const YamlReader policy = map.optional("policy")) {
      recovery.policy = policy.one_of<RecoveryPolicy>({{"restart_all", RecoveryPolicy::restart_all},
                                                       {"wait", RecoveryPolicy::wait},
                                                       {"continue", RecoveryPolicy::continue_},
                                                       {"elastic", RecoveryPolicy::elastic},
                                                       {"spare", RecoveryPolicy::spare},
                                                       {"end", RecoveryPolicy::end}});
    }
    const YamlReader spares = map.optional("spares");
    recovery.spares = spares.integer(0, 1 << 20);
    if (spares && recovery.policy != RecoveryPolicy::spare) spares.error("is for `policy: spare`");
    recovery.detection_s = read_optional_duration(map.optional("detection"));
    recovery.restart_s = read_optional_duration(map.optional("restart"));
    if (const YamlReader checkpoint = map.optional("checkpoint")) read_checkpoint(checkpoint, recovery.checkpoint);
  }

  static void read_checkpoint(const YamlReader& map, CheckpointSettings& checkpoint) {
    read_interval(map.optional("every"), checkpoint);
    checkpoint.time_s = read_optional_duration(map.optional("time"));
    checkpoint.overlapped = map.optional("overlapped").boolean(false);
    checkpoint.load_s = read_optional_duration(map.optional("load"));
    const YamlReader directory = map.optional("directory");
    if (!directory) return;
    const std::string name = directory.text();
    checkpoint.directory = name;  // from the working directory, as other files that a run writes
  }

  // "500 steps" or a time
  static void read_interval(const YamlReader& every, CheckpointSettings& checkpoint) {
    if (!every) return;
    if (every.is_scalar()) {
      const std::string& text = every.node()->text;
      if (const std::optional<std::int64_t> steps = parse_steps(text)) {
        if (*steps < 1 || *steps > kMostStep)
          return every.error(fmt::format("must be 1 to 1000000000 steps, found {}", text));
        checkpoint.every_steps = steps;
        return;
      }
      if (!parse_duration(text))
        return every.error(
            fmt::format("expected a number of steps or a time, such as 500 steps or 10min, found '{}'", text));
    }
    checkpoint.every_s = read_duration(every, false);
  }

  const Scenario& scenario_;
  const std::filesystem::path& folder_;
  FaultSettings settings_;
};

}  // namespace

std::shared_ptr<const FaultSettings> read_faults(const YamlReader& faults, const YamlReader& recovery,
                                                 const Scenario& scenario, const std::filesystem::path& folder) {
  if (!faults && !recovery) return nullptr;
  return std::make_shared<const FaultSettings>(FaultsReader(scenario, folder).read(faults, recovery));
}

}  // namespace tandem
