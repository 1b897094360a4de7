// The kinds of failure of the strategies' API, named as TensorFlow users know them.
#pragma once

#include "topologies/base/error.h"

namespace tandem {

class StrategyError : public Error {
 public:
  using Error::Error;
};
class RuntimeError : public StrategyError {  // a call in the wrong context or order
 public:
  using StrategyError::StrategyError;
};
class ValueError : public StrategyError {  // an argument of the right kind with a wrong value
 public:
  using StrategyError::StrategyError;
};
class TypeError : public StrategyError {  // an argument of the wrong kind
 public:
  using StrategyError::StrategyError;
};
class AssertionError : public StrategyError {  // a precondition that callers can miss
 public:
  using StrategyError::StrategyError;
};
class NotImplementedError : public StrategyError {
 public:
  using StrategyError::StrategyError;
};

}  // namespace tandem
