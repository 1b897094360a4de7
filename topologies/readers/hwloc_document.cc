#include "topologies/readers/hwloc_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/base/xml_checks.h"

namespace tandem {
namespace {

using Object = pugi::xml_node;

constexpr std::uint64_t kMostIndex = 1 << 20;       // of a processor or a NUMA node: a set has a bit for each below it
constexpr std::uint64_t kMostObjects = 4096;        // in a matrix
constexpr const char* kMatrix = "NVLinkBandwidth";  // hwloc's name

// Where an object may be: hwloc has four kinds of trees, which may be nested only in certain ways.
enum class ObjectPlace : std::uint8_t { normal, memory, io, misc };

std::optional<ObjectPlace> place_of(std::string_view type) {
  static const std::map<std::string_view, ObjectPlace> kTypes{
      {"System", ObjectPlace::normal},   {"Machine", ObjectPlace::normal},  {"Package", ObjectPlace::normal},
      {"Socket", ObjectPlace::normal},   {"Die", ObjectPlace::normal},      {"Core", ObjectPlace::normal},
      {"PU", ObjectPlace::normal},       {"Group", ObjectPlace::normal},    {"Cache", ObjectPlace::normal},
      {"L1Cache", ObjectPlace::normal},  {"L2Cache", ObjectPlace::normal},  {"L3Cache", ObjectPlace::normal},
      {"L4Cache", ObjectPlace::normal},  {"L5Cache", ObjectPlace::normal},  {"L1iCache", ObjectPlace::normal},
      {"L2iCache", ObjectPlace::normal}, {"L3iCache", ObjectPlace::normal}, {"NUMANode", ObjectPlace::memory},
      {"MemCache", ObjectPlace::memory}, {"Bridge", ObjectPlace::io},       {"PCIDev", ObjectPlace::io},
      {"OSDev", ObjectPlace::io},        {"Misc", ObjectPlace::misc}};
  const auto found = kTypes.find(type);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

bool is_cache(std::string_view type) {
  return type.ends_with("Cache");
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns whether a text matches a pattern: 'x' is a hex digit, 'd' a decimal digit, and any other character itself.
bool is_like(std::string_view text, std::string_view pattern) {
  return text.size() == pattern.size() && std::equal(text.begin(), text.end(), pattern.begin(), [](char c, char want) {
           const bool is_digit = c >= '0' && c <= '9';
           const bool is_hex = is_digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
           return want == 'x' ? is_hex : want == 'd' ? is_digit : c == want;
         });
}

// Returns a set of processors, such as "0x00000003,0x0000ffff": words of 32 bits, the lowest first. Returns nothing for
// any other text.
std::optional<std::vector<std::uint32_t>> set_of(std::string_view text) {
  std::vector<std::uint32_t> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one.starts_with("0x")) one.remove_prefix(2);
    std::uint32_t word = 0;
    const auto result = std::from_chars(one.data(), one.data() + one.size(), word, 16);
    const bool is_empty = one.empty() && !words.empty();  // ",," are words of 0
    if (!is_empty && (result.ec != std::errc{} || result.ptr != one.data() + one.size())) return std::nullopt;
    words.push_back(word);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

bool is_inside(const std::vector<std::uint32_t>& inner, const std::vector<std::uint32_t>& outer) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if ((inner[i] & ~(i < outer.size() ? outer[i] : 0U)) != 0) return false;
  }
  return true;
}

// Whether a device is in a PCI domain of more than 16 bits, as the disks behind Intel's VMD are. hwloc drops those.
bool has_wide_domain(const Object& object) {
  const std::string_view bus = object.attribute("pci_busid").value();
  const std::size_t digits = bus.find(':');
  return digits > 4 && digits <= 8 && is_like(bus.substr(digits - 4), "xxxx:xx:xx.x");
}

class HwlocDocument {
 public:
  HwlocDocument(std::string_view text, const std::string& file) : places_(text), file_(file) {
    check_xml(text, file, read_);
  }

