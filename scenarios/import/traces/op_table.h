// Reads tables of recorded ops, CSV with a heading, plain or as gzip files: the columns dp_rank, stage, rank, step,
// optype, start_ts, duration (seconds), seq_id, and, where a stage has several parts of the model, mc and gmc. Others
// are ignored.
#pragma once

#include <vector>

#include "reports/blame/pipeline_job.h"
#include "scenarios/import/base/input_file.h"

namespace tandem {

// Reads the file as a stream. Throws InputError at the first cell that is wrong.
std::vector<PipelineOp> read_op_table(const InputFile& file);

// Reads the sizes of the job that such a table is of: a file with dp_size, dsp_size, pp_size, tp_size, vpp_size,
// world_size, trial_name and run_id, none of which must be there. Throws InputError.
PipelineSizes read_op_table_sizes(const InputFile& file);

}  // namespace tandem
