#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/launch/doctor/doctor.hpp"
#include "runtime/launch/elf.hpp"
#include "scratch.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

// An installed mp-trace and an interpreter with a torch, both made of scripts and empty files.
class Doctor : public Scratch {
protected:
    void SetUp() override {
        Scratch::SetUp();
        preload_ = file("lib/mp-trace/libmptrace_preload.so", "");
        file("lib/mp-trace/python/sitecustomize.py", "");
        const auto id = adapter_id("/proc/self/exe");
        ASSERT_TRUE(id);
        adapter_ = file("lib/mp-trace/adapters/libmptrace_torch_" + *id + ".so", "");
        python_ = program("python", R"(
[ "$1" = -I ] && shift
case "$2" in
  *reach*) kind=reach; json='"preload": true, "shim": true' ;;
  *) kind=facts; json='"found": true, "executable": "/p", "version": "2.11.0", "libtorch": "/proc/'$PPID'/exe"' ;;
esac
printf '\nmp-trace-doctor:%s {%s}\n' $kind "$json")");
    }

    std::pair<int, std::string> run(DoctorRequest request) const {
        request.prefix = directory_;
        if (request.python.empty()) request.python = python_;
        testing::internal::CaptureStdout();
        const int status = run_doctor(request);
        return {status, testing::internal::GetCapturedStdout()};
    }

    std::string preload_, adapter_, python_;
};

TEST_F(Doctor, ExitsWithZeroWhenTorchProgramsCanBeTraced) {
    const auto [status, text] = run({});
    EXPECT_EQ(status, 0) << text;
    EXPECT_THAT(text, HasSubstr("nothing that was looked at keeps torch programs from being traced"));
    for (const std::string_view section : doctor_sections())
        EXPECT_THAT(text, HasSubstr(std::string(section) + "\n  ")) << section;
}

TEST_F(Doctor, ExitsWithOneWithoutThePreloadAnInterpreterOrATorch) {
    EXPECT_EQ(run({.python = directory_ + "/none"}).first, 1);
    const std::string bare = program("bare", "printf '\\nmp-trace-doctor:facts {\"executable\": \"/p\"}\\n'");
    EXPECT_EQ(run({.python = bare}).first, 1);
    std::filesystem::remove(preload_);
    const auto [status, text] = run({});
    EXPECT_EQ(status, 1);
    EXPECT_THAT(text, HasSubstr("torch programs cannot be traced here: preload library"));
}

TEST_F(Doctor, AnUnknownSectionIsAUsageErrorThatNamesTheKnownOnes) {
    testing::internal::CaptureStderr();
    const auto [status, text] = run({.only = "gpu"});
    EXPECT_EQ(status, 2);
    EXPECT_EQ(text, "");
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("no section 'gpu'; it has launcher, environment"));
}

TEST_F(Doctor, OneSectionIsShownAloneAndDecidesAlone) {
    std::filesystem::remove(preload_);
    for (const std::string_view section : doctor_sections()) {
        const auto [status, text] = run({.only = std::string(section), .json = true});
        EXPECT_EQ(status, section == "environment" ? 1 : 0) << section;
        const nlohmann::json json = nlohmann::json::parse(text);
        ASSERT_EQ(json["sections"].size(), 1u);
        EXPECT_EQ(json["sections"][0]["name"], section);
    }
}

TEST_F(Doctor, AdaptersOfTheCommandLineComeFirst) {
    const std::string own = file("own/" + std::filesystem::path(adapter_).filename().string(), "");
    EXPECT_THAT(run({.only = "torch", .adapters = {directory_ + "/own"}}).second, HasSubstr(own));
    EXPECT_THAT(run({.only = "torch"}).second, HasSubstr(adapter_));
}

TEST_F(Doctor, AFailedSelfTestIsNotTraceable) {
    program("bin/mp-trace", "exit 125");
    const auto [status, text] = run({.only = "launcher", .self_test = true});
    EXPECT_EQ(status, 1);
    EXPECT_THAT(text, HasSubstr("torch programs cannot be traced here: traced run"));
}

}  // namespace
}  // namespace mp::launch::doctor