  std::string checked() {
    const Object topology = read_.child("topology");
    Object made = made_.append_child("topology");
    const std::string version = topology.attribute("version").value();
    is_new_ = version.starts_with("3.");
    if (!version.empty() && !version.starts_with("1.") && !version.starts_with("2.") && !is_new_) {
      problem(topology, "version: hwloc's forms 1 to 3 are read, found '" + shortened(version) + "'");
    }
    is_old_ = !version.starts_with("2.") && !is_new_;
    if (!version.empty()) made.append_attribute("version") = is_new_ ? "2.0" : version.c_str();
    const auto roots = topology.children("object");
    if (roots.begin() == roots.end()) problem(topology, "has no object");
    for (const Object& root : roots) add_root(root, made);
    if (!has_processor_ && problems_.empty()) problem(topology, "has no processor (PU)");
    problems_.throw_if_any();
    for (const char* name : {"distances2", "distances2hetero"}) {
      for (const Object& matrix : topology.children(name)) add_matrix(matrix, made);
    }
    problems_.throw_if_any();
    std::ostringstream out;
    made_.save(out, "", pugi::format_raw | pugi::format_no_declaration);
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" + out.str();
  }

 private:
  using Set = std::vector<std::uint32_t>;

  void problem(const Object& element, std::string message, std::string_view attribute = "") {
    problems_.add(problem_at(file_, places_.of(element, attribute), std::move(message), element.name()));
  }
  void bad_attribute(const Object& object, const char* name, const std::string& expected) {
    problem(object,
            fmt::format("{}: expected {}, found '{}'", name, expected, shortened(object.attribute(name).value())),
            name);
  }

  void add_root(const Object& root, Object& made) {
    const std::string_view type = root.attribute("type").value();
    if (root.previous_sibling("object")) return problem(root, "a second machine in one file");
    const bool is_root = type == "Machine" || type == "System" || (is_old_ && type == "NUMANode");
    if (!is_root) return bad_attribute(root, "type", "Machine for the outermost object");
    add_object(root, made, ObjectPlace::normal, nullptr);
  }

  void add_object(const Object& object, Object& parent, ObjectPlace above, const Set* outer) {
    const std::string type = object.attribute("type").value();
    auto place = place_of(type);
    if (is_old_ && type == "NUMANode") place = ObjectPlace::normal;  // format 1 nests processors in it
    if (!place) return bad_attribute(object, "type", "a type of hwloc's, such as Package");
    if (*place == ObjectPlace::misc) return;
    if (*place == ObjectPlace::io && has_wide_domain(object)) return;
    const bool is_below = *place == ObjectPlace::io || above == ObjectPlace::normal || *place == above;
    if (!is_below || std::string_view(object.parent().attribute("type").value()) == "PU") {
      return problem(object, fmt::format("a {} inside of a {}", type, object.parent().attribute("type").value()));
    }
    if (is_cache(type)) return add_below_cache(object, parent, type, *place, outer);
    Object made = parent.append_child("object");
    made.append_attribute("type") = type.c_str();
    copy_numbers(object, made);
    if (*place == ObjectPlace::io) {
      check_device(object, type);
      copy(object, made,
           {"name", "subtype", "bridge_type", "depth", "bridge_pci", "pci_busid", "pci_type", "pci_link_speed",
            "osdev_type"});
      if (is_new_ && type == "OSDev") made.attribute("osdev_type") = old_device_type(object);
    }
    const Set* own = *place == ObjectPlace::io ? outer : check_sets(object, made, type, outer);
    if (own == nullptr) return;
    copy_models(object, made);
    const Set kept = *own;  // the next object's set replaces it
    for (const Object& child : object.children("object")) add_object(child, made, *place, &kept);
  }

  // Caches are left out: what is inside belongs to the object around them. hwloc wants figures of them that not every
  // version writes in the same way.
  void add_below_cache(const Object& cache, Object& parent, const std::string& type, ObjectPlace place,
                       const Set* outer) {
    Object unused = unused_.append_child("object");
    copy_numbers(cache, unused);
    const Set* own = check_sets(cache, unused, type, outer);
    if (own == nullptr) return;
    const Set kept = *own;
    for (const Object& child : cache.children("object")) add_object(child, parent, place, &kept);
  }

  static void copy(const Object& from, Object& to, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (const auto attribute = from.attribute(name)) to.append_attribute(name) = attribute.value();
    }
  }

