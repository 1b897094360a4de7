// What scenarios that are read one after the other have in common: topologies and models, each made once.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "scenarios/model.h"
#include "topologies/topology.h"

namespace tandem {

struct YamlNode;

// A value on one line, "{cluster: {node: hgx-h100, workers: 2}}". Equal values have equal texts.
std::string text_of(const YamlNode& value);

class SharedParts {
 public:
  // Null where there is none yet.
  std::shared_ptr<const Topology> topology(const std::string& text) const;
  std::shared_ptr<const Model> model(const std::string& text) const;

  // Added for good by the next settle(true), dropped by settle(false): what belongs to a scenario with mistakes would
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
