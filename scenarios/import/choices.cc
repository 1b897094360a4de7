#include "scenarios/import/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "scenarios/import/traces/trace.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// An option that some kinds of file take.
struct Choice {
  const char* option;
  bool (*is_given)(const ImportChoices& choices);
  bool hugging_face, megatron, titan, trace;
};

constexpr std::array kChoices = {
    Choice{"--sequence-length", [](const ImportChoices& choices) { return choices.tokens > 0; }, true, false, false,
           false},
    Choice{"--batch", [](const ImportChoices& choices) { return choices.batch > 0; }, true, true, true, false},
    Choice{"--dtype", [](const ImportChoices& choices) { return !choices.dtype.empty(); }, true, true, false, false},
    Choice{"--precision", [](const ImportChoices& choices) { return !choices.precision.empty(); }, true, true, false,
           false},
    Choice{"--optimizer", [](const ImportChoices& choices) { return !choices.optimizer.empty(); }, true, true, false,
           false},
    Choice{"--recompute", [](const ImportChoices& choices) { return choices.recompute; }, true, true, true, false},
    Choice{"--predictors", [](const ImportChoices& choices) { return choices.predictors > 0; }, true, false, false,
           false},
    Choice{"--dispatch", [](const ImportChoices& choices) { return !choices.dispatch.empty(); }, true, false, false,
           false},
    Choice{"--config", [](const ImportChoices& choices) { return !choices.config.empty(); }, false, false, true, false},
    Choice{"--lora", [](const ImportChoices& choices) { return !choices.lora.empty(); }, true, false, false, false},
    Choice{"--tensor", [](const ImportChoices& choices) { return choices.tensor > 0; }, true, false, false, false},
    Choice{"--pipeline", [](const ImportChoices& choices) { return choices.pipeline > 0; }, true, false, false, false},
    Choice{"--context", [](const ImportChoices& choices) { return choices.context > 0; }, true, false, false, false},
    Choice{"--expert", [](const ImportChoices& choices) { return choices.expert > 0; }, true, false, false, false},
    Choice{"--virtual-stages", [](const ImportChoices& choices) { return choices.virtual_stages > 0; }, true, false,
           false, false},
    Choice{"--micro-batch", [](const ImportChoices& choices) { return choices.micro_batch > 0; }, true, false, false,
           false},
    Choice{"--strategy", [](const ImportChoices& choices) { return !choices.strategy.empty(); }, true, true, false,
           false},
};

bool takes(const Choice& choice, ImportKind kind) {
  return kind == ImportKind::trace        ? choice.trace
         : kind == ImportKind::megatron   ? choice.megatron
         : kind == ImportKind::torchtitan ? choice.titan
                                          : choice.hugging_face;
}

std::string takers_of(const Choice& choice) {
  std::vector<std::string> takers;
  for (const ImportKind kind :
       {ImportKind::hugging_face, ImportKind::megatron, ImportKind::torchtitan, ImportKind::trace}) {
    if (takes(choice, kind)) takers.push_back(text_of(kind));
  }
  const std::string last = takers.back();
  takers.pop_back();
  return takers.empty() ? last : fmt::format("{} or {}", fmt::join(takers, ", "), last);
}

}  // namespace

std::string text_of(ImportKind kind) {
  switch (kind) {
    case ImportKind::scenario:
      return "a scenario";
    case ImportKind::hugging_face:
      return "a Hugging Face configuration";
    case ImportKind::megatron:
      return "arguments of Megatron-LM";
    case ImportKind::torchtitan:
      return "a configuration of torchtitan";
    case ImportKind::trace:
      return "a trace";
  }
  TANDEM_UNREACHABLE("a kind of file");
}

void set_machines(YamlMap& scenario, const UsedMachines& machines) {
  YamlMap cluster;
  cluster.quote("node", machines.name).set("workers", machines.workers);
  if (!machines.gpu.empty()) cluster.quote("gpu", machines.gpu);
  if (machines.workers > 1 || !machines.gpu.empty()) {
    scenario.set("topology", YamlMap().set("cluster", cluster));
  } else {
    scenario.quote("topology", machines.name);
  }
  scenario.set("devices", YamlMap().set("type", "gpu").set("per_worker", machines.devices));
}

void check_choices(const std::string& file, ImportKind kind, const ImportChoices& choices) {
  const auto refuse = [&](const std::string& message) {
    throw InputError({problem_at(file, beginning_of(file), message)});
  };
  for (const Choice& choice : kChoices) {
    if (!choice.is_given(choices) || takes(choice, kind)) continue;
    refuse(fmt::format("is {}, and {} is for {} only", text_of(kind), choice.option, takers_of(choice)));
  }
  if (!choices.gpu.empty() && choices.topology.find_first_of("/.") == std::string::npos) {
    refuse(
        fmt::format("--gpu is for a topology file that does not tell its GPUs, found --topology {}, a machine of the "
                    "catalog",
                    choices.topology));
  }
}

void check_no_choices(const std::string& file, const ImportChoices& choices) {
  const auto refuse = [&](std::string_view option) {
    throw InputError({problem_at(file, beginning_of(file),
                                 fmt::format("is a scenario, which says what {} does: change it there", option))});
  };
  for (const Choice& choice : kChoices) {
    if (choice.is_given(choices)) refuse(choice.option);
  }
  if (!choices.topology.empty()) refuse("--topology");
  if (choices.devices > 0) refuse("--devices");
  if (choices.workers > 0) refuse("--workers");
}

}  // namespace tandem
