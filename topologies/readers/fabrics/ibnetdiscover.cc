#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

#include "topologies/readers/fabric_description.h"

namespace tandem {
namespace {

// The rate of four lanes in Gb/s: InfiniBand Trade Association, data rates of each generation.
struct Speed {
  std::string_view word;
  double gigabits;
};
constexpr std::array<Speed, 9> kSpeeds{{{"SDR", 8},
                                        {"DDR", 16},
                                        {"QDR", 32},
                                        {"FDR10", 40},
                                        {"FDR", 54.5},
                                        {"EDR", 100},
                                        {"HDR", 200},
                                        {"NDR", 400},
                                        {"XDR", 800}}};

// Returns the rate of a word such as "4xNDR" in bytes/s; nothing for any other word.
std::optional<double> rate_of(std::string_view word) {
  const auto at = word.find('x');
  if (at == std::string_view::npos) return std::nullopt;
  int width = 0;
  const auto result = std::from_chars(word.data(), word.data() + at, width);
  if (result.ec != std::errc{} || result.ptr != word.data() + at) return std::nullopt;
  if (width != 1 && width != 2 && width != 4 && width != 8 && width != 12) return std::nullopt;
  for (const Speed& speed : kSpeeds) {
    if (speed.word == word.substr(at + 1)) return speed.gigabits * width / 4 * 1e9 / 8;
  }
  return std::nullopt;
}

std::string_view between(std::string_view line, char open, char close, std::size_t& at) {
  const std::size_t begin = line.find(open, at);
  const std::size_t end = begin == std::string_view::npos ? begin : line.find(close, begin + 1);
  if (end == std::string_view::npos) return {};
  at = end + 1;
  return line.substr(begin + 1, end - begin - 1);
}

struct IbPort {
  int number = 0;
  std::string peer{};
  int peer_number = 0;
  double bytes_per_s = 0;
  std::string word{};  // "4xNDR"
  int line = 0;
};
struct IbNode {
  bool is_switch = false, is_router = false;
  std::string guid{}, description{};
  int line = 0;
  std::vector<IbPort> ports{};
};

class IbReader {
 public:
  IbReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  FabricDescription read() {
    int number = 0;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      std::string_view line = text_.substr(begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      read_line(line, number);
    }
    check_cables();
    problems_.throw_if_any();
    return describe();
  }

 private:
  void problem(int line, const std::string& message, int column = 1) {
    if (++problem_count_ <= 100) problems_.add({file_, line, column, "", message});
  }

  void read_line(std::string_view line, int number) {
    if (line.empty() || line.front() == '#') return;
    if (line.starts_with("Chassis") || line.starts_with("Non-Chassis") || line.starts_with("ibwarn:")) return;
    if (line.starts_with("Switch") || line.starts_with("Ca") || line.starts_with("Rt")) return read_node(line, number);
    if (line.front() == '[') return read_port(line, number);
    if (line.find('=') == std::string_view::npos) problem(number, "expected a node, a port or key=value");
  }

  // Switch  40 "S-000000000000aa00"   # "leaf1" base port 0 lid 4 lmc 0
  void read_node(std::string_view line, int number) {
    IbNode node;
    node.is_switch = line.starts_with("Switch");
    node.is_router = line.starts_with("Rt");
    node.line = number;
    std::size_t at = 0;
    node.guid = between(line, '"', '"', at);
    const std::size_t comment = line.find('#', at);
    if (comment != std::string_view::npos) at = comment;
    node.description = between(line, '"', '"', at);
    const std::size_t digit = line.find_first_of("-0123456789");
    if (digit == std::string_view::npos || line[digit] == '-' || digit > line.find('"')) {
      return problem(number, "expected the number of ports before the node's id");
    }
    if (node.guid.empty()) return problem(number, "expected the node's id in quotes, such as \"S-000000000000aa00\"");
    if (!by_guid_.emplace(node.guid, nodes_.size()).second) return problem(number, "a second node " + node.guid);
    nodes_.push_back(std::move(node));
  }

  // [1]     "H-000000000000bb00"[1](bb01)   # "node1 mlx5_0" lid 7 4xNDR
  void read_port(std::string_view line, int number) {
    if (nodes_.empty()) return problem(number, "a port before the first node");
    IbPort port;
    port.line = number;
    std::size_t at = 0;
    const auto own = number_in(between(line, '[', ']', at));
    std::size_t quote = at;
    port.peer = between(line, '"', '"', quote);
    std::size_t peer_at = quote;
    const auto other = number_in(between(line, '[', ']', peer_at));
    if (!own || !other || port.peer.empty()) return problem(number, "expected [port] \"peer\"[port]");
    port.number = *own;
    port.peer_number = *other;
    std::size_t word_at = line.find('#', peer_at);
    std::size_t behind = word_at == std::string_view::npos ? peer_at : word_at;
    if (word_at != std::string_view::npos) between(line, '"', '"', behind);
    for (std::size_t begin = behind; begin < line.size();) {
      const std::size_t start = line.find_first_not_of(" \t", begin);
      if (start == std::string_view::npos) break;
      const std::size_t end = std::min(line.find_first_of(" \t", start), line.size());
      const std::string_view word = line.substr(start, end - start);
      begin = end;
      const auto rate = rate_of(word);
      if (!rate) continue;
      port.bytes_per_s = *rate;
      port.word = word;
    }
    if (port.bytes_per_s == 0) return problem(number, "no width and speed such as 4xHDR at the end of the line");
    nodes_.back().ports.push_back(std::move(port));
  }

