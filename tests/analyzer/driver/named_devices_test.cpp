#include "analyzer/driver/named_devices.hpp"

#include <gmock/gmock.h>

#include "kernels/base/files.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NamedDevices, ThoseOfCapability8HaveBf16) {
    for (const std::string_view text :
         {"trained on 8xA100-SXM", "A100_80GB", "one RTX 4090.", "4 x H100", "2xRTX3060"})
        EXPECT_THAT(named_devices(text), ElementsAre(hash_bytes(kNamesDeviceWithBf16))) << text;
    for (const std::string_view text : {"DATA100", "A1000", "RTX 4000", "4090", "a100", "RTX", ""})
        EXPECT_THAT(named_devices(text), IsEmpty()) << text;
}

TEST(NamedDevices, EarlierOnesHaveNone) {
    for (const std::string_view text :
         {"a Tesla V100", "on Colab", "from google.colab import drive", "2x T4", "GTX 1080", "RTX-2080"})
        EXPECT_THAT(named_devices(text), ElementsAre(hash_bytes(kNamesOlderDevice))) << text;
    EXPECT_THAT(named_devices("A100 or V100"),
                ElementsAre(hash_bytes(kNamesDeviceWithBf16), hash_bytes(kNamesOlderDevice)));
}

}  // namespace
}  // namespace mp::lint
