#include "scenarios/import/traces/kineto_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::size_t kMostEvents = 20'000'000;
constexpr std::int64_t kMostNs = std::int64_t{1} << 61;

// Reads microseconds with a fraction as nanoseconds, without doubles, whose rounding is too coarse for times that count
// from 1970.
std::int64_t nanoseconds(const JsonStream& json) {
  const std::string_view text = json.text();
  if (json.part() != JsonPart::number) json.fail("expected a time in microseconds");
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end != std::string_view::npos || text.size() > 40) {
    const double value = json.number() * 1000;
    if (!(value > -static_cast<double>(kMostNs) && value < static_cast<double>(kMostNs))) json.fail("is no time");
    return static_cast<std::int64_t>(value);
  }
  std::int64_t whole = 0, fraction = 0;
  std::int64_t scale = 100;
  bool is_fraction = false;
  for (const char c : text) {
    if (c == '.') {
      is_fraction = true;
    } else if (!is_fraction) {
      if (whole > kMostNs / 10000) json.fail("is no time");
      whole = whole * 10 + (c - '0');
    } else {
      fraction += scale * (c - '0');
      scale /= 10;
    }
  }
  return whole * 1000 + fraction;
}

void check_duration(const JsonStream& json, double seconds) {
  const std::string written = shortened(std::string(json.text())) + " us";
  const std::string problem = quantity_problem(seconds, Dimension::seconds, written, true);
  if (!problem.empty()) json.fail("a duration " + problem);
}

std::int64_t whole_number(const JsonStream& json) {
  const double value = json.number();
  constexpr double kMost = 9e15;
  return value > -kMost && value < kMost ? static_cast<std::int64_t>(value) : -1;
}

bool ends_with_synchronize(std::string_view name) {
  return name.ends_with("Synchronize") || name.ends_with("Synchronize_ptsz");
}

class EventReader {
 public:
  explicit EventReader(JsonStream& json) : json_(json) {}

  KinetoEvents read() {
    const JsonPart first = json_.next();
    if (first == JsonPart::begin_array) {
      read_events();
      json_.next();
      return std::move(events_);
    }
    if (first != JsonPart::begin_object) json_.fail("expected an object with traceEvents, or a list of events");
    bool has_events = false;
    while (json_.next() == JsonPart::key) {
      if (json_.text() == "traceEvents") {
        has_events = true;
        if (json_.next() != JsonPart::begin_array) json_.fail("expected a list of events");
        read_events();
      } else if (json_.text() == "distributedInfo") {
        read_distributed();
      } else if (json_.text() == "deviceProperties") {
        read_devices();
      } else {
        json_.skip();
      }
    }
    if (!has_events) json_.fail("has no traceEvents");
    json_.next();
    return std::move(events_);
  }

 private:
  // The content of one event, whatever the order of its keys.
  struct Event {
    std::string phase{}, category{}, name{};
    std::int64_t start_ns = 0, duration_ns = 0, process = 0, thread = 0;
    std::int64_t correlation = -1, external = -1, device = -1, stream = -1;
    bool has_start = false, has_duration = false, has_facts = false;
    CollectiveFacts facts{};
    FilePlace place{};
  };

  void read_distributed() {
    if (json_.next() != JsonPart::begin_object) return json_.skip();
    while (json_.next() == JsonPart::key) {
      const std::string key(json_.text());
      json_.next();
      if (key == "rank" && json_.part() == JsonPart::number) {
        events_.rank = rank_here();
        events_.has_rank = true;
      } else if (key == "world_size" && json_.part() == JsonPart::number) {
        events_.world = rank_here();
      } else {
        json_.skip();
      }
    }
    if (events_.world > 0 && events_.rank >= events_.world) {
      json_.fail(fmt::format("distributedInfo: rank {} of {} ranks, which are the ranks 0 to {}", events_.rank,
                             events_.world, events_.world - 1));
    }
  }

  int rank_here() const {
    constexpr std::int64_t kMostRanks = 1 << 20;
    const std::int64_t value = whole_number(json_);
    if (value < 0 || value > kMostRanks) json_.fail(fmt::format("expected a rank from 0 to {}", kMostRanks));
    return static_cast<int>(value);
  }

  void read_devices() {
    if (json_.next() != JsonPart::begin_array) return json_.skip();
    while (json_.next() != JsonPart::end_array) {
      if (json_.part() != JsonPart::begin_object) {
        json_.skip();
        continue;
      }
      while (json_.next() == JsonPart::key) {
        const bool is_name = json_.text() == "name";
        json_.next();
        if (is_name && events_.device.empty()) events_.device = json_.text();
        json_.skip();
      }
    }
  }

