// The part of launch() (cuda_kernels.h) that launches the kernels of layers.
#pragma once

#include "engine/cuda/device/cuda_kernels.h"

namespace tandem::cuda {

struct LayerLaunch {
  const Launcher& at;
  DType rate;

  void operator()(const kernel::BatchedGemm& op) const { launch_batched_gemm(at, op, rate); }
  void operator()(const kernel::Softmax& op) const;
  void operator()(const kernel::SoftmaxGradient& op) const;
  void operator()(const kernel::Normalize& op) const;
  void operator()(const kernel::NormalizeGradient& op) const;
  void operator()(const kernel::NormalizeParameterGradients& op) const;
  void operator()(const kernel::Activate& op) const;
  void operator()(const kernel::ActivationGradient& op) const;
  void operator()(const kernel::Dropout& op) const;
  void operator()(const kernel::GatherRows& op) const;
  void operator()(const kernel::AddRows& op) const;
  void operator()(const kernel::CopyStrided& op) const;
  void operator()(const kernel::Rotary& op) const;
  void operator()(const kernel::RowMaxima& op) const;
  void operator()(const kernel::ExponentialSums& op) const;
  void operator()(const kernel::DividedCrossEntropy& op) const;
  void operator()(const kernel::LargestOfRows& op) const;
  void operator()(const kernel::DispatchRows& op) const;
  void operator()(const kernel::CombineRows& op) const;
  void operator()(const kernel::ExpertWeightGradients& op) const;
  void operator()(const kernel::RaiseMaximum& op) const;
  void operator()(const kernel::Quantise& op) const;
};

}  // namespace tandem::cuda
