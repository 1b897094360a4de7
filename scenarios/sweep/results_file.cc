#include "scenarios/sweep/results_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "reports/base/json_fields.h"
#include "reports/run/report_json.h"
#include "reports/sweep/sweep_json.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kKind = "sweep_results";

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string head_of(const SweepIdentity& identity) {
  Json json = document_of(kKind);
  json["scenario"] = identity.scenario;
  json["scenario_hash"] = identity.hash;
  return one_line(json);
}

[[noreturn]] void refuse(const fs::path& file, int line, std::string message) {
  throw InputError({{.file = file.string(), .line = line, .column = 1, .path = "", .message = std::move(message)}});
}

void check_head(std::string_view line, const fs::path& file, const SweepIdentity& identity) {
  const Json head = Json::parse(line, nullptr, false);
  const auto text = [&](const char* key) {
    return head.is_object() && head.contains(key) && head[key].is_string() ? head[key].get<std::string>() : "";
  };
  if (text("kind") != kKind) refuse(file, 1, "is no results file of a sweep; choose another one with --results");
  if (text("scenario_hash") != identity.hash) {
    refuse(
        file, 1,
        fmt::format("has results of another scenario: of '{}' ({}), not of '{}' as it is now ({}); choose another file "
                    "with --results, or remove this one",
                    text("scenario"), text("scenario_hash"), identity.scenario, identity.hash));
  }
  if (text("tandem_version") != version()) {
    refuse(file, 1, fmt::format("has results of tandem {}; this is {}", text("tandem_version"), version()));
  }
}

std::string contents_of(const fs::path& file, std::uint64_t from) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(from));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string line_of(const SweptPoint& point, const std::string& files_hash) {
  Json json = point_to_json(point);
  if (!files_hash.empty()) json["files_hash"] = files_hash;
  return one_line(json);
}

StoredPoint point_of_line(std::string_view line, const std::string& file, int number) {
  const JsonOrigin origin(file, line, number);
  const Json json = origin.parse();
  Reading reading(json, origin);
  const JsonField& field = reading.root();
  StoredPoint stored{.point = point_from_json(field), .files = {}};
  if (const JsonField files = field.optional("files_hash"); files.present()) stored.files = files.text();
  reading.finish();
  return stored;
}

StoredPoints read_results(const fs::path& file, const SweepIdentity& identity) {
  return ResultsReader(file, identity).more();
}

StoredPoints ResultsReader::more() {
  StoredPoints stored;
  struct stat status {};
  if (stat(file_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return stored;
  if (status.st_ino != file_id_ || static_cast<std::uint64_t>(status.st_size) < whole_bytes_) whole_bytes_ = 0;
  if (whole_bytes_ == 0) lines_ = 0;
  file_id_ = status.st_ino;
  const std::string text = contents_of(file_, whole_bytes_);
  std::size_t at = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const std::string_view line(text.data() + at, end - at);
    if (++lines_ == 1) {
      check_head(line, file_, identity_);
    } else if (line.starts_with(kLineOfPlans)) {
      stored.of_plans.push_back({std::string(line), file_.string(), lines_});
    } else {
      stored.points.push_back(point_of_line(line, file_.string(), lines_));
    }
    at = end + 1;
  }
  if (lines_ == 0 && !head_of(identity_).starts_with(text)) check_head(text, file_, identity_);
  stored.is_cut = at < text.size();
  whole_bytes_ += at;
  stored.whole_bytes = whole_bytes_;
  return stored;
}

namespace {

bool lock_within(std::chrono::milliseconds patience, int descriptor, const std::function<void()>& tick) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto begin = std::chrono::steady_clock::now();
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() - begin >= patience) return false;
    if (tick) tick();
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

ResultsFile::ResultsFile(fs::path file, const SweepIdentity& identity, std::chrono::milliseconds patience,
                         const std::function<void()>& tick)
    : file_(std::move(file)) {
  stored_ = read_results(file_, identity);
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error(fmt::format("cannot write {}: {}", file_.string(), std::strerror(errno)));
  struct stat status {};
  const bool is_regular = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  try {
    if (is_regular && !lock_within(patience, descriptor_, tick)) {
      throw Error(fmt::format("cannot write {}: {}", file_.string(),
                              errno == EWOULDBLOCK ? "another process is writing to it" : std::strerror(errno)));
    }
    if (is_regular) stored_ = read_results(file_, identity);  // what was written before the lock
    if (is_regular && stored_.is_cut && ftruncate(descriptor_, static_cast<off_t>(stored_.whole_bytes)) != 0) {
      throw Error(fmt::format("cannot write {}: {}", file_.string(), std::strerror(errno)));
    }
    if (stored_.whole_bytes == 0) add(head_of(identity));
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

ResultsFile::~ResultsFile() {
  close(descriptor_);
}

void ResultsFile::add(const std::string& line) {
  append_whole(descriptor_, line, file_.string());
}

}  // namespace tandem
