// What jobs of torchtitan become.
#include "tests/scenarios/import/titan_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Torchtitan : public TitanFiles {};

TEST_F(Torchtitan, ReplicasDivideParameters) {
  const Scenario scenario = this->scenario(config("local_batch_size = 2\nseq_len = 4096\n"));
  EXPECT_EQ(scenario.strategy.name, "mesh");
  EXPECT_TRUE(scenario.strategy.mesh.shard_parameters);
  EXPECT_EQ(scenario.workload.batch, 16) << "two for each of eight devices";
  const LayersSettings& layers = layers_of(scenario);
  EXPECT_EQ(layers.model.parameters(), 8'030'261'248);
  EXPECT_EQ(layers.model.input_elements, 4096);
  EXPECT_EQ(layers.dtype, DType::bf16);
  EXPECT_EQ(layers.parameter_dtype, DType::f32);
  EXPECT_EQ(layers.stack.fusion, Fusion::none);
  EXPECT_TRUE(layers.recomputed.any) << "every second block, as torchtitan's usual values say";
  EXPECT_EQ(layers.recomputed.every, 2);
  const Scenario half = this->scenario(config("dtype = \"bfloat16\"\nlocal_batch_size = 2\nglobal_batch_size = 64\n"));
  EXPECT_EQ(half.strategy.name, "fully_sharded");
  EXPECT_EQ(layers_of(half).parameter_dtype, std::nullopt);
  EXPECT_EQ(layers_of(half).gradient_accumulation_steps, 4);
}

TEST_F(Torchtitan, AGlobalBatchTakesSeveralPasses) {
  const std::string training = "local_batch_size = 2\nglobal_batch_size = 64\n";
  EXPECT_EQ(scenario(config(training)).strategy.mesh.micro_batches, 4);
  const Scenario mesh = scenario(config(training, "tensor_parallel_degree = 4"));
  EXPECT_EQ(mesh.strategy.mesh.micro_batches, 16);
  EXPECT_EQ(mesh.strategy.mesh.data, 2);
}

TEST_F(Torchtitan, DegreesAreAxesOfAMesh) {
  const Scenario scenario =
      this->scenario(config("local_batch_size = 8\n",
                            "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
                            "tensor_parallel_degree = 2\npipeline_parallel_degree = 2\n"
                            "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                            "fsdp_reshard_after_forward = \"always\"\n",
                            "[activation_checkpoint]\nmode = \"full\"\n[compile]\nenable = true\n"),
                     {.workers = 4});
  const MeshSettings& mesh = scenario.strategy.mesh;
  EXPECT_THAT((std::vector{mesh.data, mesh.tensor, mesh.pipeline, mesh.virtual_stages, mesh.micro_batches}),
              ElementsAre(8, 2, 2, 2, 8));
  EXPECT_TRUE(mesh.shard_parameters);
  EXPECT_EQ(mesh.replicate, 2);
  EXPECT_TRUE(layers_of(scenario).sequence_parallel);
  EXPECT_EQ(layers_of(scenario).stack.fusion, Fusion::compiled);
  const Scenario replicas = this->scenario(
      config("local_batch_size = 1\n", "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"));
  EXPECT_FALSE(replicas.strategy.mesh.shard_parameters);
  EXPECT_EQ(replicas.strategy.mesh.data, 8);
}

TEST_F(Torchtitan, PipelinesGatherParametersOnce) {
  const auto mesh = [&](const std::string& more) {
    return scenario(config("local_batch_size = 16\n", more)).strategy.mesh;
  };
  const MeshSettings in_pipeline = mesh("pipeline_parallel_degree = 4\n");
  EXPECT_FALSE(in_pipeline.shard_parameters);
  EXPECT_TRUE(in_pipeline.distributed_optimizer && in_pipeline.overlap_gather);
  EXPECT_TRUE(mesh("tensor_parallel_degree = 2\n").shard_parameters);
  EXPECT_TRUE(mesh("tensor_parallel_degree = 2\nfsdp_reshard_after_forward = \"never\"\n").distributed_optimizer);
}

TEST_F(Torchtitan, SchedulesAreThoseOfPyTorch) {
  const auto mesh = [&](const std::string& schedule) {
    return scenario(config("local_batch_size = 16\n",
                           "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"" + schedule + "\"\n"))
        .strategy.mesh;
  };
  EXPECT_EQ(mesh("1F1B").order, PipelineOrder::one_forward_one_backward);
  EXPECT_EQ(mesh("InterleavedZeroBubble").order, PipelineOrder::zero_bubble);
  EXPECT_EQ(mesh("InterleavedZeroBubble").virtual_stages, 2);
  EXPECT_EQ(mesh("ZBVZeroBubble").order, PipelineOrder::zero_bubble_v);
  EXPECT_EQ(mesh("DualPipeV").order, PipelineOrder::dual_pipe_v);
  EXPECT_EQ(mesh("DualPipeV").virtual_stages, 1);
}

TEST_F(Torchtitan, ConvertersQuantise) {
  const std::string gather = "[float8]\nenable_fsdp_float8_all_gather = true\n";
  const auto layers = [&](const std::string& converters, const std::string& others = "") {
    return layers_of(scenario(config("", "", others, "flavor = \"8B\"\nconverters = [" + converters + "]")));
  };
  EXPECT_EQ(layers("").quantised, Quantised::none);
  EXPECT_EQ(layers("\"float8\"").quantised, Quantised::fp8);
  EXPECT_FALSE(layers("\"float8\"").gathers_quantised);
  EXPECT_TRUE(layers("\"float8\"", gather).gathers_quantised);
  EXPECT_EQ(layers("\"mx\"").quantised, Quantised::mxfp8);
  const LayersSettings rowwise = layers("\"float8\"", gather + "recipe_name = \"rowwise\"\n");
  EXPECT_EQ(rowwise.recipe, ScalingRecipe::rowwise);
  EXPECT_FALSE(rowwise.gathers_quantised) << "parameters are not gathered in fp8";
  EXPECT_EQ(layers("\"float8\"", "[float8]\nrecipe_name = \"tensorwise\"\n").recipe, ScalingRecipe::tensorwise);
  EXPECT_EQ(layers("\"quantize.linear.float8\"", "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n").recipe,
            ScalingRecipe::rowwise);
  const auto of_recipe = [&](const std::string& recipe) {
    return config("", "", "[float8]\nrecipe_name = \"" + recipe + "\"\n", "flavor = \"8B\"\nconverters = [\"float8\"]");
  };
  EXPECT_THAT(job(of_recipe("rowwise_with_gw_hp")).left_out,
              Contains("float8.recipe_name rowwise_with_gw_hp: gradients of weights are computed in fp8, too"));
  EXPECT_THAT(problem(of_recipe("delayed")),
              HasSubstr("must be tensorwise, rowwise or rowwise_with_gw_hp, found 'delayed'"));
}

TEST_F(Torchtitan, RecomputesByOperationsOrLayers) {
  const auto again = [&](const std::string& text) {
    return job(config("", "", "[activation_checkpoint]\n" + text)).again;
  };
  EXPECT_EQ(again("mode = \"none\""), "");
  EXPECT_EQ(again("mode = \"full\""), "true");
  EXPECT_EQ(again("mode = \"selective\"\nselective_ac_option = \"op\""), "operations");
  EXPECT_EQ(again("mode = \"selective\"\nselective_ac_option = \"3\""), "{every: 3}");
}

TEST_F(Torchtitan, OtherModelsAreReadFromTheirConfiguration) {
  std::filesystem::create_directories(folder_ / "assets" / "small");
  write("assets/small/config.json", R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128})");
  const std::string model = "flavor = \"0.6B\"\nhf_assets_path = \"./assets/small\"";
  const Scenario scenario = this->scenario(config("seq_len = 64\n", "", "", model));
  EXPECT_EQ(layers_of(scenario).model.input_elements, 64);
  EXPECT_EQ(layers_of(scenario).model.name, "llama");
}

