// How jobs of torchtitan divide devices, and where they say what does not fit.
#include <algorithm>

#include "tests/scenarios/import/titan_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class TitanSizes : public TitanFiles {};

// torchtitan's tensor degree of experts is 1 or that of other layers.
TEST_F(TitanSizes, TensorParallelDevicesAreAmongThoseThatDivideExperts) {
  std::filesystem::create_directories(folder_ / "assets");
  write("assets/config.json", R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 128})");
  const std::string model = "flavor = \"small\"\nhf_assets_path = \"assets\"";
  const auto with = [&](const std::string& more) {
    return config("seq_len = 64\n", "tensor_parallel_degree = 4\nexpert_parallel_degree = 8\n" + more, "", model);
  };
  const Scenario whole = this->scenario(with(""));
  EXPECT_EQ(whole.strategy.mesh.data, 2);
  EXPECT_EQ(whole.strategy.mesh.expert_tensor, 1);
  EXPECT_EQ(this->scenario(with("expert_tensor_parallel_degree = 4\n"), {.workers = 4}).strategy.mesh.expert_tensor, 0);
  EXPECT_THAT(problem(with("expert_tensor_parallel_degree = 4\n"), {.workers = 1}),
              HasSubstr("8 does not divide the 2 devices"));
  EXPECT_THAT(problem(with("expert_tensor_parallel_degree = 2\n")),
              HasSubstr("expert_tensor_parallel_degree: must be 1 or tensor_parallel_degree"));
  const std::string without_own_tokens = with("enable_sequence_parallel = false\n");
  EXPECT_EQ(this->scenario(without_own_tokens, {.workers = 4}).strategy.mesh.expert_tensor, 0);
  EXPECT_THAT(job(without_own_tokens).left_out,
              Contains("parallelism.expert_tensor_parallel_degree 1: experts are divided as the other layers are; "
                       "without enable_sequence_parallel, devices have no tokens of their own"));
}

// Without --workers, as many machines as experts need.
TEST_F(TitanSizes, ExpertsSayHowManyMachinesThereAre) {
  std::filesystem::create_directories(folder_ / "assets");
  write("assets/config.json", R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 16, "num_experts_per_tok": 2, "max_position_embeddings": 128})");
  const auto with = [&](const std::string& parallelism) {
    return config("seq_len = 64\nlocal_batch_size = 1\n", parallelism, "",
                  "flavor = \"small\"\nhf_assets_path = \"assets\"");
  };
  const auto data = [&](const std::string& parallelism) { return scenario(with(parallelism)).strategy.mesh.data; };
  EXPECT_EQ(data("expert_parallel_degree = 16\n"), 16);
  EXPECT_EQ(data("expert_parallel_degree = 16\ncontext_parallel_degree = 2\n"), 8);
  EXPECT_EQ(data("expert_parallel_degree = 16\ntensor_parallel_degree = 2\n"), 8);
  EXPECT_EQ(data("expert_parallel_degree = 16\ntensor_parallel_degree = 2\nenable_sequence_parallel = false\n"), 16);
  EXPECT_EQ(data("expert_parallel_degree = 16\ndata_parallel_replicate_degree = 24\n"), 48);
  EXPECT_EQ(scenario(with("expert_parallel_degree = 4\n")).strategy.mesh.data, 8);
  EXPECT_THAT(
      problem(with("expert_parallel_degree = 16\ndata_parallel_shard_degree = 8\n")),
      HasSubstr("job.toml:10:26: parallelism.expert_parallel_degree: 16 does not divide the 8 devices of data 8 "
                "x context 1"));
}

TEST_F(TitanSizes, PartsOfAMeshPointAtTheirKeys) {
  const auto file = write("job.toml", config("local_batch_size = 1\n",
                                             "context_parallel_degree = 8\n"
                                             "context_parallel_rotate_method = \"alltoall\"\n"));
  const std::vector<Origin> origins = import_file(InputFile(file), {}, "").origins;
  const auto given = [&](const std::string& key) {
    const auto found = std::ranges::find(origins, key, &Origin::key);
    return found == origins.end() ? "" : found->given.path;
  };
  EXPECT_EQ(given("strategy.context_exchange"), "parallelism.context_parallel_rotate_method");
  EXPECT_EQ(given("strategy.expert_tensor"), "parallelism.expert_tensor_parallel_degree");
}

// At the option, where one gives a size, else at the key.
TEST_F(TitanSizes, SaysWhereSizesCannotBe) {
  const std::string both = "tensor_parallel_degree = 4\ncontext_parallel_degree = 3\n";
  const std::string groups = "devices cannot be divided into groups of tensor 4 x pipeline 1 x context 3";
  EXPECT_EQ(problem(config("", both)), "job.toml:8:27: parallelism.context_parallel_degree: 16 " + groups);
  EXPECT_EQ(problem(config("", both), {.devices = 5, .workers = 4}), "job.toml:1:1: --workers: 20 " + groups);
  EXPECT_EQ(problem(config("", both), {.devices = 16}), "job.toml:1:1: --devices: 16 " + groups);
  EXPECT_EQ(problem(config("", "tensor_parallel_degree = 3\n")),
            "job.toml:7:26: parallelism.tensor_parallel_degree: 8 devices cannot be divided into groups of tensor 3 x "
            "pipeline 1 x context 1");
  const std::string copies =
      "data_parallel_replicate_degree 3 does not divide the 8 replicas of 1 machines of 8 devices";
  EXPECT_EQ(problem(config("", "data_parallel_replicate_degree = 3\n")),
            "job.toml:7:34: parallelism.data_parallel_replicate_degree: " + copies);
  EXPECT_EQ(problem(config("", "data_parallel_replicate_degree = 3\n"), {.workers = 1}),
            "job.toml:1:1: --workers: " + copies);
  EXPECT_EQ(problem(config("", "data_parallel_shard_degree = 3\n")),
            "job.toml:7:30: parallelism.data_parallel_shard_degree: data_parallel_shard_degree 3 x "
            "data_parallel_replicate_degree 1 are 3 replicas, and 1 machines of 8 devices have 8: --workers and "
            "--devices");
  EXPECT_EQ(problem(config("global_batch_size = 65\nlocal_batch_size = 8\n")),
            "job.toml:5:21: training.global_batch_size: 65 is no multiple of 8 replicas x micro-batches of 8");
  EXPECT_EQ(problem(config("global_batch_size = 64\nlocal_batch_size = 8\n"), {.batch = 65}),
            "job.toml:1:1: --batch: 65 is no multiple of 8 replicas x micro-batches of 8");
}

TEST_F(TitanSizes, SaysWhichDegreesCannotBe) {
  EXPECT_THAT(problem(config("", "data_parallel_replicate_degree = 3\n"), {.workers = 1}),
              HasSubstr("data_parallel_replicate_degree 3 does not divide the 8 replicas"));
  EXPECT_THAT(problem(config("", "expert_parallel_degree = 4\n")),
              HasSubstr("parallelism.expert_parallel_degree: the model has no experts"));
  EXPECT_THAT(problem(config("", "data_parallel_replicate_degree = 1048576\ndata_parallel_shard_degree = 1048576\n")),
              HasSubstr("job.toml:8:30: parallelism.data_parallel_shard_degree: the degrees of parallelism need "
                        "1099511627776 devices"));
}

}  // namespace
}  // namespace tandem
