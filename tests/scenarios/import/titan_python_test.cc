// Job configurations of torchtitan that are written as Python: functions that return Trainer.Config(...).
#include "scenarios/import/titan/torchtitan.h"

#include <fmt/format.h>

#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kImports = R"(# A comment, with "quotes" and (brackets.
from torchtitan.trainer import Trainer
from torchtitan.config import (
    ParallelismConfig,
    TrainingConfig,
)
from . import model_registry

)";

class TitanPythonFiles : public ImportFiles {
 protected:
  std::filesystem::path python(const std::string& functions) const {
    return write("llama_jobs.py", kImports + functions);
  }
  TitanJob job(const std::string& functions, const std::string& name = "") const {
    return read_titan_job(InputFile(python(functions)), name);
  }
  std::string problem(const std::string& functions, const std::string& name = "") const {
    return refusal([&] { job(functions, name); });
  }
  // The one function that begins in line 10 of the file.
  static std::string function(const std::string& arguments, const std::string& before = "") {
    return "\ndef llama3_8b() -> Trainer.Config:\n" + before +
           "    return Trainer.Config(\n        model_spec=model_registry(\"8B\"),\n" + arguments + "    )\n";
  }
};

// The values of torchtitan's own llama3_405b.
TEST_F(TitanPythonFiles, KeywordsAreTheKeysOfTomlFiles) {
  const TitanJob job = this->job(R"(
def llama3_405b() -> Trainer.Config:
    """A text, which does nothing."""
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-405B",
        profiling=ProfilingConfig(enable_profiling=True, profile_freq=100),
        model_spec=model_registry("405B"),
        model_converters=ModelConvertersContainer.Config(
            converters=[
                Float8LinearConverter.Config(
                    enable_fsdp_float8_all_gather=True,
                    filter_fqns=["output"],
                ),
            ],
        ),
        optimizer=OptimizersContainer.Config(lr=8e-5),
        training=TrainingConfig(local_batch_size=2, seq_len=8_192, steps=3000),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
        parallelism=ParallelismConfig(
            tensor_parallel_degree=8,
            enable_async_tensor_parallel=True,
            data_parallel_shard_degree=-1,
        ),
        activation_checkpoint=ActivationCheckpointConfig(mode="full"),
        compile=CompileConfig(enable=True),
    )
)");
  EXPECT_EQ(job.name, "llama3-405B");
  EXPECT_EQ(job.model, "llama");
  EXPECT_THAT(job.model_sizes, Contains(std::pair<std::string, std::int64_t>("layers", 126)));
  EXPECT_EQ(job.tokens, 8192);
  EXPECT_EQ(job.local_batch, 2);
  EXPECT_EQ(job.tensor, 8);
  EXPECT_EQ(job.shards, 0) << "all that are left";
  EXPECT_TRUE(job.overlaps_tensor);
  EXPECT_TRUE(job.compiles);
  EXPECT_EQ(job.precision, "fp8");
  EXPECT_TRUE(job.gathers_fp8);
  EXPECT_EQ(job.again, "true");
}

TEST_F(TitanPythonFiles, AJobBecomesTheScenarioOfItsTomlFile) {
  const auto toml = write("job.toml",
                          "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = "
                          "4096\n[parallelism]\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = "
                          "\"selective\"\nselective_ac_option = \"op\"\n");
  const auto file =
      python(function("        training=TrainingConfig(local_batch_size=1, seq_len=4096),\n"
                      "        parallelism=ParallelismConfig(tensor_parallel_degree=2),\n"
                      "        activation_checkpoint=ActivationCheckpointConfig(mode=\"selective\"),\n"));
  const Imported imported = import_file(InputFile(file), {}, "");
  EXPECT_EQ(imported.kind, ImportKind::torchtitan);
  EXPECT_EQ(imported.scenario, import_file(InputFile(toml), {}, "").scenario);
}