  void copy_numbers(const Object& object, Object& made) {
    for (const char* name : {"os_index", "gp_index"}) {
      const auto attribute = object.attribute(name);
      if (!attribute) continue;
      const auto value = number_of(attribute.value());
      const bool is_set = std::string_view(name) == "os_index";
      if (!value || (is_set && *value >= kMostIndex && place_of(object.attribute("type").value()) != ObjectPlace::io)) {
        bad_attribute(object, name, "a whole number" + (is_set ? fmt::format(" below {}", kMostIndex) : ""));
        continue;
      }
      if (!is_set && !objects_.insert(*value).second)
        problem(object, fmt::format("a second object of gp_index {}", *value));
      made.append_attribute(name) = attribute.value();
    }
  }

  // Returns the processors of an object, which must be among those of the object around it.
  const Set* check_sets(const Object& object, Object& made, const std::string& type, const Set* outer) {
    for (const char* name : {"complete_cpuset", "allowed_cpuset", "nodeset", "complete_nodeset", "allowed_nodeset"}) {
      const std::string_view text = object.attribute(name).value();
      if (!text.empty() && set_of(text)) copy(object, made, {name});
      if (!text.empty() && !set_of(text) && text != "0xf...f") bad_attribute(object, name, "a set such as 0x000000ff");
    }
    const auto set = set_of(object.attribute("cpuset").value());
    if (!set) {
      bad_attribute(object, "cpuset", "a set such as 0x000000ff");
      return nullptr;
    }
    if (outer != nullptr && !is_inside(*set, *outer)) {
      problem(object, fmt::format("cpuset: {} has processors that the object around it has not",
                                  shortened(object.attribute("cpuset").value())));
      return nullptr;
    }
    copy(object, made, {"cpuset"});
    if (!made.attribute("complete_cpuset")) {  // libhwloc 2.9 compares those of siblings without asking
      made.append_attribute("complete_cpuset") = object.attribute("cpuset").value();
    }
    if (type == "PU") check_processor(object, *set);
    if (type == "NUMANode") copy_memory(object, made);
    set_ = *set;
    return &set_;
  }

  void copy_memory(const Object& object, Object& made) {
    if (!object.attribute("local_memory")) return;
    const std::string_view text = object.attribute("local_memory").value();
    const auto bytes = number_of(text);
    if (!bytes) return bad_attribute(object, "local_memory", "a whole number of bytes");
    if (const std::string wrong = quantity_problem(static_cast<double>(*bytes), Dimension::bytes, text, true);
        !wrong.empty()) {
      return problem(object, "local_memory: " + wrong);
    }
    copy(object, made, {"local_memory"});
  }

  void check_processor(const Object& object, const Set& set) {
    has_processor_ = true;
    const std::uint64_t index = number_of(object.attribute("os_index").value()).value_or(kMostIndex);
    Set only(static_cast<std::size_t>(index / 32) + 1, 0);
    only.back() = std::uint32_t{1} << (index % 32);
    if (index >= kMostIndex || !is_inside(set, only) || !is_inside(only, set)) {
      return problem(object, "a PU needs an os_index, and that number alone in its cpuset");
    }
    if (!processors_.insert(index).second) problem(object, fmt::format("a second PU of os_index {}", index));
  }

  // Form 3 has a bit for each kind of device of the operating system, where form 2 has a number.
  static int old_device_type(const Object& object) {
    static const std::vector<std::pair<std::uint64_t, int>> kKinds{{32, 3}, {16, 2}, {4, 1}, {8, 5}, {64, 4}, {2, 6}};
    const std::uint64_t bits = number_of(object.attribute("osdev_type").value()).value_or(0);
    for (const auto& [bit, kind] : kKinds) {
      if ((bits & bit) != 0) return kind;
    }
    return 0;
  }

  void check_device(const Object& object, const std::string& type) {
    const auto text = [&](const char* name) { return std::string_view(object.attribute(name).value()); };
    const bool is_host_bridge = type == "Bridge" && text("bridge_type").starts_with("0-");
    if (type == "OSDev") {
      if (!number_of(text("osdev_type"))) bad_attribute(object, "osdev_type", "a number");
      return;
    }
    if (!is_host_bridge && !is_like(text("pci_busid"), "xxxx:xx:xx.x")) {
      bad_attribute(object, "pci_busid", "a bus id such as 0000:c1:00.0");
    }
    const std::string_view ids = text("pci_type");  // newer versions add the programming interface
    const bool has_ids =
        is_like(ids, "xxxx [xxxx:xxxx] [xxxx:xxxx] xx") || is_like(ids, "xxxx [xxxx:xxxx] [xxxx:xxxx] xx xx");
    if (!is_host_bridge && !has_ids) {
      bad_attribute(object, "pci_type", "ids such as '0302 [10de:20b2] [10de:1463] a1'");
    }
    if (!text("pci_link_speed").empty()) check_speed(object, text("pci_link_speed"));
    if (type != "Bridge") return;
    if (!is_like(text("bridge_type"), "d-d")) bad_attribute(object, "bridge_type", "0-1 or 1-1");
    if (!is_like(text("bridge_pci"), "xxxx:[xx-xx]")) bad_attribute(object, "bridge_pci", "buses such as 0000:[01-04]");
  }

