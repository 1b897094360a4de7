// Copies what some blocks of a stage keep for their backward pass to the host, and back: see OffloadSegment. Like
// input, it lies in the memory of the processor that is nearest to the device.
//
// Threads: the task of the stage's device.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/device.h"
#include "strategies/model/offload.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

class ActivationOffload {
 public:
  // `kept[i]`: the bytes that one example's pass keeps up to layer i, itself included. `examples`: of the largest pass.
  // `live`: passes between forward and backward at the same time.
  ActivationOffload(Device& device, Device& host, std::vector<OffloadSegment> segments,
                    const std::vector<std::int64_t>& kept, std::int64_t examples, int live);

  // Called after the work of a layer is issued, and before.
  void after_forward(std::size_t layer, const Pass& pass);
  void before_backward(std::size_t layer, const Pass& pass);

 private:
  struct Segment {
    OffloadSegment layers{};
    std::int64_t bytes = 0;               // of one example
    std::vector<Tensor> on_host{};        // for each pass under way
    std::map<int, Event> gone{}, back{};  // copies of passes under way
  };
  Tensor part(const Tensor& all, const Segment& segment, const Pass& pass) const;
  void copy_out(Segment& segment, const Pass& pass);
  void copy_back(Segment& segment, const Pass& pass);
  void wait_until_gone(const Segment& segment, const Pass& pass);

  Device& device_;
  std::vector<Segment> segments_;
  int live_;
  Tensor on_device_;  // what is copied, without a meaning
};

}  // namespace tandem
