// Makes a test program that was started with a TF_CONFIG one task of that cluster, whose workers the mpi engine then
// spreads over the tasks as over the ranks of a launch. The runs of tests have other workers than TF_CONFIG's, so their
// strategies must not read it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {
namespace {

class TaskOfTfConfig : public testing::Environment {
  void SetUp() override {
    if (std::getenv("TF_CONFIG") == nullptr) return;
    start_task_of(TfConfigResolver());
    unsetenv("TF_CONFIG");
  }
};
[[maybe_unused]] const testing::Environment* const kTask = testing::AddGlobalTestEnvironment(new TaskOfTfConfig);

}  // namespace
}  // namespace tandem