  void check_speed(const Object& object, std::string_view text) {
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = result.ec == std::errc{} && result.ptr == text.data() + text.size();
    if (is_whole && quantity_problem(value * 1e9, Dimension::bytes_per_second, text, true).empty()) return;
    bad_attribute(object, "pci_link_speed",
                  fmt::format("GB/s, 0 or from {}", limits_text(Dimension::bytes_per_second)));
  }

  // hwloc keeps the names of processors and GPUs in pairs of names and values.
  static void copy_models(const Object& object, Object& made) {
    for (const Object& info : object.children("info")) {
      const std::string_view name = info.attribute("name").value();
      if (name != "CPUModel" && name != "GPUModel") continue;
      Object kept = made.append_child("info");
      copy(info, kept, {"name", "value"});
    }
  }

  static std::vector<std::string> words_of(const Object& matrix, const char* lists) {
    std::vector<std::string> words;
    for (const Object& list : matrix.children(lists)) {
      std::istringstream in(list.child_value());
      for (std::string word; in >> word;) words.push_back(word);
    }
    return words;
  }

  void add_matrix(const Object& matrix, Object& made) {
    if (std::string_view(matrix.attribute("name").value()) != kMatrix) return;
    const auto count = number_of(matrix.attribute("nbobjs").value());
    if (!count || *count < 2 || *count > kMostObjects)
      return bad_attribute(matrix, "nbobjs", "a number from 2 to 4096");
    const auto indexes = words_of(matrix, "indexes"), values = words_of(matrix, "u64values");
    if (indexes.size() != *count || values.size() != *count * *count) {
      return problem(matrix, fmt::format("expected {} indexes and {} values, found {} and {}", *count, *count * *count,
                                         indexes.size(), values.size()));
    }
    for (const std::string& index : indexes) {
      const auto number = number_of(std::string_view(index).substr(index.find(':') + 1));  // "OSDev:7", or "7"
      if (number && objects_.contains(*number)) continue;
      return problem(matrix, fmt::format("no object of gp_index {}", shortened(index)));
    }
    for (const std::string& value : values) {
      const auto rate = number_of(value);
      if (!rate) return problem(matrix, "expected a rate in MB/s, found '" + shortened(value) + "'");
      const std::string wrong =
          quantity_problem(static_cast<double>(*rate) * 1e6, Dimension::bytes_per_second, value + " MB/s", true);
      if (!wrong.empty()) return problem(matrix, wrong);
    }
    const std::string_view indexing = matrix.attribute("indexing").value();
    const bool is_of_several_types = std::string_view(matrix.name()) == "distances2hetero";  // has no other indexing
    if (indexing != "gp" && !(is_of_several_types && indexing.empty())) return bad_attribute(matrix, "indexing", "gp");
    Object kept = made.append_child(matrix.name());
    copy(matrix, kept, {"type", "nbobjs", "kind", "name", "indexing"});
    add_list(kept, "indexes", indexes);
    add_list(kept, "u64values", values);
  }

  static void add_list(Object& matrix, const char* name, const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + " ";
    Object list = matrix.append_child(name);
    list.append_attribute("length") = text.size();
    list.append_child(pugi::node_pcdata).set_value(text.c_str());
  }

  XmlPlaces places_;
  const std::string& file_;
  pugi::xml_document read_{}, made_{}, unused_{};
  Diagnostics problems_{};
  std::set<std::uint64_t> objects_{}, processors_{};
  Set set_{};
  bool has_processor_ = false, is_old_ = false, is_new_ = false;
};

}  // namespace

std::string checked_hwloc_xml(std::string_view text, const std::string& file) {
  return HwlocDocument(text, file).checked();
}

}  // namespace tandem
