#include "scenarios/reading/content_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <span>
#include <streambuf>
#include <string_view>

#include "scenarios/import/traces/trace.h"
#include "scenarios/scenario/fnv1a.h"
#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

// Hashes what is written to it, so that the text of a topology of thousands of machines is never stored.
class HashingBuffer : public std::streambuf {
 public:
  explicit HashingBuffer(Fnv1a& hash) : hash_(hash) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    hash_.add_part({text, static_cast<std::size_t>(size)});
    return size;
  }
  int_type overflow(int_type character) override {
    const char one = traits_type::to_char_type(character);
    hash_.add_part({&one, 1});
    return character;
  }

 private:
  Fnv1a& hash_;
};

// Keys in alphabetical order: their order in the file means nothing.
void add(Fnv1a& hash, const YamlNode& node) {
  hash.add(static_cast<std::int64_t>(node.kind));
  hash.add(node.text);
  for (const YamlNode* item : node.items) add(hash, *item);
  std::vector<YamlNode::Entry> entries = node.entries;
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  for (const YamlNode::Entry& entry : entries) {
    hash.add(entry.key);
    add(hash, *entry.value);
  }
  hash.add("end");
}

void add_without(Fnv1a& hash, const YamlNode& root, std::span<const std::string_view> left_out) {
  YamlNode node = root;
  std::erase_if(node.entries,
                [&](const YamlNode::Entry& entry) { return std::ranges::find(left_out, entry.key) != left_out.end(); });
  add(hash, node);
}

// A sweep does not change the scenario that it varies.
constexpr std::array<std::string_view, 1> kSweep = {"sweep"};
constexpr std::array<std::string_view, 11> kNotTrained = {"sweep",       "steps",   "warmup_steps", "name",
                                                          "description", "assumed", "left_out",     "faults",
                                                          "recovery",    "expect",  "topology"};

void add(Fnv1a& hash, const MlpSettings& mlp) {
  hash.add(mlp.rows->columns);
  for (const float value : mlp.rows->values) hash.add(fmt::format("{}", value));
  for (const std::int32_t label : mlp.rows->labels) hash.add(label);
}

// Adds the newer forms of layers only if a layer has them, so that the hashes of other models do not change.
void add_forms(Fnv1a& hash, const Layer& layer) {
  if (const auto& convolution = layer.convolution) {
    for (const auto number : {convolution->height, convolution->width, convolution->in_channels, convolution->kernel,
                              convolution->stride, convolution->groups}) {
      hash.add(number);
    }
    if (convolution->image_depth > 0) hash.add(convolution->image_depth);
  }
  if (layer.has_frozen_norm) hash.add(layer.is_frozen ? "all frozen" : "norms frozen");
  if (const auto& embedding = layer.embedding) {
    for (const auto number : {embedding->rows, embedding->columns, embedding->entries}) hash.add(number);
  }
  if (const auto& routing = layer.routing) {
    hash.add(routing->way == Layer::Routing::Way::dispatch ? "dispatch" : "combine");
    for (const auto number : {routing->rows, routing->columns, routing->used}) hash.add(number);
  }
  for (const Pointwise operation : layer.then) hash.add(static_cast<std::int64_t>(operation));
  if (layer.gemm && layer.gemm->experts > 1) hash.add(fmt::format("{} experts", layer.gemm->experts));
  if (layer.gemm && layer.gemm->attended < 1) hash.add(fmt::format("{} attended", layer.gemm->attended));
  if (layer.gemm && layer.gemm->sharing > 1) hash.add(fmt::format("{} share", layer.gemm->sharing));
}

void add(Fnv1a& hash, const LayersSettings& layers) {
  for (const double rows : layers.experts.popularity) hash.add(fmt::format("{}", rows));
  if (layers.model.depends_on_stack()) hash.add(layers.stack.text());
  for (const Layer& layer : layers.model.layers) {
    hash.add(layer.name);
    hash.add(layer.parameters());
    if (const auto& gemm = layer.gemm) {
      for (const auto number : {gemm->rows, gemm->columns, gemm->depth, gemm->count, gemm->input_elements})
        hash.add(number);
      hash.add(gemm->batched ? 1 : 0);
    }
    if (const auto& elementwise = layer.elementwise) {
      hash.add(elementwise->elements);
      hash.add(std::llround(elementwise->forward_passes));
      hash.add(std::llround(elementwise->backward_passes));
    }
    add_forms(hash, layer);
  }
}

