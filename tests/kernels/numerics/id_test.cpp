#include "kernels/numerics/id.hpp"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace mp {
namespace {

using LayerId = Id<struct LayerTag>;
using TensorId = Id<struct TensorTag>;

static_assert(!std::is_convertible_v<LayerId, TensorId> && !std::is_constructible_v<LayerId, TensorId>);
static_assert(!std::is_convertible_v<int, LayerId> && sizeof(LayerId) == 4);

TEST(Id, TheDefaultIsNoneAndNoIndex) {
    EXPECT_FALSE(LayerId{}.known());
    EXPECT_TRUE(LayerId(0).known());
    EXPECT_NE(LayerId{}, LayerId(0));
}

TEST(Id, ComparesAndHashesByIndex) {
    EXPECT_LT(LayerId(1), LayerId(2));
    EXPECT_EQ(LayerId(7).value(), 7u);
    EXPECT_EQ((std::unordered_set{LayerId(1), LayerId(1), LayerId(2)}).size(), 2u);
}

}  // namespace
}  // namespace mp
