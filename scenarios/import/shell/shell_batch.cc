#include "scenarios/import/shell/shell_batch.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem {

void set_batch_variables(const std::vector<ShellToken>& words, ShellValues& values) {
  struct Known {
    std::string_view option, variable;
  };
  static constexpr std::array kKnown = {
      Known{"--nodes", "SLURM_NNODES"},
      Known{"--nodes", "SLURM_JOB_NUM_NODES"},
      Known{"-N", "SLURM_NNODES"},
      Known{"-N", "SLURM_JOB_NUM_NODES"},
      Known{"--ntasks", "SLURM_NTASKS"},
      Known{"-n", "SLURM_NTASKS"},
      Known{"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
      Known{"--gpus-per-node", "SLURM_GPUS_PER_NODE"},
      Known{"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
      Known{"--gres", "SLURM_GPUS_ON_NODE"},
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].pieces.front().text;
    const std::size_t equals = text.find('=');
    std::string value = equals != std::string::npos ? text.substr(equals + 1)
                        : i + 1 < words.size()      ? words[i + 1].pieces.front().text
                                                    : "";
    if (const std::size_t colon = value.rfind(':'); colon != std::string::npos)
      value = value.substr(colon + 1);  // gpu:8
    for (const Known& known : kKnown) {
      if (text.substr(0, equals) != known.option || value.empty()) continue;
      values.set(std::string(known.variable),
                 {{.text = value, .shown = value, .line = words[i].line, .column = words[i].column}}, words[i].line, 1);
    }
  }
}

}  // namespace tandem
