#include "kernels/numerics/torch_policies.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp {
namespace {

using testing::HasSubstr;

Category category(const Policies& policies, std::string_view device, std::string_view op) {
    const Policy* policy = policies.of(device);
    return policy ? policy->category(Op(op)) : Category::unlisted;
}

TEST(TorchVersion, OnlyTheFirstTwoNumbersMatter) {
    EXPECT_EQ(parse_torch_version("2.4"), (TorchVersion{2, 4}));
    EXPECT_EQ(parse_torch_version("1.13.1+cu117"), (TorchVersion{1, 13}));
    EXPECT_EQ(parse_torch_version("2.10.0a0"), (TorchVersion{2, 10}));
    EXPECT_EQ(parse_torch_version("two"), std::nullopt);
    EXPECT_EQ(parse_torch_version("2"), std::nullopt);
}

TEST(TorchVersion, IsComparedByNumberAndNotByText) {
    EXPECT_LT((TorchVersion{2, 9}), (TorchVersion{2, 10}));
    EXPECT_LT((TorchVersion{1, 13}), (TorchVersion{2, 0}));
    EXPECT_FALSE(TorchVersion{}.known());
}

TEST(Policies, EveryDeviceHasItsOwnList) {
    const Policies all = Policies::load("").value();
    for (const std::string_view device : Policies::devices()) EXPECT_NE(all.of(device), nullptr) << device;
    EXPECT_EQ(all.of("abacus"), nullptr);
    EXPECT_EQ(category(all, "cuda", "softmax"), Category::fp32_set_opt_dtype);
    EXPECT_EQ(category(all, "cpu", "softmax"), Category::unlisted);
    EXPECT_EQ(category(all, "hpu", "softmax"), Category::lower);
    EXPECT_EQ(category(all, "hmp", "softmax"), Category::fp32);
    EXPECT_EQ(category(all, "mps", "batch_norm"), Category::fp32);
    EXPECT_EQ(category(all, "mps", "conv3d"), Category::lower);
    EXPECT_EQ(category(Policies::load("2.6").value(), "mps", "conv3d"), Category::unlisted);
    EXPECT_EQ(category(all, "xla", "relu"), Category::lower);
    EXPECT_EQ(category(all, "xpu", "binary_cross_entropy"), Category::banned);
    EXPECT_EQ(category(all, "mps", "binary_cross_entropy"), Category::unlisted);
    EXPECT_EQ(all.of("xpu")->low_precision(), DType::fp16);
    EXPECT_EQ(all.of("hpu")->low_precision(), DType::bf16);
}

TEST(Policies, DevicesThatCameLaterHaveNoListBefore) {
    const Policies old = Policies::load("1.13").value();
    EXPECT_EQ(old.of("xpu"), nullptr);
    EXPECT_EQ(old.of("mps"), nullptr);
    EXPECT_NE(old.of("cuda"), nullptr);
    EXPECT_EQ(old.torch(), (TorchVersion{1, 13}));
    EXPECT_EQ(category(old, "cuda", "scaled_dot_product_attention"), Category::unlisted);
    const Policies newest = Policies::load("2.11").value();
    EXPECT_EQ(category(newest, "cuda", "vdot"), Category::promote);
}

TEST(Policies, AVersionThatIsNoneIsAnError) {
    EXPECT_THAT(Policies::load("latest").error().message, HasSubstr("latest"));
    EXPECT_FALSE(Policies::load("1.5"));
}

class PolicyFile : public testing::Test {
protected:
    void TearDown() override { std::filesystem::remove(path_); }
    std::string write(std::string_view text) {
        std::ofstream(path_) << text;
        return path_;
    }
    std::string path_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
};

TEST_F(PolicyFile, ReplacesTheListOfItsDevice) {
    const std::string file = write("family = autocast\ndevice = mps\n[lower]\nsoftmax\n");
    const Policies policies = Policies::load("", {file}).value();
    EXPECT_EQ(category(policies, "mps", "softmax"), Category::lower);
    EXPECT_EQ(category(policies, "cuda", "softmax"), Category::fp32_set_opt_dtype);
}

TEST_F(PolicyFile, IsForTheDefaultDeviceWhenItDoesNotSay) {
    const std::string file = write("[lower]\nsoftmax\n");
    EXPECT_EQ(category(Policies::load("", {file}, "hpu").value(), "hpu", "softmax"), Category::lower);
    EXPECT_EQ(category(Policies::load("", {file}).value(), "cuda", "softmax"), Category::lower);
}

TEST_F(PolicyFile, ThatCannotBeReadIsAnError) {
    EXPECT_THAT(Policies::load("", {path_ + ".not"}).error().message, HasSubstr("cannot open"));
}

TEST(PolicyText, ReadsBackAsTheSamePolicy) {
    for (const std::string_view name : Policy::built_in_names()) {
        const Policy policy = Policy::built_in(name).value();
        const Policy again = Policy::parse(policy.text(), "again.txt").value();
        EXPECT_EQ(again.text(), policy.text()) << name;
        EXPECT_EQ(again.entries().size(), policy.entries().size()) << name;
        EXPECT_EQ(again.device(), policy.device()) << name;
    }
}

}  // namespace
}  // namespace mp
