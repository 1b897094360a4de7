#include "scenarios/run/unused_stack_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"

namespace tandem {
namespace {

// Layers that are computed have one kernel for each operation, whatever the stack.
std::string why_any(const Job& job) {
  return job.layers->learning ? "layers that are computed (values: real) have kernels of their own" : "";
}

std::string has_no(const Job& job, const char* what) {
  return fmt::format("model '{}' has no {}", job.layers->model.name, what);
}

}  // namespace

std::string why_stack_layout(const Job& job, bool is_read) {
  if (std::string reason = why_any(job); !reason.empty()) return reason;
  const auto is_convolution = [](const Layer& layer) { return layer.convolution.has_value(); };
  if (std::ranges::none_of(job.layers->model.layers, is_convolution)) return has_no(job, "convolutions");
  if (!job.models_machine) return fmt::format("engine '{}' computes convolutions as matrix products", job.engine.name);
  return is_read ? "" : "no convolution runs on matrix units";
}

std::string why_stack_fusion(const Job& job) {
  if (std::string reason = why_any(job); !reason.empty()) return reason;
  return job.layers->model.depends_on_stack() ? "" : has_no(job, "operations beside its layers");
}

std::string why_stack_attention(const Job& job) {
  if (std::string reason = why_any(job); !reason.empty()) return reason;
  const auto has_scores = [](const Layer& layer) { return layer.scores != Layer::Scores::none; };
  return std::ranges::any_of(job.layers->model.layers, has_scores) ? "" : has_no(job, "attention");
}

// Shards of gradients are added up after they were reduced.
std::string why_stack_accumulation(const Job& job) {
  if (std::string reason = why_any(job); !reason.empty()) return reason;
  const int steps = job.layers->gradient_accumulation_steps;
  if (job.mesh && steps > 1) return "no device adds up gradients of whole layers";
  return std::max(steps, job.mesh ? job.mesh->micro_batches : 1) > 1 ? "" : "gradients come from one pass";
}

std::string why_stack_loss(const Job& job) {
  if (std::string reason = why_any(job); !reason.empty()) return reason;
  return job.layers->model.has_operation(Pointwise::cross_entropy) ? "" : has_no(job, "cross_entropy");
}

std::string why_stack_experts(const Job& job) {
  const bool has_some = std::ranges::any_of(job.layers->model.layers, is_of_experts);
  return has_some ? "" : "the model has no experts";
}

}  // namespace tandem
