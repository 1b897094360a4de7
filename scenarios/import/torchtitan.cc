#include "scenarios/import/torchtitan.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/python/titan_python.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostDegree = 1 << 20;
constexpr std::int64_t kMostSequences = 1 << 28;
constexpr std::int64_t kMostTokens = 1 << 24;

constexpr std::int64_t kBeginningBytes = std::int64_t{1} << 16;

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

// torchtitan/models/llama3: the flavors of Llama 3.1.
const std::map<std::string, Sizes>& llama_flavors() {
  static const std::map<std::string, Sizes> kFlavors{
      {"8B", {}},
      {"70B", {{"hidden", 8192}, {"heads", 64}, {"intermediate", 28672}, {"layers", 80}}},
      {"405B", {{"hidden", 16384}, {"heads", 128}, {"intermediate", 53248}, {"layers", 126}}}};
  return kFlavors;
}

struct Silent {
  std::string_view section, key, why;
};
// Keys that change the time of a step and are not modelled.
constexpr std::array kSilentKeys = {
    Silent{"training", "enable_cpu_offload", "the optimizer works on the device"},
    Silent{"training", "deterministic", "slower kernels that give equal results"},
    Silent{"parallelism", "pipeline_parallel_schedule_csv", "the schedule is 1F1B"},
    Silent{"optimizer", "early_step_in_backward", "the optimizer follows the backward pass"},
    Silent{"experimental", "custom_import", "what it changes is left out"},
};

class TitanReader {
 public:
  TitanReader(const InputFile& file, const std::string& name) : file_(file) {
    if (is_titan_python(beginning_of(file, kBeginningBytes))) {
      python_ = read_titan_python(file, name);
      root_ = parse_python();
    } else if (!name.empty()) {
      throw InputError({problem_at(file.name(), {.line = 1, .column = 1},
                                   "has one configuration; --config is for Python files of torchtitan")});
    } else {
      root_ = parse(file);
    }
  }

  TitanJob read() {
    read_training();
    read_parallelism();
    read_model();
    read_precision();
    read_recomputation();
    for (const Silent& silent : kSilentKeys) {
      if (is_on(silent.section, silent.key)) {
        job_.left_out.push_back(fmt::format("{}.{}: {}", silent.section, silent.key, silent.why));
      }
    }
    if (number("training", "max_norm", 1) > 0) {
      job_.left_out.emplace_back("training.max_norm: the norm of the gradients takes no time");
    }
    if (python_) name_unread();
    return std::move(job_);
  }

 private:
  static toml::table parse(const InputFile& file) {
    try {
      return toml::parse(file.text(), file.name());
    } catch (const toml::parse_error& error) {
      const auto& at = error.source().begin;
      throw InputError(
          {problem_at(file.name(), {.line = static_cast<int>(at.line), .column = static_cast<int>(at.column)},
                      std::string(error.description()))});
    }
  }

  // Numbers and texts of Python that TOML does not have, and keys that are given twice.
  toml::table parse_python() const {
    try {
      return toml::parse(python_->toml);
    } catch (const toml::parse_error& error) {
      const std::size_t line = std::clamp<std::size_t>(error.source().begin.line, 1, python_->places.size()) - 1;
      const TitanPython::Place& place = python_->places.at(line);
      throw InputError({problem_at(file_.name(), {.line = place.line, .column = place.column},
                                   fmt::format("cannot be read: {}", error.description()))});
    }
  }

  // What is no literal, and was not needed.
  void name_unread() {
    job_.left_out.insert(job_.left_out.end(), python_->left_out.begin(), python_->left_out.end());
    for (const auto& [key, place] : python_->unread) {
      job_.left_out.push_back(fmt::format("{}:{}: {} is no literal value", place.line, place.column, key));
    }
  }

  // Fails where the value is written as Python that only a program can tell.
  void check_is_read(std::string_view section, std::string_view key) const {
    if (!python_) return;
    for (const std::string& path : {std::string(section), fmt::format("{}.{}", section, key)}) {
      const auto unread = python_->unread.find(path);
      if (unread == python_->unread.end()) continue;
      const auto [line, column] = unread->second;
      throw InputError({problem_at(file_.name(), {.line = line, .column = column},
                                   "is no literal value; put the number or text in its place", path)});
    }
  }

  const toml::node* find(std::string_view section, std::string_view key) const {
    check_is_read(section, key);
    return root_.at_path(fmt::format("{}.{}", section, key)).node();
  }

  [[noreturn]] void fail(std::string_view section, std::string_view key, const std::string& message) const {
    const toml::node* node = find(section, key);
    if (node == nullptr) node = root_.get(section);
    const toml::source_position at = node == nullptr ? toml::source_position{1, 1} : node->source().begin;
    int line = static_cast<int>(at.line), column = static_cast<int>(at.column);
    if (python_) {
      const TitanPython::Place& place = python_->places.at(static_cast<std::size_t>(line) - 1);
      line = place.line;
      column = place.column;
    }
    throw InputError(
        {problem_at(file_.name(), {.line = line, .column = column}, message, fmt::format("{}.{}", section, key))});
  }