TEST_F(TitanPythonFiles, FunctionsChangeWhatOthersReturn) {
  const std::string functions = R"(
def llama3_8b() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"), training=TrainingConfig(seq_len=2048))

def llama3_8b_long() -> Trainer.Config:
    config = llama3_8b()
    config.training.seq_len = 16384
    config.optimizer = OptimizersInBackwardContainer.Config(lr=8e-4)
    return config

def llama3_70b() -> Trainer.Config:
    from torchtitan.models.common import FlexAttention

    def helper(sample):
        return [sample]

    spec = model_registry("70B")
    assert isinstance(spec, object)
    for layer in spec.layers:
        layer.attention = FlexAttention()
    return Trainer.Config(model_spec=spec)
)";
  EXPECT_EQ(job(functions, "llama3_8b").tokens, 2048);
  const TitanJob longer = job(functions, "llama3_8b_long");
  EXPECT_EQ(longer.tokens, 16384);
  EXPECT_THAT(longer.left_out, Contains(HasSubstr("optimizer.early_step_in_backward")));
  const TitanJob large = job(functions, "llama3_70b");
  EXPECT_EQ(large.name, "llama3-70B");
  EXPECT_THAT(large.left_out, Contains("27:5: for ...: what this statement changes"));
  EXPECT_EQ(problem(functions),
            "llama_jobs.py:1:1: has several configurations, of which `tandem import` takes one by --config: llama3_8b, "
            "llama3_8b_long, "
            "llama3_70b");
  EXPECT_EQ(problem(functions, "llama3_1b"),
            "llama_jobs.py:1:1: has no configuration 'llama3_1b' (--config); it has llama3_8b, llama3_8b_long, "
            "llama3_70b");
}

// torchtitan/models/llama3/config_registry.py; elsewhere the function's name says the model.
TEST_F(TitanPythonFiles, TheFolderOfModelsSaysWhichOneItIs) {
  std::filesystem::create_directories(folder_ / "models" / "llama3");
  const std::string text = kImports + function("").replace(function("").find("llama3_8b"), 9, "sft_large");
  EXPECT_EQ(read_titan_job(InputFile(write("models/llama3/config_registry.py", text))).name, "llama3-8B");
  EXPECT_THAT(refusal([&] { read_titan_job(InputFile(write("config_registry.py", text))); }),
              HasSubstr("model.flavor: the sizes of sft-8B are known here"));
}

TEST_F(TitanPythonFiles, VariablesAreConfigurationsToo) {
  const TitanJob job = this->job(
      "default_config = Trainer.Config(\n    model=ModelConfig(name=\"llama3\", flavor=\"8B\"),\n"
      "    training=TrainingConfig(seq_len=4096),\n    activation_checkpoint=ActivationCheckpointConfig(\n"
      "        mode=\"selective\", selective_ac_option=\"3\"),\n)\n");
  EXPECT_EQ(job.name, "llama3-8B");
  EXPECT_EQ(job.tokens, 4096);
  EXPECT_EQ(job.again, "{every: 3}");
}

TEST_F(TitanPythonFiles, WhatIsNoLiteralIsNamedWithItsPlace) {
  EXPECT_EQ(problem(function("        training=TrainingConfig(seq_len=2 * kLength),\n")),
            "llama_jobs.py:13:41: training.seq_len: is no literal value; put the number or text in its place");
  EXPECT_EQ(problem(function("        training=make_training(),\n")),
            "llama_jobs.py:13:18: training: is no literal value; put the number or text in its place");
  EXPECT_EQ(problem(function("        training=TrainingConfig(),\n        parallelism=PARALLEL,\n")),
            "llama_jobs.py:14:21: parallelism: is no literal value; put the number or text in its place");
  EXPECT_EQ(problem("\ndef f() -> Trainer.Config:\n    return Trainer.Config(model_spec=model_registry(flavor()))\n"),
            "llama_jobs.py:11:53: model.flavor: is no literal value; put the number or text in its place");
  // A key that decides nothing here may be anything.
  EXPECT_THAT(job(function("        training=TrainingConfig(steps=10 * 100),\n")).left_out,
              Contains("13:39: training.steps is no literal value"));
}

