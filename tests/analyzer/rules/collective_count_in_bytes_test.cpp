#include "analyzer/rules/rule.hpp"
#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> sums(const std::string& count, const std::string& type) {
    return lint("MP412", {kernel("call 7:10 ncclAllReduce args=[{pointer} {pointer} {int64 text=\"" + count +
                                 "\"} {constant=" + type + "} {constant=ncclSum} {pointer} {pointer}]")});
}

TEST(CollectiveCountInBytes, SizeofTimesElements) {
    EXPECT_THAT(sums("sizeof(float)", "ncclFloat32"), ElementsAre("error 7"));
    EXPECT_THAT(sums("n * sizeof(float)", "ncclFloat"), ElementsAre("error 7"));
    EXPECT_THAT(lint("MP412", {kernel("call 7:10 MPI_Bcast args=[{pointer} {int32 text=\"n * sizeof(int)\"} "
                                      "{text=\"MPI_INT\"} {int32} {pointer}]")}),
                ElementsAre("error 7"));
}

TEST(CollectiveCountInBytes, ElementsAndBytesOfBytesAreSilent) {
    EXPECT_THAT(sums("n", "ncclFloat32"), IsEmpty());
    EXPECT_THAT(sums("n * sizeof(float)", "ncclInt8"), IsEmpty());
    EXPECT_THAT(sums("sizeof(block) / sizeof(float)", "ncclFloat32"), IsEmpty());
    EXPECT_THAT(sums("sizeof...(Ts)", "ncclFloat32"), IsEmpty());
    EXPECT_THAT(lint("MP412", {kernel("call 7:10 ncclAllReduce args=[{pointer} {pointer} {int64 text=\"n * "
                                      "sizeof(T)\"} {name=type} {constant=ncclSum} {pointer} {pointer}]")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
