#include "topologies/readers/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <numeric>

#include "topologies/base/strict_yaml.h"
#include "topologies/usual_latency.h"

namespace tandem {
namespace {

constexpr std::size_t kMostDevices = 1024;

struct Field {
  std::string text;
  int column = 0;
};
struct TextLine {
  int number = 0;
  std::vector<Field> fields{};
};

// Returns the line without escape sequences of terminals.
std::string plain(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0) ++i;
      continue;
    }
    if (line[i] != '\r') text += line[i];
  }
  return text;
}

// Splits at tabs if there are any, otherwise at blanks.
TextLine split(std::string_view raw, int number) {
  const std::string line = plain(raw);
  const bool has_tabs = line.find('\t') != std::string::npos;
  TextLine result{number, {}};
  std::string word;
  int begin = 1;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    const bool is_end = i == line.size() || line[i] == '\t' || (!has_tabs && line[i] == ' ');
    if (!is_end) {
      if (word.empty() && line[i] == ' ') continue;
      if (word.empty()) begin = static_cast<int>(i) + 1;
      word += line[i];
      continue;
    }
    while (!word.empty() && word.back() == ' ') word.pop_back();
    if (!word.empty()) result.fields.push_back({word, begin});
    word.clear();
  }
  return result;
}

bool is_device(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) && word.size() > prefix.size() &&
         std::all_of(word.begin() + static_cast<std::ptrdiff_t>(prefix.size()), word.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_header(const TextLine& line) {
  return !line.fields.empty() && is_device(line.fields.front().text, "GPU") &&
         (line.fields.size() == 1 || line.fields[1].text != "X") &&
         std::none_of(line.fields.begin(), line.fields.end(), [](const Field& field) { return field.text == "X"; });
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(split(text.substr(begin, end - begin), ++number));
    begin = end + 1;
  }
  return lines;
}

// How near two devices are, from near to far: near devices are joined first.
enum class Nearness : std::uint8_t { one_switch, switches, processor, system, itself };

struct Cell {
  Nearness nearness = Nearness::system;
  int nvlinks = 0;
};

class SmiReader {
 public:
  SmiReader(std::string_view text, const std::string& file, const ImportOptions& options)
      : file_(file), options_(options), lines_(lines_of(text)) {}

  ImportedTopology read() {
    read_matrix();
    problems_.throw_if_any();
    check_symmetry();
    problems_.throw_if_any();
    borrowed_ = borrow(options_, file_, nullptr);
    if (!borrowed_.gpu) {
      problem(
          header_line_, 1,
          "nvidia-smi topo -m tells neither the GPUs' product nor rates; give --gpu NAME, such as --gpu h100, or the "
          "machine with --complete-with NAME");
      problems_.throw_if_any();
    }
    build();
    for (const std::string& remark : borrowed_.remarks) notes_.push_back(file_ + ": " + remark);
    notes_.push_back(fmt::format("{}: assumed: GPUs are {}, and rates of PCIe, processors and NICs, as in {}", file_,
                                 borrowed_.gpu->name, borrowed_.name));
    return {std::move(topology_), std::move(notes_)};
  }

 private:
  void problem(int line, int column, std::string message) {
    problems_.add({file_, line, column, "", std::move(message)});
  }

