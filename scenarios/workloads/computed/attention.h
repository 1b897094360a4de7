// Attention: queries, keys and values by head, their products, and softmax of the scores (Vaswani and others,
// arXiv:1706.03762). A `mask` makes it causal.
//
// Matrices by head have the order [example, group, head of the group, token, element]: the heads of a group share keys
// and values. With context parallelism a device has the queries, keys and values of its tokens, and gathers the keys
// and values of the whole sequence for the products; or it exchanges heads of these for the same heads of all tokens.
#pragma once

#include <memory>

#include "engine/layer_ops.h"
#include "scenarios/workloads/computed/computed_layer.h"

namespace tandem {

// Queries, keys and values of one attention, with their gradients.
class AttentionTensors {
 public:
  // `scores` is the layer of the scores.
  AttentionTensors(StageState& state, std::size_t scores);

  enum class Role : std::uint8_t { queries, keys, values };
  // Those of this device's tokens or, where heads are exchanged, of its heads: [products, rows, width].
  Tensor matrix(Role role, const Pass& pass) const;
  Tensor gradient(Role role, const Pass& pass) const;
  // Keys or values of the whole sequence, in the order of the devices (or their gradients), and as matrices. Without
  // context parallelism, the matrices are those of the device: `of_gradient`, their gradients.
  Tensor gathered(Role role, const Pass& pass) const;
  Tensor whole(Role role, const Pass& pass, bool of_gradient) const;
  // Puts what was gathered in the order of tokens; and the gradients of the whole sequence in the order of the devices.
  void order_tokens(Role role, const Pass& pass) const;
  void order_devices(Role role, const Tensor& gradients, const Pass& pass) const;

  // Where heads are exchanged: whether they are; what is sent for matrices by head of this device's tokens, or for
  // those of its heads, once it is in order; and these matrices from what was received.
  bool exchanges_heads() const { return exchanges_heads_; }
  Exchanged to_heads(Role role, const Tensor& of_tokens, const Pass& pass) const;
  Exchanged to_tokens(Role role, const Tensor& of_heads, const Pass& pass) const;
  void put_heads(Role role, const Tensor& of_heads, const Pass& pass) const;
  void put_tokens(Role role, const Tensor& of_tokens, const Pass& pass) const;
  // Queries, keys or values of the device's tokens, or their gradients: matrix() and gradient() where no heads are
  // exchanged.
  Tensor own(Role role, const Pass& pass, bool of_gradient) const;

  // Copies the output of a projection to the matrices by head, and the gradients of these back.
  void divide_heads(std::size_t projection, const Tensor& output, const Pass& pass) const;
  void join_heads(std::size_t projection, const Tensor& output, const Pass& pass) const;

  const Heads& heads() const { return heads_; }          // of this device's products
  const Heads& own_heads() const { return own_heads_; }  // of its tokens
  std::int64_t tokens() const { return tokens_; }        // likewise: the queries
  std::int64_t all_tokens() const { return tokens_ * (gathers() ? state_.part().division.context : 1); }
  // Among those of the model.
  std::int64_t first_head() const;
  std::int64_t first_token() const { return exchanges_heads_ ? 0 : state_.part().context_part * tokens_; }
  // Whether products read the keys and values of other devices' tokens.
  bool gathers() const { return state_.part().division.context > 1 && !exchanges_heads_; }
  std::int64_t width_of(Role role) const {
    return heads_.width * (role == Role::queries ? heads_.count : heads_.groups());
  }
  // Copies [example, head, token, element] of the device's tokens to or from columns of rows [example, token].
  void copy_heads(const Tensor& by_head, const Tensor& rows, std::int64_t heads, bool to_rows, const Pass& pass) const;

 private:
  struct Matrices {
    Kept value{}, own{};  // `own` where heads are exchanged
    Tensor gradient{}, own_gradient{};
    // With context parallelism: what the devices gather, as it arrives and in order; or what they exchange, in the
    // order of the devices, as it arrives and as it is sent.
    Tensor raw{}, whole{};
  };
  // The heads of a role that one of the devices gets.
  std::int64_t heads_of(Role role) const { return role == Role::queries ? heads_.count : heads_.groups(); }
  op::StridedCopy by_heads(Role role, const Pass& pass) const;
  op::StridedCopy by_tokens(Role role, const Pass& pass) const;
  Exchanged exchanged(Role role, const Pass& pass) const;
  void copy(std::size_t projection, const Tensor& output, const Pass& pass, bool to_heads) const;
  void turn(const Tensor& matrix, bool backward) const;

  StageState& state_;
  Heads heads_;
  std::int64_t tokens_;
  bool exchanges_heads_;
  Heads own_heads_;  // of the device's tokens
  std::int64_t own_tokens_;
  bool is_rotary_ = false;
  std::array<Matrices, 3> matrices_{};
};

std::unique_ptr<ComputedLayer> make_scores_layer(StageState& state, std::size_t layer,
                                                 std::shared_ptr<AttentionTensors> attention);
std::unique_ptr<ComputedLayer> make_mixed_layer(StageState& state, std::size_t layer,
                                                std::shared_ptr<AttentionTensors> attention);

}  // namespace tandem
