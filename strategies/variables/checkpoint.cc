#include "strategies/variables/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "strategies/base/errors.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/file_text.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

// The file holds the mark, the header's length (u64), the header (JSON), the data, and the CRC-32 of all these (u32).
// Numbers are little-endian.
constexpr std::string_view kMark = "TANDEMC1";
constexpr std::size_t kLengthBytes = 8, kChecksumBytes = 4, kStart = kMark.size() + kLengthBytes;

std::uint32_t checksum_of(const std::byte* data, std::size_t size) {
  boost::crc_32_type checksum;
  checksum.process_bytes(data, size);
  return checksum.checksum();
}

void append_number(std::string& bytes, std::uint64_t number, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
}

std::uint64_t number_at(const std::vector<std::byte>& bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number |= std::to_integer<std::uint64_t>(bytes.at(at + i)) << (8 * i);
  return number;
}

void write_checkpoint(const std::string& path, const std::string& bytes) {
  try {
    replace_file_in_one_step(path, bytes);
  } catch (const Error& error) {
    throw UnknownError(error.what());
  }
}

std::vector<std::byte> contents_of(const std::string& path) {
  const std::optional<std::string> text = file_text(path);
  if (!text) throw NotFoundError(fmt::format("{}: no such checkpoint", path));
  const auto* bytes = reinterpret_cast<const std::byte*>(text->data());
  return {bytes, bytes + text->size()};
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DataLossError(fmt::format("{}: damaged checkpoint: {}", path, what));
}

// The header of a checkpoint; discarded where it is none. It ends before the checksum.
nlohmann::json header_of(const std::vector<std::byte>& bytes) {
  const std::uint64_t length = number_at(bytes, kMark.size(), kLengthBytes);
  if (length > bytes.size() - kStart) return nlohmann::json::value_t::discarded;
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kStart;
  return nlohmann::json::parse(text, text + length, nullptr, false);
}

// The size of the whole file, as the header tells it; nothing where that makes no sense.
std::optional<std::size_t> stated_size(const std::vector<std::byte>& bytes) {
  const nlohmann::json header = header_of(bytes);
  if (!header.is_object() || !header.contains("bytes") || !header["bytes"].is_number_unsigned()) return {};
  return kStart + number_at(bytes, kMark.size(), kLengthBytes) + header["bytes"].get<std::size_t>() + kChecksumBytes;
}

// Throws unless the bytes are those that a save has written.
void check_whole(const std::string& path, const std::vector<std::byte>& bytes) {
  const auto* mark = reinterpret_cast<const std::byte*>(kMark.data());
  const std::size_t begun = std::min(bytes.size(), kMark.size());
  if (!std::equal(mark, mark + begun, bytes.begin())) damaged(path, fmt::format("it does not begin with {}", kMark));
  if (bytes.size() < kStart + kChecksumBytes) damaged(path, fmt::format("it is cut off after {} bytes", bytes.size()));
  const std::size_t end = bytes.size() - kChecksumBytes;
  if (checksum_of(bytes.data(), end) == number_at(bytes, end, kChecksumBytes)) return;
  const std::uint64_t header = number_at(bytes, kMark.size(), kLengthBytes);
  const std::optional<std::size_t> whole = stated_size(bytes);
  if (header > bytes.size() - kStart || (whole && *whole > bytes.size())) {
    damaged(path, fmt::format("it is cut off after {} bytes", bytes.size()));
  }
  damaged(path, "its checksum is wrong");
}