  void read_events() {
    while (json_.next() != JsonPart::end_array) {
      if (json_.part() != JsonPart::begin_object) json_.fail("expected an event");
      event_ = {};
      event_.place = json_.place();
      read_event();
      if (event_.phase == "X") keep();
    }
  }

  void read_event() {
    while (json_.next() == JsonPart::key) {
      const std::string_view key = json_.text();
      if (key == "args") {
        read_args();
        continue;
      }
      enum class Field : std::uint8_t { other, phase, category, name, start, duration, process, thread };
      const Field field = key == "ph"     ? Field::phase
                          : key == "cat"  ? Field::category
                          : key == "name" ? Field::name
                          : key == "ts"   ? Field::start
                          : key == "dur"  ? Field::duration
                          : key == "pid"  ? Field::process
                          : key == "tid"  ? Field::thread
                                          : Field::other;
      json_.next();
      switch (field) {
        case Field::phase:
          event_.phase = json_.text();
          break;
        case Field::category:
          event_.category = json_.text();
          break;
        case Field::name:
          event_.name = json_.text();
          break;
        case Field::start:
          event_.start_ns = nanoseconds(json_);
          event_.has_start = true;
          break;
        case Field::duration:
          event_.duration_ns = nanoseconds(json_);
          event_.has_duration = true;
          if (event_.duration_ns < 0) json_.fail("a duration is negative");
          check_duration(json_, static_cast<double>(event_.duration_ns) * 1e-9);
          break;
        case Field::process:
          event_.process = whole_number(json_);
          break;
        case Field::thread:
          event_.thread = whole_number(json_);
          break;
        case Field::other:
          break;
      }
      json_.skip();
    }
  }

  void read_args() {
    if (json_.next() != JsonPart::begin_object) return json_.skip();
    while (json_.next() == JsonPart::key) {
      const std::string key(json_.text());
      json_.next();
      if (key == "correlation") {
        event_.correlation = whole_number(json_);
      } else if (key == "External id" || key == "external id") {
        event_.external = whole_number(json_);
      } else if (key == "device") {
        event_.device = whole_number(json_);
      } else if (key == "stream") {
        event_.stream = whole_number(json_);
      } else if (key == "Input Dims" && is_call_of_collective()) {
        event_.facts.in_elements = std::max<std::int64_t>(event_.facts.in_elements, largest_operand());
        continue;
      } else if (key == "Input type" && is_call_of_collective()) {
        event_.facts.dtype = first_type();
        continue;
      } else {
        read_fact(key);
      }
      json_.skip();
    }
  }

  // In traces of older profilers, only the sizes of the host operation's operands are known.
  bool is_call_of_collective() const { return event_.name.starts_with("nccl:") || event_.name.starts_with("c10d::"); }

  // Elements of the largest operand among lists of sizes, which may be in lists themselves.
  std::int64_t largest_operand() {
    if (json_.part() != JsonPart::begin_array) {
      json_.skip();
      return -1;
    }
    std::int64_t most = -1, product = 1;
    bool has_sizes = false;
    while (json_.next() != JsonPart::end_array) {
      if (json_.part() == JsonPart::begin_array) {
        most = std::max(most, largest_operand());
      } else if (json_.part() == JsonPart::number) {
        constexpr std::int64_t kMostElements = std::int64_t{1} << 42;
        const std::int64_t size = std::clamp<std::int64_t>(whole_number(json_), 0, kMostElements);
        product = size == 0 ? 0 : std::min(product, kMostElements / size) * size;
        has_sizes = true;
      } else {
        json_.skip();
      }
    }
    return has_sizes ? std::max(most, product) : most;
  }

  // "float", "c10::BFloat16", "TensorList": the first that names a type.
  std::string first_type() {
    if (json_.part() != JsonPart::begin_array) {
      json_.skip();
      return "";
    }
    std::string type;
    while (json_.next() != JsonPart::end_array) {
      if (json_.part() != JsonPart::string) {
        json_.skip();
        continue;
      }
      std::string_view name = json_.text();
      if (name.starts_with("c10::")) name.remove_prefix(5);
      if (type.empty() && !name.empty() && name != "TensorList") type = name;
    }
    return type;
  }

