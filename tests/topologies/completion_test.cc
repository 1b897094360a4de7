// Which machine completes a partial description: one rule for all readers.
#include <gmock/gmock.h>

#include "topologies/base/error.h"
#include "topologies/readers/import.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

// Clues that name machines, of a description that can be of machines with the GPU `fitting`; empty: of any.
MachineClues clues_of(std::vector<std::string> texts, const char* product = nullptr, std::string fitting = "") {
  return {.texts = std::move(texts),
          .product = product == nullptr ? nullptr : find_gpu_named(product),
          .fits = [fitting = std::move(fitting)](const Topology& machine) {
            const auto gpus = machine.nodes_of(0, NodeKind::gpu);
            return fitting.empty() || (!gpus.empty() && machine.device(gpus.front())->name == fitting);
          }};
}

std::string machine_of(const ImportOptions& options, const MachineClues& clues) {
  const auto completion = completion_of(options, clues);
  return completion ? completion->name + "; " + completion->reason : "none";
}

TEST(Completion, TheOptionComesBeforeEveryClue) {
  const MachineClues clues = clues_of({"dgx-a100.txt"}, "a100-sxm4-40gb");
  EXPECT_EQ(machine_of({.complete_with = "aws-g5"}, clues), "aws-g5; ");
  EXPECT_EQ(machine_of({.complete_with = "none"}, clues), "none");
}

TEST(Completion, AMachineThatATextNamesMustFit) {
  const std::string reason = "which the file's name or its comments name";
  EXPECT_EQ(machine_of({}, clues_of({"my-dgx-a100.txt", "of an aws-p5"})), "dgx-a100; " + reason);
  EXPECT_EQ(machine_of({}, clues_of({"node.txt", "of an aws-p5"})), "aws-p5; " + reason);
  EXPECT_EQ(machine_of({.gpu = "h100"}, clues_of({"aws-p5.txt"}, nullptr, "NVIDIA H100 SXM5 80 GB")),
            "aws-p5; " + reason);
  EXPECT_EQ(machine_of({.gpu = "h100"}, clues_of({"dgx-a100.txt"}, nullptr, "NVIDIA H100 SXM5 80 GB")),
            "hgx-h100; the catalog's machine of the GPU that --gpu names");
}

TEST(Completion, TheGpuOfTheDescriptionComesBeforeTheStatedOne) {
  EXPECT_EQ(machine_of({.gpu = "h200"}, clues_of({"node.txt"}, "h100")),
            "hgx-h100; the catalog's machine of the same GPU");
  EXPECT_EQ(machine_of({}, clues_of({"node.txt"})), "none");
}

TEST(Completion, AnUnknownMachineOrGpuIsRefused) {
  EXPECT_THROW(machine_of({.complete_with = "dgx-a10"}, clues_of({"node.txt"})), InputError);
  EXPECT_THROW(machine_of({.gpu = "h1000"}, clues_of({"node.txt"})), InputError);
}

TEST(Completion, AFilesNameCountsBesideAStatedGpu) {
  const std::string graph = "graph g { a [kind=gpu]; c [kind=cpu]; a -- c [kind=pcie]; }";
  const auto processor_of = [&](const std::string& file) {
    const Topology topology = import_text(graph, file, {.gpu = "h100"}).topology;
    return topology.device(topology.nodes_of(0, NodeKind::cpu).front())->name;
  };
  EXPECT_EQ(processor_of("aws-p5.dot"), "AMD EPYC 7R13");
  EXPECT_EQ(processor_of("dgx-a100.dot"), "Intel Xeon Platinum 8480C");
}

}  // namespace
}  // namespace tandem
