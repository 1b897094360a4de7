// What scenarios that are read one after the other share, each part made once: topologies, models, data, traces.
//
// Threads: one at a time; any for a const one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>

namespace tandem {

struct YamlNode;

// Returns a value as one line, "{cluster: {node: hgx-h100, workers: 2}}". Equal values have equal texts.
std::string text_of(const YamlNode& value);

class SharedParts {
 public:
  // Returns the part of this type and text, or null where there is none yet.
  template <typename Part>
  std::shared_ptr<const Part> find(const std::string& text) const {
    const auto found = kept_.find(Key{typeid(Part), text});
    return found == kept_.end() ? nullptr : std::static_pointer_cast<const Part>(found->second);
  }

  // Adds a part, which the next settle(true) keeps and settle(false) drops: a part of a scenario with mistakes would
  // hide them from the next one.
  template <typename Part>
  void add(const std::string& text, std::shared_ptr<const Part> part) {
    new_[Key{typeid(Part), text}] = std::move(part);
  }
  void settle(bool is_right);

  // Returns the part of this text; where there is none, adds what `make` returns, unless it is null.
  template <typename Part, typename Make>
  std::shared_ptr<const Part> get(const std::string& text, Make make) {
    std::shared_ptr<const Part> part = find<Part>(text);
    if (part) return part;
    part = make();
    if (part) add(text, part);
    return part;
  }

 private:
  using Key = std::pair<std::type_index, std::string>;
  using Parts = std::map<Key, std::shared_ptr<const void>>;
  Parts kept_, new_;
};

}  // namespace tandem
