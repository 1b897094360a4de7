// Attention: queries, keys and values by head, their products, and softmax of the scores (Vaswani and others,
// arXiv:1706.03762). A `mask` makes it causal.
//
// Matrices by head have the order [example, group, head of the group, token, element]: the heads of a group share keys
// and values. With context parallelism a device has the queries, keys and values of its tokens, and gathers the keys
// and values of the whole sequence for the products.
#pragma once

#include <memory>

#include "scenarios/workloads/computed/computed_layer.h"

namespace tandem {

// Queries, keys and values of one attention, with their gradients.
class AttentionTensors {
 public:
  // `scores` is the layer of the scores.
  AttentionTensors(StageState& state, std::size_t scores);

  enum class Role : std::uint8_t { queries, keys, values };
  Tensor matrix(Role role, const Pass& pass) const;    // of this device's tokens: [products, rows, width]
  Tensor gradient(Role role, const Pass& pass) const;  // likewise
  // Keys or values of the whole sequence, in the order of the devices (or their gradients), and as matrices. Without
  // context parallelism, the matrices are those of the device: `of_gradient`, their gradients.
  Tensor gathered(Role role, const Pass& pass) const;
  Tensor whole(Role role, const Pass& pass, bool of_gradient) const;
  // Puts what was gathered in the order of tokens; and the gradients of the whole sequence in the order of the devices.
  void order_tokens(Role role, const Pass& pass) const;
  void order_devices(Role role, const Tensor& gradients, const Pass& pass) const;

  // Copies the output of a projection to the matrices by head, and the gradients of these back.
  void divide_heads(std::size_t projection, const Tensor& output, const Pass& pass) const;
  void join_heads(std::size_t projection, const Tensor& output, const Pass& pass) const;

  const Heads& heads() const { return heads_; }    // of this device
  std::int64_t tokens() const { return tokens_; }  // of this device
  std::int64_t all_tokens() const { return tokens_ * state_.part().division.context; }
  std::int64_t width_of(Role role) const {
    return heads_.width * (role == Role::queries ? heads_.count : heads_.groups());
  }
  // Copies [example, head, token, element] to or from columns of rows [example, token].
  void copy_heads(const Tensor& by_head, const Tensor& rows, std::int64_t heads, bool to_rows, const Pass& pass) const;

 private:
  struct Matrices {
    Kept value{};
    Tensor gradient{}, raw{}, whole{};  // `raw` and `whole` of keys and values, with context parallelism
  };
  void copy(std::size_t projection, const Tensor& output, const Pass& pass, bool to_heads) const;
  void turn(const Tensor& matrix, bool backward) const;

  StageState& state_;
  Heads heads_;
  std::int64_t tokens_;
  bool is_rotary_ = false;
  std::array<Matrices, 3> matrices_{};
};

std::unique_ptr<ComputedLayer> make_scores_layer(StageState& state, std::size_t layer,
                                                 std::shared_ptr<AttentionTensors> attention);
std::unique_ptr<ComputedLayer> make_mixed_layer(StageState& state, std::size_t layer,
                                                std::shared_ptr<AttentionTensors> attention);

}  // namespace tandem