template <typename T>
double element_at(const std::byte* bytes, std::int64_t i) {
  T value;
  std::memcpy(&value, bytes + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

// Whether this worker is the chief or, in a cluster without one, task 0 of a job that computes.
bool leads(const Worker& worker) {
  const auto is_chief = [](const std::string& job) { return job == "chief" || job == "master"; };
  if (is_chief(worker.job())) return worker.task() == 0;
  const auto cluster = worker.cluster();
  if (std::ranges::any_of(cluster, [&](const WorkerSpec& spec) { return is_chief(spec.job); })) return false;
  return worker.task() == 0 && worker.job() != "ps" && worker.job() != "evaluator";
}

}  // namespace

void Checkpoint::require_outside_run(const std::string& call) {
  const Mode* mode = current_mode();
  if (!mode || (!mode->replica && !mode->update_replica)) return;
  throw RuntimeError(
      mode->replica
          ? fmt::format("{} is called inside run(), once for each replica; call it once, after run()", call)
          : fmt::format("{} is called inside update(), once for each component of a variable; call it once, after "
                        "update()",
                        call));
}

bool Checkpoint::writes() const {
  bool is_distributed = false, writes = true;
  for (const auto& [name, variable] : variables_) {
    if (variable.strategy == &default_strategy()) continue;
    is_distributed = true;
    writes = writes && variable.strategy->extended().should_checkpoint();
  }
  if (is_distributed) return writes;
  return has_strategy() ? get_strategy().extended().should_checkpoint() : leads(worker_);
}

void Checkpoint::add(const std::string& name, Saveable saveable) {
  if (!variables_.emplace(name, std::move(saveable)).second) {
    throw ValueError(fmt::format("a checkpoint has '{}' already", name));
  }
}

void Checkpoint::add(const std::string& name, const std::shared_ptr<Variable>& variable) {
  add(name, Saveable{variable->dtype(), variable->shape(), &variable->strategy(),
                     [variable] { return variable->saved_value(); },
                     [variable](const Tensor& saved) { variable->restore(saved); }});
}

void Checkpoint::add(const std::string& name, const ShardedVariable& variable) {
  add(name, Saveable{variable.dtype(), variable.shape(), &variable.variables().front()->strategy(),
                     [variable, this] { return variable.concatenated_on(worker_.cpu()); },
                     [variable](const Tensor& saved) { ShardedVariable(variable).assign(Value(saved)); }});
}

void Checkpoint::save(const std::string& path) const {
  require_outside_run(fmt::format("Checkpoint::save() of '{}'", path));
  nlohmann::json tensors = nlohmann::json::array();
  std::string data;
  for (const auto& [name, variable] : variables_) {
    const Tensor tensor = variable.saved();
    worker_.cpu().synchronize();
    if (!tensor.has_values()) throw RuntimeError("this engine carries no values: there is nothing to save");
    const auto dimensions = tensor.shape().dimensions();
    tensors.push_back({{"name", name},
                       {"dtype", std::string(name_of(variable.dtype))},
                       {"shape", std::vector<std::int64_t>(dimensions.begin(), dimensions.end())},
                       {"offset", data.size()}});
    data.append(static_cast<const char*>(tensor.data()), tensor.size_bytes());
  }
  if (!writes()) return;
  const std::string header = nlohmann::json{{"version", 1}, {"bytes", data.size()}, {"tensors", tensors}}.dump();
  std::string file(kMark);
  append_number(file, header.size(), kLengthBytes);
  file += header;
  file += data;
  append_number(file, checksum_of(reinterpret_cast<const std::byte*>(file.data()), file.size()), kChecksumBytes);
  write_checkpoint(path, file);
}

void Checkpoint::restore(const std::string& path) const {
  require_outside_run(fmt::format("Checkpoint::restore() of '{}'", path));
  const CheckpointReader reader(path);
  for (const auto& [name, variable] : variables_) {
    const CheckpointReader::Entry& entry = reader.entry(name);
    const bool has_shape = variable.has_any_shape || entry.shape == variable.shape;
    if (entry.dtype != variable.dtype || !has_shape) {
      throw ValueError(fmt::format("{}: '{}' is {} {}, and the variable is {} {}{}", path, name, name_of(entry.dtype),
                                   entry.shape.text(), name_of(variable.dtype), variable.shape.text(),
                                   variable.explanation.empty() ? "" : ": " + variable.explanation));
    }
  }
  for (const auto& [name, variable] : variables_) {
    const CheckpointReader::Entry& entry = reader.entry(name);
    const Tensor tensor = worker_.cpu().allocate(entry.dtype, entry.shape);
    if (tensor.has_values()) std::memcpy(tensor.data(), reader.bytes(entry), tensor.size_bytes());
    variable.restore(tensor);
  }
}

CheckpointReader::CheckpointReader(const std::string& path)
    : contents_(std::make_shared<const std::vector<std::byte>>(contents_of(path))) {
  const std::vector<std::byte>& bytes = *contents_;
  check_whole(path, bytes);
  const nlohmann::json header = header_of(bytes);
  if (!header.is_object() || header.value("version", 0) != 1) damaged(path, "it is of another version");
  const std::size_t first = kStart + number_at(bytes, kMark.size(), kLengthBytes), end = bytes.size() - kChecksumBytes;
  try {
    for (const nlohmann::json& tensor : header.at("tensors")) {
      const auto dimensions = tensor.at("shape").get<std::vector<std::int64_t>>();
      const std::optional<DType> dtype = dtype_from_name(tensor.at("dtype").get<std::string>());
      if (!dtype) damaged(path, "it has an unknown element type");
      const auto offset = tensor.at("offset").get<std::size_t>();
      Entry entry{*dtype, Shape(std::span<const std::int64_t>(dimensions)), first + offset};
      const std::size_t size = static_cast<std::size_t>(entry.shape.element_count()) * size_of(entry.dtype);
      if (first > end || offset > end - first || size > end - first - offset) damaged(path, "its data is cut off");
      entries_.emplace(tensor.at("name").get<std::string>(), entry);
    }
  } catch (const nlohmann::json::exception&) {
    damaged(path, "its header has another form");
  }
}

const CheckpointReader::Entry& CheckpointReader::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw NotFoundError(fmt::format("the checkpoint has no variable '{}'", name));
  return found->second;
}

std::function<double(std::int64_t)> CheckpointReader::initial_value(const std::string& name) const {
  const Entry& found = entry(name);
  return [contents = contents_, at = bytes(found), dtype = found.dtype](std::int64_t i) -> double {
    switch (dtype) {
      case DType::f32:
        return element_at<float>(at, i);
      case DType::f64:
        return element_at<double>(at, i);
      case DType::i32:
        return element_at<std::int32_t>(at, i);
      case DType::i64:
        return element_at<std::int64_t>(at, i);
      case DType::u8:
        return element_at<std::uint8_t>(at, i);
      default:
        throw TypeError(fmt::format("the host has no numbers of type {}", name_of(dtype)));
    }
  };
}

}  // namespace tandem
