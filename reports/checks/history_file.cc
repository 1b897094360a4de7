// Files of histories: one JSON object a line.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>

#include "reports/base/json_fields.h"
#include "reports/checks/history.h"
#include "reports/run/report_json.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKind = "launch";
constexpr std::size_t kMostProblems = 10;  // lines that are shown

[[noreturn]] void history_fails(const char* what, const fs::path& file) {
  throw Error(fmt::format("cannot {} {}: {}", what, file.string(), std::strerror(errno)));
}

void check_is_file(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw InputError(
      {{.file = file.string(), .path = "", .message = "is not a file; a history is a file of JSON lines"}});
}

// An open file with a lock that other processes respect. Closes and unlocks it at the end of its life.
class LockedFile {
 public:
  LockedFile(const fs::path& file, int flags, int lock) : file_(file) {
    constexpr mode_t kMode = 0644;
    descriptor_ = open(file.c_str(), flags | O_CLOEXEC, kMode);
    if (descriptor_ < 0) history_fails((flags & O_CREAT) != 0 ? "write" : "read", file);
    while (flock(descriptor_, lock) != 0) {
      if (errno != EINTR) history_fails("lock", file);
    }
  }
  ~LockedFile() { close(descriptor_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  off_t size() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) history_fails("read", file_);
    return status.st_size;
  }

  // Adds lines at the end of the file. If they cannot all be written, restores the file.
  void append(std::string_view text) const {
    const off_t before = size();
    check_ends_in_line(before);
    append_whole(descriptor_, text, file_.string());
    if (fsync(descriptor_) != 0) take_back(before);
  }

  // Calls `take` with each line and its number. For an incomplete last line, `ends` is false.
  template <typename Take>
  void read_lines(const Take& take) const {
    std::array<char, 1 << 16> part{};
    std::string rest;
    int number = 0;
    for (ssize_t count = 0; (count = read(descriptor_, part.data(), part.size())) != 0;) {
      if (count < 0) history_fails("read", file_);
      rest.append(part.data(), static_cast<std::size_t>(count));
      std::size_t begin = 0;
      for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
        take(std::string_view(rest).substr(begin, end - begin), ++number, true);
      }
      rest.erase(0, begin);
    }
    if (!rest.empty()) take(rest, ++number, false);
  }

 private:
  void check_ends_in_line(off_t size) const {
    char last = '\n';
    if (size > 0 && pread(descriptor_, &last, 1, size - 1) != 1) history_fails("read", file_);
    if (last == '\n') return;
    int cut = 0;
    if (lseek(descriptor_, 0, SEEK_SET) != 0) history_fails("read", file_);
    read_lines([&](std::string_view, int number, bool) { cut = number; });
    throw InputError({{file_.string(), cut, 1, "", "its last line is cut; remove it"}});
  }

  [[noreturn]] void take_back(off_t size) const {
    const int reason = errno;
    if (ftruncate(descriptor_, size) != 0) history_fails("shorten", file_);
    errno = reason;
    history_fails("write", file_);
  }

  fs::path file_;
  int descriptor_ = -1;
};

JsonField::Json launch_to_json(const HistoryLaunch& launch) {
  JsonField::Json json = {{"schema_version", kReportSchemaVersion}, {"kind", kKind}};
  json["scenario"] = launch.scenario;
  json["scenario_hash"] = launch.scenario_hash;
  json["engine"] = launch.engine;
  json["machine"] = launch.machine;
  json["commit"] = launch.commit;
  json["date"] = launch.date;
  json["tandem_version"] = launch.tandem_version;
  json["step_time_ns"] = step_time_to_json(launch.step_time);
  json["disturbed"] = launch.disturbed;
  json["verdict"] = name_of(launch.verdict);
  if (launch.accepted) json["accepted"] = true;
  if (launch.exact) json["exact"] = true;
  return json;
}

void check_launch_kind(const JsonField& root) {
  const JsonField kind = root.required("kind");
  if (const std::string word = kind.text(); kind.present() && word != kKind) {
    kind.error("is '" + word + "'; a line of a history is a launch, as `tandem check --history` writes it");
  }
  const JsonField version = root.required("schema_version");
  const std::int64_t schema = version.whole_number();
  if (version.is_count() && schema != kReportSchemaVersion) {
    version.error(fmt::format("version {} is not known; this Tandem reads version {}", schema, kReportSchemaVersion));
  }
}

HistoryLaunch read_launch(const JsonField& root) {
  const JsonField time = root.required("step_time_ns");
  HistoryLaunch launch{.scenario = root.required("scenario").text(),
                       .scenario_hash = root.required("scenario_hash").text(),
                       .engine = root.required("engine").text(),
                       .machine = root.required("machine").text(),
                       .commit = root.required("commit").text(),
                       .date = root.required("date").text(),
                       .tandem_version = root.required("tandem_version").text(),
                       .step_time = step_time_from_json(time),
                       .disturbed = root.required("disturbed").boolean(),
                       .verdict = verdict_from_json(root.required("verdict"))};
  if (const JsonField accepted = root.optional("accepted"); accepted.present()) launch.accepted = accepted.boolean();
  if (const JsonField exact = root.optional("exact"); exact.present()) launch.exact = exact.boolean();
  for (const auto& [name, value] : {std::pair("mean", launch.step_time.mean), {"median", launch.step_time.median}}) {
    if (const JsonField figure = time.optional(name); figure.present() && value == 0) {
      figure.error("must be greater than 0");
    }
  }
  return launch;
}

