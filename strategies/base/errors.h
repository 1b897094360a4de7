// The exceptions of the strategies' API, named as TensorFlow users know them: Python's, and the status codes of
// TensorFlow's runtime. The engines throw two of the latter, DeadlineExceededError and InvalidArgumentError
// (topologies/base/error.h).
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
class KeyError : public StrategyError {  // a key that is not there, or there twice
 public:
  using StrategyError::StrategyError;
};
class AttributeError : public StrategyError {  // a field that a value does not have
 public:
  using StrategyError::StrategyError;
};
class AssertionError : public StrategyError {  // a precondition that callers can break
 public:
  using StrategyError::StrategyError;
};
class NotImplementedError : public StrategyError {
 public:
  using StrategyError::StrategyError;
};

class OutOfRangeError : public StrategyError {  // past the end of the data
 public:
  using StrategyError::StrategyError;
};
class NotFoundError : public StrategyError {
 public:
  using StrategyError::StrategyError;
};
class DataLossError : public StrategyError {  // a file that is cut off or changed
 public:
  using StrategyError::StrategyError;
};
class UnknownError : public StrategyError {  // the operating system refused
 public:
  using StrategyError::StrategyError;
};

}  // namespace tandem
