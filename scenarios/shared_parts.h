// Topologies and models that scenarios which are read one after the other share, each made once.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "strategies/model/model.h"
#include "topologies/topology.h"

namespace tandem {

struct YamlNode;

// Returns a value as one line, "{cluster: {node: hgx-h100, workers: 2}}". Equal values have equal texts.
std::string text_of(const YamlNode& value);

class SharedParts {
 public:
  // Return the part of this text, or null where there is none yet.
  std::shared_ptr<const Topology> topology(const std::string& text) const;
  std::shared_ptr<const Model> model(const std::string& text) const;

  // Add a part, which the next settle(true) keeps and settle(false) drops: a part of a scenario with mistakes would
  // hide them from the next one.
  void add(const std::string& text, std::shared_ptr<const Topology> topology);
  void add(const std::string& text, std::shared_ptr<const Model> model);
  void settle(bool is_right);

 private:
  struct Parts {
    std::map<std::string, std::shared_ptr<const Topology>> topologies;
    std::map<std::string, std::shared_ptr<const Model>> models;
  };
  Parts kept_, new_;
};

}  // namespace tandem