TEST_F(Torchtitan, ModelsOfOthersGoWithTheScenario) {
  std::filesystem::create_directories(folder_ / "assets");
  write("assets/config.json", R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128})");
  const auto file =
      write("job.toml", config("seq_len = 64\n", "", "", "flavor = \"0.6B\"\nhf_assets_path = \"assets\""));
  std::filesystem::create_directories(folder_ / "elsewhere");
  const Imported imported = import_file(InputFile(file), {}, "job.model.yaml");
  ASSERT_FALSE(imported.model.empty());
  write("elsewhere/job.model.yaml", imported.model);
  const Scenario scenario = parse_scenario(imported.scenario, (folder_ / "elsewhere" / "job.yaml").string());
  EXPECT_EQ(layers_of(scenario).model.input_elements, 64);
}

TEST_F(Torchtitan, DevicesOfASequenceDivideParametersToo) {
  const Scenario scenario =
      this->scenario(config("local_batch_size = 1\n", "data_parallel_shard_degree = 1\ncontext_parallel_degree = 8\n"));
  EXPECT_EQ(scenario.strategy.mesh.context, 8);
  EXPECT_TRUE(scenario.strategy.mesh.shard_parameters);
  EXPECT_EQ(scenario.strategy.mesh.context_exchange, ContextExchange::all_gather);
  const auto with = [](const std::string& method) {
    return config("local_batch_size = 1\n", "data_parallel_shard_degree = 1\ncontext_parallel_degree = 8\n" +
                                                ("context_parallel_rotate_method = \"" + method) + "\"\n");
  };
  EXPECT_EQ(this->scenario(with("alltoall")).strategy.mesh.context_exchange, ContextExchange::ring);
  EXPECT_EQ(this->scenario(with("allgather")).strategy.mesh.context_exchange, ContextExchange::all_gather);
  EXPECT_THAT(problem(with("ring")),
              HasSubstr("parallelism.context_parallel_rotate_method: must be allgather or alltoall"));
}