  std::int64_t whole(std::string_view section, std::string_view key, std::int64_t usual, std::int64_t least,
                     std::int64_t most) const {
    const toml::node* node = find(section, key);
    if (node == nullptr) return usual;
    const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
    if (!value) fail(section, key, "expected a whole number");
    if (*value >= least && *value <= most) return *value;
    fail(section, key, fmt::format("must be from {} to {}, found {}", least, most, *value));
  }

  double number(std::string_view section, std::string_view key, double usual) const {
    const toml::node* node = find(section, key);
    if (node == nullptr) return usual;
    const std::optional<double> value = node->value<double>();
    if (!value) fail(section, key, "expected a number");
    return *value;
  }

  std::string text(std::string_view section, std::string_view key, std::string_view usual) const {
    const toml::node* node = find(section, key);
    if (node == nullptr) return std::string(usual);
    const std::optional<std::string> value = node->value_exact<std::string>();
    if (!value) fail(section, key, "expected a text");
    return *value;
  }

  // Switches that are on, and texts that are not empty.
  bool is_on(std::string_view section, std::string_view key) const {
    const toml::node* node = find(section, key);
    if (node == nullptr) return false;
    if (const auto value = node->value_exact<bool>()) return *value;
    const auto value = node->value_exact<std::string>();
    return value && !value->empty();
  }

  void read_training() {
    job_.tokens = whole("training", "seq_len", 2048, 1, kMostTokens);
    const std::int64_t older = whole("training", "batch_size", 8, 1, kMostSequences);
    job_.local_batch = whole("training", "local_batch_size", older, 1, kMostSequences);
    job_.global_batch = std::max<std::int64_t>(0, whole("training", "global_batch_size", -1, -1, kMostSequences));
    job_.keeps_f32 = text("training", "dtype", "float32") == "float32";
    job_.compiles = is_on("compile", "enable") || is_on("training", "compile");
    job_.overlaps_tensor = job_.compiles && (is_on("parallelism", "enable_async_tensor_parallel") ||
                                             is_on("experimental", "enable_async_tensor_parallel"));
    const std::string optimizer = text("optimizer", "name", "AdamW");
    if (optimizer != "Adam" && optimizer != "AdamW") {
      job_.left_out.push_back(fmt::format("optimizer.name {}: it takes the time of AdamW", optimizer));
    }
  }

  std::int64_t degree(std::string_view key) const { return whole("parallelism", key, 1, 1, kMostDegree); }

  void read_parallelism() {
    job_.copies = degree("data_parallel_replicate_degree");
    const std::int64_t shards = whole("parallelism", "data_parallel_shard_degree", -1, -1, kMostDegree);
    if (shards == 0) fail("parallelism", "data_parallel_shard_degree", "must be -1 (all that are left) or at least 1");
    job_.shards = std::max<std::int64_t>(0, shards);
    job_.tensor = degree("tensor_parallel_degree");
    job_.pipeline = degree("pipeline_parallel_degree");
    job_.context = degree("context_parallel_degree");
    job_.expert = degree("expert_parallel_degree");
    job_.micro_batch = whole("parallelism", "pipeline_parallel_microbatch_size", 1, 1, kMostSequences);
    if (job_.pipeline > 1 && job_.local_batch % job_.micro_batch != 0) {
      fail("parallelism", "pipeline_parallel_microbatch_size",
           fmt::format("{} does not divide the local batch of {}", job_.micro_batch, job_.local_batch));
    }
    if (job_.pipeline > 1) read_schedule();
    read_gathering();
  }

  // By default parameters that are gathered for a forward pass stay until the end of the step in pipelines only.
  void read_gathering() {
    const std::string when = text("parallelism", "fsdp_reshard_after_forward", "default");
    if (when != "default" && when != "always" && when != "never") {
      fail("parallelism", "fsdp_reshard_after_forward", "must be default, always or never");
    }
    job_.gathers_each_pass = when == "always" || (when == "default" && job_.pipeline == 1);
  }

