#include "engine/cuda/cublas_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cuda/cuda_description.h"
#include "engine/cuda/cuda_engine_info.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

TEST(CublasLibrary, IsLoadedByItsFirstCall) {
  EXPECT_THAT(cuda_libraries(), Contains(Pair("cublas_file", HasSubstr("libcublas.so."))));
  EXPECT_NE(loaded_file("libcublas.so"), "");
}

TEST(CublasLibrary, IsRefusedByNameWhereItIsMissing) {
  EXPECT_THAT([] { CublasLibrary("libcublas.so.0"); },
              ThrowsMessage<UnavailableError>(AllOf(HasSubstr("libcublas.so.0"), HasSubstr("LD_LIBRARY_PATH"))));
  EXPECT_THAT([] { CublasLibrary::get().address_of("cublasNothing"); },
              ThrowsMessage<UnavailableError>(HasSubstr("cublasNothing")));
}

}  // namespace
}  // namespace tandem::cuda
