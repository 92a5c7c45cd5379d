// SPDX-License-Identifier: Apache-2.0
#include "sources/launch_shape.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

TEST(LaunchShape, TellsGridFromBlockAndOneAxisFromAnother) {
  const std::uint64_t shape = launch_shape({13, 1, 1}, {256, 1, 1});
  EXPECT_EQ(shape, launch_shape({13, 1, 1}, {256, 1, 1}));
  EXPECT_NE(shape, launch_shape({256, 1, 1}, {13, 1, 1}));
  EXPECT_NE(shape, launch_shape({1, 13, 1}, {256, 1, 1}));
  EXPECT_NE(shape, 0u);
}

}  // namespace
}  // namespace gpudiag
