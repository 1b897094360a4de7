#include "strategies/training/checkpoint_state.h"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "strategies/base/errors.h"
#include "strategies/variables/file_text.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

constexpr std::string_view kLatest = "model_checkpoint_path", kKept = "all_model_checkpoint_paths",
                           kSaved = "all_model_checkpoint_timestamps", kPreserved = "last_preserved_timestamp";

constexpr std::string_view kChecksum = "# CRC-32 of the following lines: ";

std::string checksum_line(std::string_view lines) {
  boost::crc_32_type checksum;
  checksum.process_bytes(lines.data(), lines.size());
  return fmt::format("{}{:08x}\n", kChecksum, checksum.checksum());
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// Returns the text between the quotes, or nothing if the value is no quoted text.
std::optional<std::string> unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return {};
  std::string text;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] == '"') return i + 1 == value.size() ? std::optional(text) : std::nullopt;
    if (value[i] == '\\' && ++i == value.size()) return {};
    text += value[i];
  }
  return {};
}

std::optional<double> number_in(std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) return {};
  return number;
}

// Reads one line after another.
class StateReader {
 public:
  explicit StateReader(std::string file) : file_(std::move(file)) {}

  // Refuses lines that are not those that were written.
  void check(std::string_view text) {
    if (!text.starts_with(kChecksum)) return;
    line_ = 1;
    const std::size_t end = text.find('\n');
    if (end == text.npos) damaged("it is cut off");
    if (checksum_line(text.substr(end + 1)) != text.substr(0, end + 1)) damaged("its checksum is wrong");
    line_ = 0;
  }

  void take(std::string_view line) {
    ++line_;
    if (line.empty() || line.front() == '#') return;
    const auto colon = line.find(": ");
    if (colon == line.npos) damaged("a line is 'key: value'");
    const std::string_view key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == kLatest) {
      if (!state_.latest.empty()) damaged(fmt::format("{} is there twice", kLatest));
      state_.latest = name(value);
    } else if (key == kKept) {
      state_.kept.push_back({.name = name(value)});
    } else if (key == kSaved) {
      times_.push_back(time(value));
    } else if (key == kPreserved) {
      state_.last_preserved_s = time(value);
    } else {
      damaged(fmt::format("unknown key '{}' ({}, {}, {}, {})", key, kLatest, kKept, kSaved, kPreserved));
    }
  }

  CheckpointState state() {
    if (state_.latest.empty()) damaged(fmt::format("it has no {}", kLatest));
    if (!times_.empty() && times_.size() != state_.kept.size()) {
      damaged(fmt::format("{} checkpoints have {} timestamps", state_.kept.size(), times_.size()));
    }
    for (std::size_t i = 0; i < times_.size(); ++i) state_.kept[i].saved_s = times_[i];
    return state_;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw DataLossError(fmt::format("{}:{}: damaged state of checkpoints: {}", file_, line_, what));
  }
  std::string name(std::string_view value) const {
    const std::optional<std::string> text = unquoted(value);
    if (!text || text->empty()) damaged("a checkpoint's name is in double quotes");
    return *text;
  }
  double time(std::string_view value) const {
    const std::optional<double> number = number_in(value);
    if (!number) damaged(fmt::format("'{}' is no timestamp", value));
    return *number;
  }

  std::string file_;
  int line_ = 0;
  CheckpointState state_;
  std::vector<double> times_;
};

}  // namespace

std::string state_file_of(const std::string& directory) {
  return (std::filesystem::path(directory) / "checkpoint").string();
}

std::optional<CheckpointState> read_checkpoint_state(const std::string& directory) {
  const std::string name = state_file_of(directory);
  const std::optional<std::string> text = file_text(name);
  if (!text) return {};
  StateReader reader(name);
  reader.check(*text);
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) reader.take(line);
  return reader.state();
}

void write_checkpoint_state(const std::string& directory, const CheckpointState& state) {
  std::string text = fmt::format("{}: {}\n", kLatest, quoted(state.latest));
  for (const KeptCheckpoint& kept : state.kept) text += fmt::format("{}: {}\n", kKept, quoted(kept.name));
  for (const KeptCheckpoint& kept : state.kept) text += fmt::format("{}: {}\n", kSaved, kept.saved_s);
  text += fmt::format("{}: {}\n", kPreserved, state.last_preserved_s);
  try {
    replace_file_in_one_step(state_file_of(directory), checksum_line(text) + text);
  } catch (const Error& error) {
    throw UnknownError(error.what());
  }
}

void remove_checkpoint_state(const std::string& directory) {
  std::error_code error;
  std::filesystem::remove(state_file_of(directory), error);
  if (error) throw UnknownError(fmt::format("cannot delete {}: {}", state_file_of(directory), error.message()));
}

}  // namespace tandem
