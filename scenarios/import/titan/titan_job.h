// What a job of torchtitan says, and where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/parallel/layout/parallel_options.h"
#include "topologies/base/error.h"

namespace tandem {

// How many stages of a pipeline each device may have with a schedule.
struct TitanStages {
  std::int64_t least = 1, most = 1, usual = 1;
  bool is_v = false;  // the schedule places both of them, from either end of the pipeline
};

struct TitanJob {
  std::string file;                                                 // its name in messages
  std::map<std::string, FilePlace> places{};                        // of the keys that it has: "training.seq_len"
  std::string name;                                                 // "llama3-8B"
  std::vector<std::pair<std::string, std::int64_t>> model_sizes{};  // of the packaged model
  std::string model{};                                              // packaged; empty: that of `config`
  std::string config{};  // a config.json of Hugging Face, by its path from the job's file
  std::int64_t tokens = 2048;
  std::int64_t local_batch = 8, global_batch = 0;  // sequences; 0: local_batch of each replica
  std::int64_t shards = 0, copies = 1;             // devices that divide parameters (0: all others), and groups of them
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  ContextExchange context_exchange = ContextExchange::all_gather;
  std::int64_t expert_tensor = 0;  // devices that divide each expert; 0: tensor
  std::int64_t micro_batch = 1;    // of a pipeline
  TitanStages stages{};
  std::int64_t blocks = 0;           // of the model; 0: that of `config` has them
  std::int64_t blocks_of_stage = 0;  // 0: as many stages as the schedule usually has
  // How many blocks the embedding of the first stage, and the norm and the output of the last one, count as.
  std::int64_t first_less = 1, last_less = 1;
  std::string schedule{};         // strategy.schedule; empty: the usual one
  bool gathers_each_pass = true;  // parameters that are divided; false: once a step
  bool keeps_f32 = true;          // parameters and their gradients
  bool computes_f32 = false;      // where parameters are divided, or replicas alone share the work; else as keeps_f32
  bool reduces_f32 = true;        // gradients of parameters that are divided
  bool sequence_parallel = true;  // with tensor
  bool compiles = false, overlaps_tensor = false, gathers_fp8 = false;
  bool keeps_bf16_moments = false;  // else as parameters
  std::string precision{};          // "fp8", "mxfp8"; empty: none
  std::string recipe{};             // of fp8; empty: a scale for each tensor
  std::string again{};              // the value of activation_checkpointing; empty: none
  std::vector<std::string> left_out{};

  // Returns a key, or where the job does not have it the beginning of its file, as the place of a problem without a
  // message.
  Diagnostic place_of(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;  // throws InputError there
};

}  // namespace tandem
