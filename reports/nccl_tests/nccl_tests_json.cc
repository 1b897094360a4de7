#include "reports/nccl_tests/nccl_tests_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "reports/nccl_tests/nccl_tests_rows.h"
#include "topologies/base/json_stream.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

void check_json(std::string_view text, const std::string& file) {
  JsonStream json(file, text);
  if (json.next() != JsonPart::begin_object) json.fail("expected a JSON object");
  while (json.next() != JsonPart::end) {
    if (json.part() == JsonPart::number) json.finite_number();
  }
}

namespace nccl_tests {
namespace {

constexpr int kNewestVersion = 3;

// "0" or 22703 -> "2.27.3"
std::string version_text(std::int64_t code) {
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

class JsonReader {
 public:
  JsonReader(const YamlReader& root, const std::string& file, const CollectiveTable& stated, Diagnostics& problems)
      : root_(root), file_(file), stated_(stated), problems_(problems) {}

  std::vector<CollectiveTable> read() {
    if (!root_.is_map() || (!root_.has("results") && !root_.has("config"))) {
      root_.error("is no output of nccl-tests: it has neither 'config' nor 'results'");
      return {};
    }
    const YamlReader version = root_.required("version");
    if (version.present()) {
      const std::int64_t number = version.whole_number(0, 1 << 20);
      if (number > kNewestVersion) {
        version.error(
            fmt::format("version {} of nccl-tests' JSON is not known (known: 1 to {})", number, kNewestVersion));
      }
    }
    if (!problems_.empty()) return {};
    read_devices();
    for (const YamlReader& result : root_.required("results").list()) read_result(result);
    if (builder_ && problems_.empty()) end_table();
    if (tables_.empty() && problems_.empty()) root_.required("results").error("holds no results");
    return std::move(tables_);
  }

 private:
  void read_devices() {
    const auto arguments = root_.optional("args").list();
    if (!arguments.empty()) operation_ = operation_of_test(arguments.front().text());
    if (const YamlReader version = root_.optional("nccl_version"); version.is_scalar()) {
      if (const std::int64_t code = version.whole_number(0, 100000000); code > 0) version_ = version_text(code);
    }
    const YamlReader config = root_.optional("config");
    const std::int64_t of_thread = config.optional("ngpus").whole_number(1, 1 << 16, 1);
    const std::int64_t of_process = of_thread * config.optional("nthreads").whole_number(1, 1 << 16, 1);
    // The first device of each process is listed. Older versions have the list beside the configuration.
    YamlReader list = config.optional("devices");
    if (!list.present()) list = root_.optional("devices");
    const auto processes = list.list();
    for (const YamlReader& process : processes) hosts_.insert(process.optional("hostname").text(""));
    const std::int64_t devices = of_process * std::max<std::int64_t>(1, std::ssize(processes));
    if (devices >= kMostRanks) {
      return config.error(fmt::format("{} processes with {} devices each: more than {} devices", processes.size(),
                                      of_process, kMostRanks - 1));
    }
    devices_per_process_ = static_cast<int>(of_process);
    devices_ = processes.empty() ? 0 : static_cast<int>(devices);
    if (!config.present()) devices_per_process_ = 0;
  }

  void start(int line) {
    builder_.emplace(file_, problems_);
    CollectiveTable& table = builder_->table();
    table.line = line;
    table.operation = operation_;
    table.devices = devices_;
    table.nodes = static_cast<int>(hosts_.size());
    table.devices_per_process = devices_per_process_;
    table.nccl_version = version_;
  }

  void end_table() {
    tables_.push_back(builder_->finished(stated_));
    builder_.reset();
  }

  void read_result(const YamlReader& result) {
    CollectiveRow row;
    row.bytes = result.required("size").whole_number(0, kMostBytes);
    row.count = result.optional("count").whole_number(0, kMostBytes);
    const std::string dtype = result.required("type").text();
    const std::string redop = result.optional("redop").text("");
    const int root = root_of(result.optional("root"));
    const auto out_of_place = figures(result.optional("out_of_place"), row);
    const auto in_place = figures(result.optional("in_place"), row);
    if (!out_of_place && !in_place && row.bytes > 0) result.error("has neither out_of_place nor in_place");
    if (const YamlReader algorithm = result.optional("algorithm"); algorithm.is_scalar())
      row.algorithm = algorithm.text("");
    row.line = result.line();
    if (!problems_.empty()) return;
    if (!builder_) start(row.line);
    if (builder_->begins_again(row.bytes, dtype, redop, root)) {
      end_table();
      start(row.line);
    }
    CollectiveTable& table = builder_->table();
    table.dtype = dtype;
    table.redop = redop;
    table.root = root;
    const Place place{result.line(), result.column()};
    builder_->add(std::move(row), out_of_place, in_place, place);
  }

  // A number in a text, "    -1".
  static int root_of(const YamlReader& root) {
    if (!root.present()) return -1;
    const std::string text = root.text();
    const auto begin = text.find_first_not_of(' ');
    if (begin == text.npos) return -1;
    int value = -1;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data() + begin, end, value).ptr != end) root.error("expected a rank or -1");
    return value;
  }

  static std::optional<Figures> figures(const YamlReader& group, CollectiveRow& row) {
    if (!group.is_map()) {
      if (group.present() && group.kind() != YamlKind::null) group.error("expected an object or null");
      return {};
    }
    const YamlReader time = group.has("cpu_time") ? group.optional("cpu_time") : group.required("time");
    Figures read{.time_us = time.number({.above = 0}),
                 .algbw = bandwidth(group.required("alg_bw")),
                 .busbw = bandwidth(group.required("bus_bw"))};
    report(time, time_problem(read.time_us, text_of(time)));
    if (const YamlReader wrong = group.optional("nwrong"); wrong.is_scalar()) {
      row.wrong = std::max(row.wrong.value_or(0), wrong_elements(wrong.number({.least = 0})));
    }
    return read;
  }

  static double bandwidth(const YamlReader& stated) {
    const double gb_per_s = stated.number({.least = 0});
    report(stated, bandwidth_problem(gb_per_s, text_of(stated)));
    return gb_per_s;
  }
  static std::string text_of(const YamlReader& stated) {
    return stated.is_scalar() ? shortened(stated.node()->text) : "";
  }
  static void report(const YamlReader& stated, const std::string& problem) {
    if (!problem.empty()) stated.error(problem);
  }

  const YamlReader& root_;
  const std::string& file_;
  const CollectiveTable& stated_;
  Diagnostics& problems_;
  std::vector<CollectiveTable> tables_;
  std::optional<TableBuilder> builder_;
  std::string operation_;
  std::string version_;
  int devices_ = 0;
  int devices_per_process_ = 0;
  std::set<std::string> hosts_;
};

}  // namespace

std::vector<CollectiveTable> read_json(std::string_view text, const std::string& file, const CollectiveTable& stated) {
  check_json(text, file);
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  std::vector<CollectiveTable> tables = JsonReader(root, file, stated, problems).read();
  problems.throw_if_any();
  return tables;
}

}  // namespace nccl_tests
}  // namespace tandem