void add(Fnv1a& hash, const TraceSettings& trace) {
  hash.add(trace.world);
  hash.add(trace.replica_size);
  for (const RankTrace& rank : *trace.ranks) {
    hash.add(rank.rank);
    for (const std::vector<int>& group : rank.groups) {
      for (const int member : group) hash.add(member);
    }
    for (const TraceOp& op : rank.ops) {
      for (const std::int64_t number : {static_cast<std::int64_t>(op.kind), op.duration_ns, op.lag_ns, op.issue_ns,
                                        static_cast<std::int64_t>(op.collective), op.bytes, std::int64_t{op.stream},
                                        std::int64_t{op.group}, std::int64_t{op.host_waits_for}}) {
        hash.add(number);
      }
      for (const int other : op.after) hash.add(other);
    }
  }
}

// Adds what a topology's file says besides nodes and links.
void add_settings(Fnv1a& hash, const Topology& topology) {
  hash.add(topology.facts().p2p ? 1 : 0);
  if (topology.facts().exchanges_in_turn) hash.add("exchanges in turn");
  if (topology.facts().share_spread > 0) hash.add(fmt::format("share spread {}", topology.facts().share_spread));
  hash.add(topology.facts().nvlink_domain);
  for (const CollectiveSample& sample : topology.facts().collectives) {
    hash.add(fmt::format("{} {} {} {} {} {} {}", sample.operation, sample.devices, sample.bytes, sample.time_s,
                         sample.relative_spread, sample.nodes, sample.algorithm));
  }
  for (const auto& [name, fact] : topology.facts().measured_with) {
    hash.add(name);
    hash.add(fact);
  }
}

// In a larger cluster, a machine is hashed only if it differs from the one before it; then the fabric is hashed.
constexpr int kMostMachines = 4096;

void add_large(Fnv1a& hash, const Topology& topology, std::ostream& text) {
  const Topology* before = nullptr;
  for (int worker = 0; worker < topology.machine_count(); ++worker) {
    const Topology* const machine = &topology.machine(worker);
    if (machine == before) continue;
    hash.add(worker);
    write_topology_yaml(*machine, text);
    hash.end_text();
    before = machine;
  }
  add_settings(hash, topology);
  hash.add(topology.machine_count());
  for (NodeIndex index = topology.machine_nodes(); index < topology.node_count(); ++index) {
    hash.add(topology.node(index).name);
  }
  std::map<const LinkModel*, std::int64_t> models;
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    for (const std::int64_t number : {std::int64_t{link.from}, std::int64_t{link.to}}) hash.add(number);
    hash.add(static_cast<std::int64_t>(link.direction));
    const auto [number, is_new] = models.try_emplace(link.model.get(), static_cast<std::int64_t>(models.size()));
    hash.add(number->second);
    if (!is_new) continue;
    hash.add(fmt::format("{} {}", link.model->bandwidth_bytes_per_s.value, link.model->latency_s.value));
  }
}

}  // namespace

std::string content_hash(const Scenario& scenario) {
  Fnv1a hash;
  if (scenario.document) add_without(hash, scenario.document->root(), kSweep);
  std::visit([&](const auto& kind) { add(hash, kind); }, scenario.workload.kind);
  if (scenario.topology) {
    HashingBuffer buffer(hash);
    std::ostream topology(&buffer);
    if (scenario.topology->machine_count() > kMostMachines) {
      add_large(hash, *scenario.topology, topology);
    } else {
      write_topology_yaml(*scenario.topology, topology);
    }
    hash.end_text();
  }
  return hash.text();
}

std::string training_hash(const Scenario& scenario) {
  Fnv1a hash;
  if (scenario.document) add_without(hash, scenario.document->root(), kNotTrained);
  std::visit([&](const auto& kind) { add(hash, kind); }, scenario.workload.kind);
  return hash.text();
}

std::string text_hash(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.text();
}

}  // namespace tandem