TEST_F(Torchtitan, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(problem(config("", "", "", "flavor = \"8B\"\nconverters = \"float8\"")),
              HasSubstr("job.toml:4:14: model.converters: expected a list of texts"));
  EXPECT_THAT(problem(config("", "", "", "flavor = \"8B\"\nconverters = [8]")),
              HasSubstr("job.toml:4:14: model.converters: expected a list of texts"));
  EXPECT_EQ(problem(config("seq_len = \"long\"")), "job.toml:5:11: training.seq_len: expected a whole number");
  EXPECT_EQ(problem(config("seq_len = 0")), "job.toml:5:11: training.seq_len: must be from 1 to 16777216, found 0");
  EXPECT_THAT(problem(config("", "", "", "flavor = \"1B\"")),
              HasSubstr("job.toml:3:10: model.flavor: the sizes of llama3-1B are known here for 8B, 70B and 405B"));
  EXPECT_THAT(problem(config("seq_len = = 4")), HasSubstr("job.toml:5:"));
  EXPECT_THAT(problem(config("", "data_parallel_shard_degree = 4\n"), {.workers = 2}),
              HasSubstr("are 4 replicas, and 2 machines of 8 devices have 16"));
  EXPECT_THAT(problem(config("", "tensor_parallel_degree = 3\n"), {.workers = 1}), HasSubstr("tensor 3"));
  EXPECT_THAT(problem(config("", "", "[activation_checkpoint]\nmode = \"some\"\n")),
              HasSubstr("activation_checkpoint.mode: must be none, selective or full, found 'some'"));
  EXPECT_THAT(problem(config(""), {.tensor = 2}), HasSubstr("is a configuration of torchtitan, and --tensor is for"));
  EXPECT_THAT(job(config("enable_cpu_offload = true")).left_out,
              testing::Contains(HasSubstr("training.enable_cpu_offload")));
}

TEST_F(Torchtitan, SwitchesAreNoTexts) {
  EXPECT_EQ(problem(config("", "", "[compile]\nenable = \"false\"\n")),
            "job.toml:9:10: compile.enable: expected true or false, without quotes, found 'false'");
  EXPECT_EQ(problem(config("enable_cpu_offload = \"false\"")),
            "job.toml:5:22: training.enable_cpu_offload: expected true or false, without quotes, found 'false'");
  EXPECT_THAT(problem(config("", "enable_async_tensor_parallel = 1\n")), HasSubstr("expected true or false, found 1"));
  const auto compiled = [&](const std::string& more) {
    return job(config("", "", "[compile]\nenable = true\n" + more)).compiles;
  };
  EXPECT_TRUE(compiled("components = [\"model\", \"loss\"]\n"));
  EXPECT_FALSE(compiled("components = [\"loss\"]\n"));
}

TEST_F(Torchtitan, SectionsHaveKeys) {
  EXPECT_EQ(problem("parallelism = 3\n" + config("").substr(0, config("").find("[parallelism]"))),
            "job.toml:1:15: parallelism: expected a section [parallelism] with keys");
  EXPECT_EQ(problem(config("", "", "[[compile]]\nenable = true\n")),
            "job.toml:8:1: compile: expected a section [compile] with keys");
}

