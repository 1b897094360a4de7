// Why a key of `recovery` has no effect on a job; empty where it has one.
#pragma once

#include <string>

#include "scenarios/job/job.h"

namespace tandem {

std::string why_recovery(const Job& job);  // a key that only a lost worker gives an effect
std::string why_every(const Job& job);
std::string why_directory(const Job& job);
std::string why_policy(const Job& job);
std::string why_checkpoint_time(const Job& job);
std::string why_overlapped(const Job& job);

}  // namespace tandem