// What TOML has no word for is no literal, either; what it refuses is refused at its place in the Python file.
TEST_F(TitanPythonFiles, NothingIsReplacedByADefault) {
  for (const char* value : {"int(\"4096\")", "[4096]", "get()"}) {
    EXPECT_THAT(problem(function(fmt::format("        training=TrainingConfig(seq_len={}),\n", value))),
                HasSubstr("training.seq_len: is no literal value"))
        << value;
  }
  for (const char* section : {"get_training(8)", "TrainingConfig(1, 8192)", "3"}) {
    EXPECT_THAT(problem(function(fmt::format("        training={},\n", section))),
                HasSubstr("training: is no literal value"))
        << section;
  }
  EXPECT_EQ(job(function("        training=None,\n")).tokens, 2048);
  for (const char* converters :
       {"get(1)", "C(converters=get())", "C(converters=[Float8LinearConverter.Config()] + more)"}) {
    EXPECT_THAT(problem(function(fmt::format("        model_converters={},\n", converters))),
                HasSubstr("model.converters: is no literal value"))
        << converters;
  }
  for (const char* number : {"0008192", "99999999999999999999999", "1.5j"}) {
    EXPECT_THAT(problem(function(fmt::format("        training=TrainingConfig(seq_len={}),\n", number))),
                testing::ContainsRegex("llama_jobs.py:1[0-9]:.*"))
        << number;
  }
  EXPECT_THAT(problem(function("        training=TrainingConfig(seq_len=8192, seq_len=4096),\n")),
              HasSubstr("cannot be read"));
  EXPECT_EQ(job(function("        training=TrainingConfig(dataset=\"a\x01\x7f\", seq_len=4096),\n")).tokens, 4096);
  std::string keys;
  for (int i = 0; i < 50'000; ++i) keys += ".a";
  EXPECT_THAT(problem("\ndef f():\n    c = Trainer.Config(model_spec=model_registry(\"8B\"))\n    c" + keys +
                      " = 1\n    return c\n"),
              HasSubstr("is nested too deeply"));
}

TEST_F(TitanPythonFiles, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(problem(function("        training=TrainingConfig(seq_len=\"long\"),\n")),
            "llama_jobs.py:13:41: training.seq_len: expected a whole number");
  EXPECT_EQ(problem(function("        training=TrainingConfig(\n            seq_len=0,\n        ),\n")),
            "llama_jobs.py:14:21: training.seq_len: must be from 1 to 16777216, found 0");
  EXPECT_EQ(problem("\nconfig = Trainer.Config(\n    training=TrainingConfig(\n"),
            "llama_jobs.py:11:28: '(' is not closed");
  EXPECT_EQ(problem("\nconfig = Trainer.Config(name=\"8B)\n"), "llama_jobs.py:10:30: the text does not end");
  EXPECT_EQ(problem("\nconfig = Trainer.Config())\n"), "llama_jobs.py:10:26: ')' closes nothing");
  EXPECT_EQ(problem("\nconfig = Trainer.Config(]\n"), "llama_jobs.py:10:25: ']' closes a '('");
  EXPECT_EQ(problem("\nnumber = len(Trainer.Config())\n"),
            "llama_jobs.py:1:1: makes no configuration: expected a function that returns Trainer.Config(...)");
  EXPECT_EQ(problem("\nconfig = Trainer.Config(" + std::string(200, '[') + std::string(200, ']') + ")\n"),
            "llama_jobs.py:10:124: is nested too deeply");
  std::string doubling = "\nv0 = [1, 1]\n";
  for (int i = 1; i < 40; ++i) doubling += fmt::format("v{} = [v{}(), v{}()]\n", i, i - 1, i - 1);
  EXPECT_EQ(problem(doubling + "config = Trainer.Config(a=v39())\n"),
            "llama_jobs.py:1:1: is larger than any configuration: more than a million values");
  const auto toml = write("job.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n");
  EXPECT_THAT(refusal([&] { import_file(InputFile(toml), {.config = "llama3_8b"}, ""); }),
              HasSubstr("has one configuration; --config is for Python files of torchtitan"));
}

TEST_F(TitanPythonFiles, NamesArgumentsThatItDoesNotKnow) {
  const TitanJob job =
      this->job(function("        overlap=Overlap.Config(),\n        metrics=Metrics.Config(),\n"
                         "        training=TrainingConfig(seq_length=8),\n"));
  EXPECT_THAT(job.left_out, Contains("13:17: overlap: not known here; what it changes is left out"));
  EXPECT_THAT(job.left_out, Contains("training.seq_length: not known here; what it changes is left out"));
  EXPECT_THAT(job.left_out, testing::Not(Contains(HasSubstr("metrics"))));
  EXPECT_THAT(problem(function("        compile=CompileConfig(enable=\"False\"),\n")),
              HasSubstr("13:38: compile.enable: expected true or false, without quotes, found 'False'"));
}

}  // namespace
}  // namespace tandem