TEST_F(Torchtitan, NamesWhatItDoesNotKnow) {
  const std::string known =
      "[job]\ndump_folder = \"out\"\n[metrics]\nlog_freq = 10\n[optimizer]\nlr = 3e-4\nname = \"AdamW\"\n"
      "[lr_scheduler]\nwarmup_steps = 200\n[checkpoint]\nenable = false\n[compile]\nenable = false\n"
      "[float8]\nfilter_fqns = [\"attention.wq\"]\n";
  EXPECT_THAT(job(config("steps = 10\ndataset = \"c4\"\nbatch_size = 2\n",
                         "disable_loss_parallel = true\npipeline_parallel_schedule = \"DualPipeV\"\n", known))
                  .left_out,
              ElementsAre("training.max_norm: the norm of the gradients takes no time"));
  const auto left_out =
      job(config("sequence_length = 8\n", "tensor_paralel_degree = 8\n", "[paralelism]\na.b = 1\n")).left_out;
  for (const char* key : {"training.sequence_length", "parallelism.tensor_paralel_degree", "paralelism.a.b"}) {
    EXPECT_THAT(left_out, Contains(std::string(key) + ": not known here; what it changes is left out"));
  }
}

TEST_F(Torchtitan, NamesWhatIsNotModelledWhereItMatters) {
  const auto left_out = [&](const std::string& parallelism, const std::string& others = "",
                            const std::string& model = "flavor = \"8B\"") {
    return job(config("", parallelism, others, model)).left_out;
  };
  EXPECT_THAT(
      left_out("tensor_parallel_degree = 2\ndisable_loss_parallel = true\n"),
      Contains("parallelism.disable_loss_parallel: each device computes the loss of its part of the vocabulary, "
               "and no logits are gathered"));
  EXPECT_THAT(left_out("context_parallel_degree = 2\ncontext_parallel_load_balancer = \"ptrr\"\n"),
              Contains(HasSubstr("parallelism.context_parallel_load_balancer ptrr: all devices have equally many")));
  EXPECT_THAT(
      left_out("pipeline_parallel_degree = 2\npipeline_parallel_split_points = [\"layers.4\", \"layers.9\"]\n"),
      Contains("parallelism.pipeline_parallel_split_points layers.4, layers.9: the layers are divided as without "
               "it"));
  const std::string filter = "filter_fqns = [\"output\", \"attention.wk\"]\n";
  EXPECT_THAT(
      left_out("", "[quantize.linear.float8]\n" + filter, "flavor = \"8B\"\nconverters = [\"quantize.linear.float8\"]"),
      Contains(HasSubstr("quantize.linear.float8.filter_fqns output, attention.wk: all dense layers")));
  EXPECT_THAT(left_out("", "[optimizer]\nimplementation = \"for-loop\"\n"),
              Contains("optimizer.implementation for-loop: the optimizer takes the time of fused kernels"));
}

TEST_F(Torchtitan, MomentsCanHaveFewerBitsThanParameters) {
  const auto job = [&](const std::string& implementation) {
    return config("", "", "[optimizer]\nimplementation = \"" + implementation + "\"\n");
  };
  const Scenario few = scenario(job("fused_opt_states_bf16"));
  EXPECT_EQ(layers_of(few).moments.first, DType::bf16);
  EXPECT_EQ(layers_of(few).moments.second, DType::bf16);
  EXPECT_EQ(layers_of(few).quantised, Quantised::none);
  EXPECT_THAT(few.notes, testing::Not(Contains(HasSubstr("optimizer.implementation"))));
  EXPECT_EQ(layers_of(scenario(job("fused"))).moments.first, std::nullopt);
}

// As torchtitan's generate_llm_fqn_per_model_part divides them.
TEST_F(Torchtitan, EmbeddingAndOutputCountAsLayersOfAStage) {
  const auto mesh = [&](const std::string& flavor, const std::string& more) {
    return scenario(config("local_batch_size = 16\n", more, "", "flavor = \"" + flavor + "\"")).strategy.mesh;
  };
  const auto blocks = [&](const std::string& flavor, const std::string& more) {
    return mesh(flavor, more).stage_blocks;
  };
  const std::string four = "pipeline_parallel_degree = 4\n";
  EXPECT_THAT(blocks("8B", four), ElementsAre(8, 9, 8, 7)) << "34 with the embedding and the output";
  EXPECT_THAT(blocks("405B", "pipeline_parallel_degree = 8\n"), ElementsAre(15, 16, 16, 16, 16, 16, 16, 15));
  const std::string equal =
      "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n";
  EXPECT_THAT(blocks("8B", four + equal), testing::IsEmpty()) << "equally many";
  EXPECT_THAT(blocks("8B", four + "pipeline_parallel_first_stage_less_layers = 2\n"), ElementsAre(7, 9, 9, 7));
  const std::string looped = four + "pipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  EXPECT_THAT(blocks("8B", looped), ElementsAre(4, 5, 4, 4, 4, 4, 4, 3));
  const MeshSettings three = mesh("8B", looped + "pipeline_parallel_layers_per_stage = 3\n");
  EXPECT_EQ(three.virtual_stages, 3);
  EXPECT_THAT(three.stage_blocks, ElementsAre(2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 1));
  EXPECT_THAT(blocks("8B", four + "pipeline_parallel_schedule = \"DualPipeV\"\n"), testing::SizeIs(8));
}