  // Looped schedules have two stages a device unless the layers of a stage are given.
  void read_schedule() {
    const std::string schedule = text("parallelism", "pipeline_parallel_schedule", "1F1B");
    if (schedule == "1F1B") return;
    if (schedule == "Interleaved1F1B" || schedule == "InterleavedZeroBubble") job_.virtual_stages = 2;
    const std::pair<std::string_view, PipelineOrder> orders[] = {
        {"Interleaved1F1B", PipelineOrder::one_forward_one_backward},
        {"InterleavedZeroBubble", PipelineOrder::zero_bubble},
        {"ZBVZeroBubble", PipelineOrder::zero_bubble_v},
        {"DualPipeV", PipelineOrder::dual_pipe_v}};
    const auto* const order =
        std::ranges::find(orders, std::string_view(schedule), &std::pair<std::string_view, PipelineOrder>::first);
    if (order == std::end(orders)) {
      job_.left_out.push_back(fmt::format("parallelism.pipeline_parallel_schedule {}: the schedule is 1F1B", schedule));
    } else if (order->second != PipelineOrder::one_forward_one_backward) {
      job_.schedule = name_of(order->second);
    }
  }

  // Models beside Llama 3 are read from the files of Hugging Face that the configuration names.
  void read_model() {
    const std::string name = text("model", "name", "llama3"), flavor = text("model", "flavor", "debugmodel");
    job_.name = fmt::format("{}-{}", name, flavor);
    const auto known = llama_flavors().find(flavor.substr(0, flavor.find('_')));  // "8B_flex"
    if (name == "llama3" && known != llama_flavors().end()) {
      if (job_.expert > 1) fail("parallelism", "expert_parallel_degree", "the model has no experts");
      job_.model = "llama";
      job_.model_sizes = known->second;
      return;
    }
    const std::string folder = text("model", "hf_assets_path", "");
    const fs::path config = file_.path().parent_path() / folder / "config.json";
    std::error_code ignored;
    if (!folder.empty() && fs::is_regular_file(config, ignored)) {
      job_.config = (fs::path(folder) / "config.json").lexically_normal().string();
      return;
    }
    fail("model", "flavor",
         fmt::format("the sizes of {} are known here for 8B, 70B and 405B of llama3; for others, put the model's "
                     "config.json into the folder of hf_assets_path",
                     job_.name));
  }

  void read_precision() {
    const toml::node* converters = find("model", "converters");
    const toml::array* names = converters == nullptr ? nullptr : converters->as_array();
    if (converters != nullptr && names == nullptr) fail("model", "converters", "expected a list of texts");
    const auto has = [&](std::string_view name) {
      return names != nullptr && std::any_of(names->begin(), names->end(), [&](const toml::node& one) {
               return one.value_or(std::string()).find(name) != std::string::npos;
             });
    };
    if (has("mx")) {
      job_.precision = "mxfp8";
    } else if (has("float8")) {
      job_.precision = "fp8";
      const std::string_view section = has("quantize.linear.float8") ? "quantize.linear.float8" : "float8";
      job_.gathers_fp8 = is_on(section, "enable_fsdp_float8_all_gather");
      read_recipe(section, text(section, "recipe_name", "tensorwise"));
    }
  }

  // torchao.float8.Float8LinearRecipeName; only scales of tensors go with parameters that are gathered in fp8.
  void read_recipe(std::string_view section, const std::string& name) {
    if (name == "tensorwise") return;
    if (name != "rowwise" && name != "rowwise_with_gw_hp") {
      fail(section, "recipe_name", fmt::format("must be tensorwise, rowwise or rowwise_with_gw_hp, found '{}'", name));
    }
    job_.recipe = "rowwise";
    job_.gathers_fp8 = false;
    if (name == "rowwise") return;
    job_.left_out.push_back(
        fmt::format("{}.recipe_name {}: gradients of weights are computed in fp8, too", section, name));
  }

  void read_recomputation() {
    const std::string mode = text("activation_checkpoint", "mode", "selective");
    if (mode == "none") return;
    if (mode == "full") {
      job_.again = "true";
      return;
    }
    if (mode != "selective") {
      fail("activation_checkpoint", "mode", fmt::format("must be none, selective or full, found '{}'", mode));
    }
    const std::string option = text("activation_checkpoint", "selective_ac_option", "2");
    const bool is_number =
        !option.empty() && std::all_of(option.begin(), option.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (option != "op" && (!is_number || option.size() > 4 || std::stoi(option) == 0)) {
      fail("activation_checkpoint", "selective_ac_option",
           fmt::format("must be op or a number of layers, found '{}'", option));
    }
    job_.again = option == "op" ? "operations" : option == "1" ? "true" : fmt::format("{{every: {}}}", option);
  }

  const InputFile& file_;
  std::optional<TitanPython> python_{};  // of a file that is no TOML
  toml::table root_{};
  TitanJob job_;
};

}  // namespace

bool is_titan_job(std::string_view text) {
  const auto has_line = [&](std::string_view begin) {
    return text.starts_with(begin) || text.find("\n" + std::string(begin)) != std::string_view::npos;
  };
  return is_titan_python(text) || (has_line("[model]") && has_line("[training]") && has_line("flavor"));
}

TitanJob read_titan_job(const InputFile& file, const std::string& name) {
  return TitanReader(file, name).read();
}

}  // namespace tandem