  static std::optional<int> number_in(std::string_view text) {
    int value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
    return value;
  }

  // Both ends list each cable, and must agree.
  void check_cables() {
    if (nodes_.empty()) problem(1, "no switch and no host");
    std::map<std::pair<std::string_view, int>, const IbPort*> ends;
    for (const IbNode& node : nodes_) {
      for (const IbPort& port : node.ports) {
        if (!ends.emplace(std::pair<std::string_view, int>{node.guid, port.number}, &port).second) {
          problem(port.line, fmt::format("a second cable at port {} of {}", port.number, node.guid));
        }
      }
    }
    for (const IbNode& node : nodes_) {
      for (const IbPort& port : node.ports) {
        if (!by_guid_.contains(port.peer)) continue;
        const auto back = ends.find({port.peer, port.peer_number});
        const bool agrees =
            back == ends.end() || (back->second->peer == node.guid && back->second->peer_number == port.number &&
                                   back->second->bytes_per_s == port.bytes_per_s);
        if (!agrees) {
          problem(port.line, fmt::format("port {} of {} and port {} of {} tell different cables", port.number,
                                         node.guid, port.peer_number, port.peer));
        }
      }
    }
  }

  FabricDescription describe() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].is_switch) continue;
      switches_[i] = fabric_.switches.size();
      fabric_.switches.push_back(nodes_[i].description.empty() ? nodes_[i].guid : nodes_[i].description);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const IbPort& port : nodes_[i].ports) {
        const auto peer = by_guid_.find(port.peer);
        if (peer == by_guid_.end()) {
          ++unknown_;
        } else if (nodes_[i].is_switch) {
          add_cable(i, port, peer->second);
        } else if (switches_.contains(peer->second)) {
          add_host(nodes_[i], port, switches_[peer->second]);
        }
      }
    }
    note_left_out();
    return std::move(fabric_);
  }

  // A cable between switches, once, though both list it.
  void add_cable(std::size_t from, const IbPort& port, std::size_t to) {
    const bool is_listed = lists(nodes_[to], port.peer_number);
    if (!switches_.contains(to)) {
      one_sided_ += is_listed ? 0 : 1;
    } else if (!is_listed || std::pair(from, port.number) < std::pair(to, port.peer_number)) {
      fabric_.cables.push_back({switches_[from], switches_[to], port.bytes_per_s, port.word + " in " + file_});
    }
  }

  void add_host(const IbNode& node, const IbPort& port, std::size_t at) {
    if (node.is_router || is_aggregation(node)) {
      ++(node.is_router ? routers_ : aggregations_);
      return;
    }
    const auto blank = node.description.find(' ');
    const std::string host = node.description.empty() ? node.guid : node.description.substr(0, blank);
    const auto [known, is_new] = hosts_.emplace(host, fabric_.hosts.size());
    if (is_new) fabric_.hosts.push_back(host);
    const std::string device = blank == std::string::npos ? node.guid : node.description.substr(blank + 1);
    fabric_.ports.push_back({known->second, fmt::format("{}/{:03}", device, port.number), at, port.bytes_per_s,
                             port.word + " in " + file_});
  }

  void note_left_out() {
    const auto note = [this](int count, std::string_view what) {
      if (count > 0) fabric_.notes.push_back(fmt::format("left out: {} ({})", what, count));
    };
    note(unknown_, "ends of cables to nodes that the file does not list");
    note(one_sided_, "ports of switches to hosts that do not list them");
    note(routers_, "ports of routers to other subnets");
    note(aggregations_, "ports of aggregation nodes, with which switches reduce");
  }

  // A switch that reduces (SHARP) has a node of its own for that.
  static bool is_aggregation(const IbNode& node) {
    return node.description.find("Aggregation Node") != std::string::npos;
  }
  static bool lists(const IbNode& node, int port) {
    return std::any_of(node.ports.begin(), node.ports.end(), [port](const IbPort& one) { return one.number == port; });
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics problems_{};
  int problem_count_ = 0;
  std::vector<IbNode> nodes_{};
  std::map<std::string, std::size_t, std::less<>> by_guid_{};
  FabricDescription fabric_{};
  std::map<std::size_t, std::size_t> switches_{};  // from the node's number to the fabric's
  std::map<std::string, std::size_t> hosts_{};
  int unknown_ = 0, one_sided_ = 0, aggregations_ = 0, routers_ = 0;
};

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  for (const std::string_view mark : {"switchguid=0x", "caguid=0x", "\nSwitch\t", "\nCa\t"}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return text.starts_with("Switch\t") || text.starts_with("Ca\t");
}

FabricDescription parse_ibnetdiscover(std::string_view text, const std::string& file) {
  return IbReader(text, file).read();
}

}  // namespace tandem
