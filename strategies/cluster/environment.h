// Environment variables behind an interface, so that resolvers can be given others than the process's.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tandem {

class Environment {
 public:
  virtual ~Environment() = default;
  virtual std::optional<std::string> get(const std::string& name) const = 0;
  virtual void set(const std::string& name, const std::string& value) = 0;
};

// Returns the process's environment. As with setenv(), setting a variable while another thread reads one is a race.
Environment& process_environment();

// Keeps its own variables and leaves those of the process alone.
class FixedEnvironment final : public Environment {
 public:
  FixedEnvironment() = default;
  FixedEnvironment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : variables_(variables) {}
  explicit FixedEnvironment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  std::optional<std::string> get(const std::string& name) const override;
  void set(const std::string& name, const std::string& value) override { variables_[name] = value; }

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace tandem