bool is_merge_mark(std::string_view line) {
  return line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>") ||
         line.starts_with("|||||||");
}

// Finds out whether a file is a history without reading each line's JSON, which would take long for a long history.
class LineShapes {
 public:
  explicit LineShapes(std::string file) : file_(std::move(file)) {}

  void see(std::string_view line, int number, bool ends) {
    if (!ends) {
      cut_ = number;
    } else if (is_merge_mark(line)) {
      add(number, "is a mark of a merge that git could not do; remove it, and keep the lines of both sides");
    } else if (!line.starts_with('{') || !line.ends_with('}') || line.find(kQuotedKind) == std::string_view::npos) {
      is_other_ = is_other_ || number == 1;
      add(number, "is no line of a history, as `tandem check --history` writes it");
    }
  }

  std::vector<Diagnostic> problems() const {
    if (is_other_) {
      return {
          problem_at(file_, kBeginning, "is no history; `tandem check --history` begins one if there is no such file")};
    }
    std::vector<Diagnostic> all = problems_;
    if (cut_ > 0 && all.size() < kMostProblems) {
      all.push_back({.file = file_,
                     .line = cut_,
                     .column = 1,
                     .path = "",
                     .message = "is cut: it does not end in a newline; remove the line"});
    }
    return all;
  }

 private:
  static constexpr std::string_view kQuotedKind = "\"launch\"";

  void add(int number, std::string message) {
    if (problems_.size() >= kMostProblems) return;
    problems_.push_back({.file = file_, .line = number, .column = 1, .path = "", .message = std::move(message)});
  }

  std::string file_;
  std::vector<Diagnostic> problems_;
  int cut_ = 0;            // the number of a line without an end
  bool is_other_ = false;  // the first line is none of a history
};

// Reads a line, or adds what is wrong with it to `problems`.
void read_line(std::string_view line, int number, const std::string& file, std::vector<HistoryLaunch>& launches,
               std::vector<Diagnostic>& problems) {
  try {
    const JsonOrigin origin(file, line, number);
    const JsonField::Json document = origin.parse();
    Reading reading(document, origin);
    check_launch_kind(reading.root());
    reading.finish();
    HistoryLaunch launch = read_launch(reading.root());
    reading.finish();
    launches.push_back(std::move(launch));
  } catch (const InputError& error) {
    problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
}

// The last lines that have one of some texts: of each text at most kMostOfText.
class LastLines {
 public:
  explicit LastLines(std::span<const std::string> texts) : texts_(texts), lines_(texts.size()) {}

  void add(std::string_view line, int number) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (line.find(texts_[i]) == std::string_view::npos) continue;
      if (lines_[i].size() == kMostOfText) lines_[i].pop_front();
      lines_[i].emplace_back(number, line);
      return;
    }
  }

  // In the order of the file.
  std::map<int, std::string> take() {
    std::map<int, std::string> all;
    for (auto& lines : lines_) {
      for (auto& [number, line] : lines) all.emplace(number, std::move(line));
    }
    return all;
  }

 private:
  std::span<const std::string> texts_;
  std::vector<std::deque<std::pair<int, std::string>>> lines_;  // by text, with their numbers
};

}  // namespace

std::vector<HistoryLaunch> read_history(const fs::path& file, std::span<const std::string> texts) {
  check_is_file(file);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  std::vector<HistoryLaunch> launches;
  std::vector<Diagnostic> problems;
  LastLines last(texts);
  const auto read = [&](std::string_view line, int number) {
    if (problems.size() < kMostProblems) read_line(line, number, file.string(), launches, problems);
  };
  LineShapes shapes(file.string());
  LockedFile(file, O_RDONLY, LOCK_SH).read_lines([&](std::string_view line, int number, bool ends) {
    shapes.see(line, number, ends);
    if (texts.empty() && ends) {
      read(line, number);
    } else if (ends) {
      last.add(line, number);
    }
  });
  if (auto found = shapes.problems(); !found.empty()) throw InputError(std::move(found));
  for (const auto& [number, line] : last.take()) read(line, number);
  if (!problems.empty()) throw InputError(std::move(problems));
  return launches;
}

void append_history(const fs::path& file, std::span<const HistoryLaunch> launches) {
  check_is_file(file);
  std::string text;
  for (const HistoryLaunch& launch : launches) {
    text += launch_to_json(launch).dump(-1, ' ', false, JsonField::Json::error_handler_t::replace) + "\n";
  }
  LockedFile(file, O_RDWR | O_APPEND | O_CREAT, LOCK_EX).append(text);
}

void check_appendable(const fs::path& file) {
  check_is_file(file);
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path written = fs::exists(file, ignored) ? file : folder;
  if (access(written.c_str(), W_OK) != 0) history_fails("write", file);
}

}  // namespace tandem
