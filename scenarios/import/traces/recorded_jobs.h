// Files of recorded timelines as jobs that can be replayed (reports/blame).
#pragma once

#include <filesystem>
#include <vector>

#include "reports/blame/recorded_job.h"
#include "scenarios/import/traces/trace.h"

namespace tandem {

// Reads the files of one job: a table of ops (op_table.h) and, if wanted, the file of its sizes, whose name ends in
// ".yaml" or ".yml"; or traces of PyTorch's profiler, a rank each. Throws InputError.
RecordedJob read_recorded_job(const std::vector<std::filesystem::path>& files);

// Returns the job of ranks that a profiler recorded. Steps that it marked become the job's steps where every rank did
// the same in each; else the whole record is one step. Ranks that send to each other are the stages of a replica. Ops
// are alike if they have the same name and are the n-th of it in the step.
RecordedJob job_of_traces(const std::vector<RankTrace>& traces);

}  // namespace tandem
