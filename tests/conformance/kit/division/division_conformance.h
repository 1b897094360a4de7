// The tests every way to divide a model has to pass, for divisions of one's own: link tandem_division_conformance,
// register the strategy, and write
//
//   INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionConformance, testing::ValuesIn(in_every_mesh({.name = "gpipe"})),
//                            DivisionConformance::name);
//   INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionPredictions, testing::ValuesIn(in_predicted_meshes({.name = "gpipe"})),
//                            DivisionPredictions::name);
//   INSTANTIATE_TEST_SUITE_P(Gpipe, DivisionOfModels, testing::Values(DivisionTraits{.name = "gpipe"}),
//                            DivisionOfModels::name);
//
// Small GPTs are really trained, and predicted, on 2 and 4 devices and on every mesh of that many. What a strategy
// refuses is skipped with its reason. Programs started by mpirun run the tests of the mpi engine on all ranks
// (--gtest_filter=*_mpi).
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace tandem {

struct DivisionTraits {
  std::string name{};  // as registered
  std::string keys{};  // more keys of the strategy, as scenarios have them: "period: 8"
};

struct DivisionUnderTest {
  DivisionTraits traits{};
  std::string engine{};
  std::string model{};     // keys of the workload
  std::string mesh{};      // the strategy's keys
  std::string training{};  // more keys of the workload
  std::string title{};     // of the mesh, for names of tests
  int devices = 2;
};

std::vector<DivisionUnderTest> in_every_mesh(const DivisionTraits& traits);
// Those on engines that model a machine.
std::vector<DivisionUnderTest> in_predicted_meshes(const DivisionTraits& traits);
// Why the strategy does not train so; empty where it does.
std::string refusal_of(const DivisionUnderTest& tested);
std::ostream& operator<<(std::ostream& out, const DivisionUnderTest& tested);
std::ostream& operator<<(std::ostream& out, const DivisionTraits& traits);

class DivisionConformance : public testing::TestWithParam<DivisionUnderTest> {
 public:
  static std::string name(const testing::TestParamInfo<DivisionUnderTest>& info);
};

class DivisionPredictions : public DivisionConformance {};

// What is asked of all meshes together.
class DivisionOfModels : public testing::TestWithParam<DivisionTraits> {
 public:
  static std::string name(const testing::TestParamInfo<DivisionTraits>& info);
};

}  // namespace tandem