  void read_matrix() {
    const auto header = std::find_if(lines_.begin(), lines_.end(), is_header);
    if (header == lines_.end()) return problem(1, 1, "no heading with GPU0 and the other devices");
    header_line_ = header->number;
    for (const Field& field : header->fields) {
      const std::string& word = field.text;
      if (word.starts_with("CPU") || word.starts_with("NUMA") || word == "GPU" || word.starts_with("GPU NUMA")) break;
      if (std::find(names_.begin(), names_.end(), word) != names_.end()) {
        return problem(header_line_, field.column, "a second column " + word);
      }
      names_.push_back(word);
      is_gpu_.push_back(is_device(word, "GPU"));
    }
    if (names_.size() > kMostDevices) return problem(header_line_, 1, "more than 1024 devices");
    cells_.assign(names_.size(), std::vector<Cell>(names_.size()));
    seen_.assign(names_.size(), false);
    for (auto line = header + 1; line != lines_.end(); ++line) {
      if (!line->fields.empty()) read_row(*line);
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!seen_[i] && is_gpu_[i]) problem(header_line_, 1, "no row for " + names_[i]);
    }
  }

  void read_row(const TextLine& line) {
    const auto name = std::find(names_.begin(), names_.end(), line.fields.front().text);
    const std::string& first = line.fields.front().text;
    const bool is_row = line.fields.size() > 1 && (is_device(first, "GPU") || is_device(first, "NIC"));
    if (name == names_.end() && is_row) problem(line.number, 1, "a row for " + first + ", which has no column");
    if (name == names_.end()) return;  // the legends
    const auto row = static_cast<std::size_t>(name - names_.begin());
    if (line.fields.size() < names_.size() + 1) {
      return problem(line.number, 1,
                     fmt::format("{} has {} cells, expected {}", *name, line.fields.size() - 1, names_.size()));
    }
    if (seen_[row]) return problem(line.number, 1, "a second row for " + *name);
    seen_[row] = true;
    for (std::size_t column = 0; column < names_.size(); ++column) {
      const Field& field = line.fields[column + 1];
      const auto cell = cell_of(field.text);
      if (cell && (cell->nearness == Nearness::itself) == (row == column)) {
        cells_[row][column] = *cell;
      } else {
        problem(line.number, field.column,
                fmt::format("{} to {}: expected {}, found '{}'", *name, names_[column],
                            row == column ? "X" : "NV<number>, PIX, PXB, PHB, NODE or SYS", field.text));
      }
    }
  }

  static std::optional<Cell> cell_of(const std::string& text) {
    static const std::map<std::string, Nearness> kWords{{"X", Nearness::itself},       {"PIX", Nearness::one_switch},
                                                        {"PXB", Nearness::switches},   {"PHB", Nearness::processor},
                                                        {"NODE", Nearness::processor}, {"SYS", Nearness::system},
                                                        {"SOC", Nearness::system}};
    if (const auto known = kWords.find(text); known != kWords.end()) return Cell{known->second, 0};
    if (!is_device(text, "NV") || text.size() > 5) return std::nullopt;
    const int links = std::stoi(text.substr(2));
    if (links == 0) return std::nullopt;
    return Cell{Nearness::system, links};  // nothing is stated of the path beside NVLink
  }

  void check_symmetry() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Cell& one = cells_[i][j];
        const Cell& other = cells_[j][i];
        if (!seen_[i] || !seen_[j] || (one.nearness == other.nearness && one.nvlinks == other.nvlinks)) continue;
        problem(header_line_, 1, fmt::format("{} and {} tell different paths to each other", names_[j], names_[i]));
      }
    }
  }

  // --- Building ---

  const Cell& cell(std::size_t i, std::size_t j) const { return seen_[i] ? cells_[i][j] : cells_[j][i]; }

  // Groups devices that are at least this near, and returns for each device the first one of its group. GPUs joined by
  // NVLink show nothing of their PCIe paths; those with the same nearest NICs, or with none, belong to one processor.
  std::vector<std::size_t> groups(Nearness nearness) const {
    std::vector<std::size_t> first(names_.size());
    std::iota(first.begin(), first.end(), 0);
    const auto root = [&](std::size_t i) {
      while (first[i] != i) i = first[i];
      return i;
    };
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (cell(i, j).nvlinks > 0 || cell(i, j).nearness > nearness) continue;
        const auto [low, high] = std::minmax({root(i), root(j)});
        first[high] = low;
      }
    }
    for (std::size_t i = 0; i < names_.size(); ++i) first[i] = root(i);
    return first;
  }

  NodeIndex add(const std::string& name, NodeKind kind) {
    Node node;
    node.name = "w0." + name;
    node.kind = kind;
    node.worker = 0;
    if (kind == NodeKind::gpu) node.device = borrowed_.gpu;
    if (kind == NodeKind::cpu) node.device = borrowed_.cpu;
    if (kind == NodeKind::nic) node.port = borrowed_.port;
    return topology_.add_node(std::move(node));
  }

  void build() {
    const auto by_cpu = affinity_groups(groups(Nearness::processor));
    const auto by_switches = groups(Nearness::switches);
    const auto by_switch = groups(Nearness::one_switch);
    std::map<std::size_t, NodeIndex> cpus;
    for (const std::size_t group : by_cpu) {
      if (!cpus.contains(group)) cpus[group] = add("cpu" + std::to_string(cpus.size()), NodeKind::cpu);
    }
    std::vector<NodeIndex> devices;
    int gpus = 0, nics = 0;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      devices.push_back(is_gpu_[i] ? add("gpu" + std::to_string(gpus++), NodeKind::gpu)
                                   : add("nic" + std::to_string(nics++), NodeKind::nic));
    }
    std::map<std::size_t, NodeIndex> upper, lower;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      NodeIndex above = cpus[by_cpu[i]];
      if (size_of(by_switches, i) > 1) above = switch_of(by_switches[i], upper, above);
      if (size_of(by_switch, i) < size_of(by_switches, i)) above = switch_of(by_switch[i], lower, above);
      topology_.add_link(above, devices[i], borrowed_.pcie);
    }
    for (auto one = cpus.begin(); one != cpus.end(); ++one) {
      for (auto other = std::next(one); other != cpus.end(); ++other) {
        topology_.add_link(one->second, other->second, borrowed_.numa);
      }
    }
    add_nvlinks(devices);
    if (borrowed_.machine) {
      topology_.facts().p2p = p2p_as_in(*borrowed_.machine, topology_);
      topology_.facts().nvlink_domain = nvlink_domain_as_in(*borrowed_.machine, topology_);
    }
    if (!topology_.facts().p2p) {
      notes_.push_back(
          fmt::format("{}: assumed: GPUs do not reach each other's memory, as in {}", file_, borrowed_.name));
    }
  }

  static std::ptrdiff_t size_of(const std::vector<std::size_t>& groups, std::size_t member) {
    return std::count(groups.begin(), groups.end(), groups[member]);
  }

  // Returns the switch of a group. It is made below `above` when it is first needed.
  NodeIndex switch_of(std::size_t group, std::map<std::size_t, NodeIndex>& switches, NodeIndex above) {
    const auto [known, is_new] = switches.emplace(group, 0);
    if (!is_new) return known->second;
    known->second = add("pcie" + std::to_string(switches_++), NodeKind::pcie_switch);
    topology_.add_link(above, known->second, borrowed_.pcie);
    return known->second;
  }

  // GPUs that are only joined by NVLink, and that no NIC assigns to a processor, belong to the processor that their row
  // states as CPU affinity.
  std::vector<std::size_t> affinity_groups(std::vector<std::size_t> group) const {
    std::map<std::string, std::size_t> by_affinity;
    std::map<std::size_t, std::size_t> merged;
    for (const TextLine& line : lines_) {
      if (line.fields.size() < names_.size() + 2) continue;
      const auto name = std::find(names_.begin(), names_.end(), line.fields.front().text);
      if (name == names_.end()) continue;
      const std::size_t own = group[static_cast<std::size_t>(name - names_.begin())];
      const auto [known, is_new] = by_affinity.emplace(line.fields[names_.size() + 1].text, own);
      if (!is_new) merged[own] = known->second;
    }
    for (std::size_t& one : group) {
      for (auto next = merged.find(one); next != merged.end() && next->second < one; next = merged.find(one)) {
        one = next->second;
      }
    }
    return group;
  }

  std::shared_ptr<const LinkModel> nvlink_model(int links, NodeKind other_end) {
    auto& model = nvlinks_[links];
    if (model) return model;
    auto made = std::make_shared<LinkModel>();
    made->kind = LinkKind::nvlink;
    made->id = "nvlink_x" + std::to_string(links);
    made->bandwidth_bytes_per_s = {links * borrowed_.nvlink_bytes_per_s, Provenance::vendor,
                                   fmt::format("NV{} in {}; NVIDIA/nccl 2.30.7 src/graph/topo.h", links, file_), "", 0};
    made->latency_s = {usual_latency_s(LinkKind::nvlink, NodeKind::gpu, other_end), Provenance::assumed,
                       "not in the file", "", 0};
    return model = made;
  }

  // NV<k> means k links to NVSwitches if a GPU would otherwise have more links than it can; if not, k links of the
  // pair.
  void add_nvlinks(const std::vector<NodeIndex>& devices) {
    int most = 0, least_sum = 0;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      int sum = 0;
      for (std::size_t j = 0; j < names_.size(); ++j) {
        sum += i == j ? 0 : cell(i, j).nvlinks;
        most = std::max(most, i == j ? 0 : cell(i, j).nvlinks);
      }
      least_sum = std::max(least_sum, sum);
    }
    if (most == 0) return;
    const bool has_switch = borrowed_.nvlinks > 0 && least_sum > borrowed_.nvlinks;
    if (has_switch) {
      const NodeIndex nvswitch = add("nvswitch0", NodeKind::nvswitch);
      for (std::size_t i = 0; i < names_.size(); ++i) {
        int links = 0;
        for (std::size_t j = 0; j < names_.size(); ++j) links = std::max(links, i == j ? 0 : cell(i, j).nvlinks);
        if (links > 0) topology_.add_link(nvswitch, devices[i], nvlink_model(links, NodeKind::nvswitch));
      }
      return;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (cell(i, j).nvlinks > 0)
          topology_.add_link(devices[j], devices[i], nvlink_model(cell(i, j).nvlinks, NodeKind::gpu));
      }
    }
  }

  const std::string& file_;
  const ImportOptions& options_;
  std::vector<TextLine> lines_;
  Diagnostics problems_{};
  int header_line_ = 0;
  std::vector<std::string> names_{};
  std::vector<bool> is_gpu_{}, seen_{};
  std::vector<std::vector<Cell>> cells_{};
  Borrowed borrowed_{};
  Topology topology_{std::filesystem::path(file_).stem().string()};
  std::map<int, std::shared_ptr<const LinkModel>> nvlinks_{};
  int switches_ = 0;
  std::vector<std::string> notes_{};
};

}  // namespace

bool is_nvidia_smi(std::string_view text) {
  const auto lines = lines_of(text.substr(0, std::min<std::size_t>(text.size(), 1 << 16)));
  const auto header = std::find_if(lines.begin(), lines.end(), is_header);
  if (header == lines.end()) return false;
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](const TextLine& line) { return !line.fields.empty(); });
  if (header == first && header->fields.size() > 1 && is_device(header->fields[1].text, "GPU")) return true;
  return std::any_of(header, lines.end(), [](const TextLine& line) {
    return line.fields.size() > 1 && is_device(line.fields.front().text, "GPU") && line.fields[1].text == "X";
  });
}

ImportedTopology import_nvidia_smi(std::string_view text, const std::string& file, const ImportOptions& options) {
  return SmiReader(text, file, options).read();
}

}  // namespace tandem
