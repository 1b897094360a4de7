// Why a key of `workload.stack` has no effect on a job whose workload is layers; empty where it has one.
#pragma once

#include <string>

#include "scenarios/job/job.h"

namespace tandem {

// `is_read`: whether the layout of some convolution decided a time.
std::string why_stack_layout(const Job& job, bool is_read);
std::string why_stack_fusion(const Job& job);
std::string why_stack_attention(const Job& job);
std::string why_stack_accumulation(const Job& job);
std::string why_stack_loss(const Job& job);
std::string why_stack_experts(const Job& job);

}  // namespace tandem