TEST_F(Torchtitan, SaysWhichStagesCannotBe) {
  const auto refused = [&](const std::string& more) {
    return problem(config("local_batch_size = 16\n", "pipeline_parallel_degree = 4\n" + more));
  };
  EXPECT_EQ(refused("pipeline_parallel_layers_per_stage = 5\n"),
            "job.toml:9:38: parallelism.pipeline_parallel_layers_per_stage: 32 layers and what the first and the last "
            "stage have besides, which counts as 2, make 7 stages of 5; 4 devices do not divide them");
  EXPECT_THAT(refused("pipeline_parallel_layers_per_stage = 5\npipeline_parallel_first_stage_less_layers = 5\n"),
              HasSubstr("make 8 stages of 5, 2 for each of 4 devices; the schedule needs 1"));
  EXPECT_THAT(refused("pipeline_parallel_schedule = \"InterleavedZeroBubble\"\n"
                      "pipeline_parallel_layers_per_stage = 9\n"),
              HasSubstr("make 4 stages of 9, 1 for each of 4 devices; the schedule needs at least 2"));
  EXPECT_THAT(
      refused("pipeline_parallel_last_stage_less_layers = 40\n"),
      HasSubstr("parallelism.pipeline_parallel_last_stage_less_layers: 40 is more than the 18 layers of a stage"));
  EXPECT_THAT(problem(config("local_batch_size = 16\n", "pipeline_parallel_degree = 64\n")),
              HasSubstr("32 layers are too few for 64 stages"));
}

TEST_F(Torchtitan, TypesAreThoseOfMixedPrecision) {
  const auto of = [&](const std::string& training, const std::string& parallelism = "") {
    const Imported imported =
        import_file(write("job.toml", config("local_batch_size = 1\n" + training, parallelism)), {.workers = 1}, "");
    return std::pair(layers_of(parse_scenario(imported.scenario, (folder_ / "job.toml").string())), imported);
  };
  const auto full = of("mixed_precision_param = \"float32\"\n").first;
  EXPECT_EQ(full.dtype, DType::f32);
  EXPECT_EQ(full.parameter_dtype, std::nullopt);
  // Neither fully_shard nor autocast mixes types there.
  const auto tensor = of("", "tensor_parallel_degree = 8\n");
  EXPECT_EQ(tensor.first.dtype, DType::f32);
  EXPECT_THAT(tensor.second.assumed, Contains(HasSubstr("everything is computed in float32")));
  EXPECT_EQ(of("", "tensor_parallel_degree = 4\n").first.dtype, DType::bf16);
  EXPECT_EQ(of("", "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n").first.dtype, DType::bf16);
  EXPECT_THAT(of("mixed_precision_reduce = \"bfloat16\"\n").second.left_out,
              Contains("training.mixed_precision_reduce bfloat16: gradients are added up as they are kept, in float32, "
                       "twice the bytes"));
  EXPECT_THAT(of("dtype = \"bfloat16\"\n").second.left_out,
              Contains(HasSubstr("training.mixed_precision_reduce float32: gradients are added up as they are kept")));
  EXPECT_THAT(problem(config("mixed_precision_reduce = \"float16\"")),
              HasSubstr("training.mixed_precision_reduce: must be float32 or bfloat16, found 'float16'"));
}

TEST_F(Torchtitan, RowsAreDividedUnlessItSaysOtherwise) {
  const std::string tensor = "tensor_parallel_degree = 2\n";
  EXPECT_TRUE(layers_of(scenario(config("", tensor))).sequence_parallel);
  EXPECT_FALSE(layers_of(scenario(config("", tensor + "enable_sequence_parallel = false\n"))).sequence_parallel);
}

}  // namespace
}  // namespace tandem