  void read_fact(const std::string& key) {
    CollectiveFacts& facts = event_.facts;
    if (key == "Collective name") {
      facts.name = json_.text();
      event_.has_facts = true;
    } else if (key == "dtype") {
      facts.dtype = json_.text();
    } else if (key == "Process Group Ranks") {
      facts.ranks = json_.text();
    } else if (key == "In msg nelems") {
      facts.in_elements = whole_number(json_);
    } else if (key == "Out msg nelems") {
      facts.out_elements = whole_number(json_);
    } else if (key == "Group size") {
      facts.group_size = whole_number(json_);
    } else if (key == "Global rank start") {
      facts.first_rank = whole_number(json_);
    } else if (key == "Global rank stride") {
      facts.stride = whole_number(json_);
    } else if (key == "Src Rank") {
      facts.source = whole_number(json_);
    } else if (key == "Dst Rank") {
      facts.target = whole_number(json_);
    }
  }

  // The profiler puts the vendor of the driver before the word; its first versions did not.
  static bool is_call_of_driver(std::string_view category) {
    const std::string_view word = category.substr(category.find('_') + 1);
    return word == "runtime" || (word == "driver" && word != category);
  }

  void keep() {
    std::string category = event_.category;
    std::transform(category.begin(), category.end(), category.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_memory =
        category == "gpu_memcpy" || category == "gpu_memset" || category == "memcpy" || category == "memset";
    if (category == "kernel" || is_memory) return keep_work(is_memory);
    if (is_call_of_driver(category)) return keep_call();
    if (event_.name == "record_param_comms" && event_.has_facts && event_.external >= 0) {
      events_.facts_of_external[event_.external] = add_facts();
    }
    if (is_call_of_collective() && event_.external >= 0 && event_.facts.in_elements >= 0) {
      event_.facts.name = event_.name.substr(event_.name.rfind(':') + 1);
      events_.facts_of_external.try_emplace(event_.external, add_facts());
    }
    if (category == "user_annotation" && event_.name.starts_with("ProfilerStep")) keep_step();
  }

  // "ProfilerStep#12".
  void keep_step() {
    const std::string_view digits =
        std::string_view(event_.name).substr(std::min(event_.name.find('#'), event_.name.size() - 1) + 1);
    int number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    events_.first_step = events_.steps == 0 ? number : std::min(events_.first_step, number);
    ++events_.steps;
  }

  int add_facts() {
    events_.facts.push_back(event_.facts);
    return static_cast<int>(events_.facts.size()) - 1;
  }

  void keep_work(bool is_memory) {
    if (!event_.has_start || !event_.has_duration) {
      throw InputError({problem_at(json_.file(), event_.place, "an event of a device needs ts and dur")});
    }
    if (events_.works.size() >= kMostEvents) json_.fail("has more than 20 million kernels");
    KinetoEvents::Work work{.name = number_of(event_.name),
                            .start_ns = event_.start_ns,
                            .duration_ns = event_.duration_ns,
                            .correlation = event_.correlation,
                            .external = event_.external,
                            .device = event_.device >= 0 ? event_.device : event_.process,
                            .stream = event_.stream >= 0 ? event_.stream : event_.thread,
                            .is_memory = is_memory,
                            .place = event_.place};
    if (event_.has_facts) work.facts = add_facts();
    events_.works.push_back(work);
  }

  void keep_call() {
    const std::string_view name = event_.name;
    const bool synchronizes = ends_with_synchronize(name);
    const bool is_copy = name.find("Memcpy") != std::string_view::npos;
    if (!event_.has_start || (event_.correlation < 0 && !synchronizes)) return;
    using CallKind = KinetoEvents::Call::Kind;
    events_.calls.push_back({.start_ns = event_.start_ns,
                             .duration_ns = event_.duration_ns,
                             .correlation = event_.correlation,
                             .kind = synchronizes ? CallKind::synchronize
                                     : is_copy    ? CallKind::copy
                                                  : CallKind::launch});
  }

  int number_of(const std::string& name) {
    const auto [known, is_new] = numbers_.try_emplace(name, static_cast<int>(events_.names.size()));
    if (is_new) events_.names.push_back(name);
    return known->second;
  }

  JsonStream& json_;
  KinetoEvents events_;
  Event event_;
  std::unordered_map<std::string, int> numbers_;
};

}  // namespace

KinetoEvents read_kineto_events(JsonStream& json) {
  return EventReader(json).read();
}

}  // namespace tandem
