#include "instrument/cupti/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/launch/doctor/probe.hpp"

namespace mp::cupti {
namespace {

// The results of the fake's calls, and the number of calls.
struct Fake {
    CUptiResult version = CUPTI_SUCCESS, result_string = CUPTI_SUCCESS, subscribe = CUPTI_SUCCESS,
                subscribe_v2 = CUPTI_SUCCESS, unsubscribe = CUPTI_SUCCESS;
    std::string holder{};
    bool no_text = false;
    int subscribed = 0, unsubscribed = 0, older = 0;
};
Fake fake;

Api fake_api() {
    Api api;
    api.get_version = [](uint32_t* v) {
        *v = 130001;
        return fake.version;
    };
    api.get_result_string = [](CUptiResult, const char** text) {
        *text = fake.no_text ? nullptr : "WORDS";
        return fake.result_string;
    };
    api.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
        ++fake.older;
        fake.subscribed += fake.subscribe == CUPTI_SUCCESS;
        return fake.subscribe;
    };
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    api.subscribe_v2 = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                          CUpti_SubscriberParams* params) {
        EXPECT_GE(params->oldSubscriberSize, static_cast<size_t>(CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN));
        std::strncpy(params->oldSubscriberName, fake.holder.c_str(), params->oldSubscriberSize);
        fake.subscribed += fake.subscribe_v2 == CUPTI_SUCCESS;
        return fake.subscribe_v2;
    };
#endif
    api.unsubscribe = [](CUpti_SubscriberHandle) {
        ++fake.unsubscribed;
        return fake.unsubscribe;
    };
    return api;
}

MpCuptiProbe ask(const Fake& how, const Api& api) {
    fake = how;
    MpCuptiProbe answer{};
    probe(api, answer);
    return answer;
}
MpCuptiProbe ask(const Fake& how) { return ask(how, fake_api()); }

// Every code that a header of CUPTI names, and some that none does.
std::vector<int> all_codes() {
    std::vector<int> codes;
    for (int code = 1; code <= 60; ++code) codes.push_back(code);
    codes.insert(codes.end(), {999, 1000, 0x7fffffff});
    return codes;
}

TEST(CuptiProbe, AFreePlaceIsTakenAndGivenBackAtOnce) {
    const MpCuptiProbe answer = ask({});
    EXPECT_EQ(answer.state, mp_cupti_free);
    EXPECT_EQ(answer.version, 130001u);
    EXPECT_EQ(fake.subscribed, 1);
    EXPECT_EQ(fake.unsubscribed, 1);
}

TEST(CuptiProbe, AHeldPlaceTellsWhoHasIt) {
    const Fake how{.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                   .subscribe_v2 = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                   .holder = "CUPTI for Kineto"};
    const MpCuptiProbe answer = ask(how);
    EXPECT_EQ(answer.state, mp_cupti_held);
    EXPECT_EQ(answer.code, 39);
    EXPECT_EQ(fake.unsubscribed, 0);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    EXPECT_STREQ(answer.holder, "CUPTI for Kineto");
    Api older = fake_api();
    older.subscribe_v2 = nullptr;  // before CUDA 13.0 there is no name
    EXPECT_EQ(ask(how, older).state, mp_cupti_held);
    EXPECT_STREQ(ask(how, older).holder, "");
#endif
}

TEST(CuptiProbe, ANameWithoutAnEndIsCut) {
    const MpCuptiProbe answer = ask({.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                                     .subscribe_v2 = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                                     .holder = std::string(500, 'x')});
    EXPECT_LT(strnlen(answer.holder, sizeof answer.holder), sizeof answer.holder);
}

TEST(CuptiProbe, EveryErrorOfEveryCallIsAnAnswer) {
    for (const int number : all_codes()) {
        CUptiResult code{};
        static_assert(sizeof code == sizeof number);
        std::memcpy(&code, &number, sizeof code);
        const bool held = code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        EXPECT_EQ(ask({.version = code}).state, mp_cupti_free) << number;
        EXPECT_EQ(ask({.version = code}).version, 0u) << number;
        const MpCuptiProbe refused = ask({.subscribe = code, .subscribe_v2 = code});
        EXPECT_EQ(refused.state, held ? mp_cupti_held : mp_cupti_refused) << number;
        EXPECT_EQ(refused.code, number);
        EXPECT_STREQ(refused.message, "WORDS");
        EXPECT_STREQ(ask({.result_string = code, .subscribe = code, .subscribe_v2 = code}).message, "")
            << number;
        EXPECT_STREQ(ask({.subscribe = code, .subscribe_v2 = code, .no_text = true}).message, "") << number;
        const MpCuptiProbe kept = ask({.unsubscribe = code});
        EXPECT_STREQ(kept.call, "cuptiUnsubscribe") << number;
        EXPECT_EQ(kept.code, number);
    }
}

#ifdef CUpti_SubscriberParams_STRUCT_SIZE
TEST(CuptiProbe, ACuptiWithAnotherStructIsAskedTheOlderWay) {
    for (const CUptiResult code : {CUPTI_ERROR_INVALID_PARAMETER, CUPTI_ERROR_API_NOT_IMPLEMENTED}) {
        EXPECT_EQ(ask({.subscribe_v2 = code}).state, mp_cupti_free);
        EXPECT_EQ(fake.older, 1);
    }
    EXPECT_EQ(ask({.subscribe_v2 = CUPTI_ERROR_UNKNOWN}).state, mp_cupti_refused);
    EXPECT_EQ(fake.older, 0);
}
#endif

TEST(CuptiProbe, AnyFunctionMayBeMissing) {
    Api api = fake_api();
    api.unsubscribe = nullptr;  // then the place must not be taken
    EXPECT_EQ(ask({}, api).state, mp_cupti_incomplete);
    EXPECT_EQ(fake.subscribed, 0);
    api = fake_api();
    api.get_version = nullptr;
    api.get_result_string = nullptr;
    EXPECT_EQ(ask({}, api).state, mp_cupti_free);
    api.subscribe = nullptr;
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    EXPECT_EQ(ask({}, api).state, mp_cupti_free);
    EXPECT_EQ(ask({.subscribe_v2 = CUPTI_ERROR_INVALID_PARAMETER}, api).state, mp_cupti_refused);
    api.subscribe_v2 = nullptr;
#endif
    EXPECT_EQ(ask({}, api).state, mp_cupti_incomplete);
    EXPECT_EQ(ask({}, Api{}).state, mp_cupti_incomplete);
}

TEST(CuptiProbe, AStructOfAnotherSizeIsRefused) {
    MpCuptiProbe answer{};
    answer.size = sizeof answer - 8;
    EXPECT_EQ(mptrace_cupti_probe(&answer, nullptr), -1);
    EXPECT_EQ(mptrace_cupti_probe(nullptr, nullptr), -1);
}

// The library as the doctor loads it, with a fake libcupti in a temporary directory.
class CuptiLibrary : public testing::Test {
protected:
    void TearDown() override {
        for (const char* const name : {"MP_FAKE_CUDA", "MP_FAKE_CUPTI_HOLDER", "MP_FAKE_CUPTI_CRASH"})
            unsetenv(name);
    }
    static launch::doctor::CuptiAnswer ask_library(const char* how) {
        setenv("MP_FAKE_CUDA", how, 1);
        return launch::doctor::probe_cupti(MP_CUPTI_PROBE, {"/nowhere", MP_FAKE_CUPTI_DIR});
    }
};

TEST_F(CuptiLibrary, FindsLibcuptiInTheGivenDirectoriesAndAsksIt) {
    const launch::doctor::CuptiAnswer answer = ask_library("");
    ASSERT_TRUE(answer.asked) << answer.why;
    EXPECT_EQ(answer.state, mp_cupti_free);
    EXPECT_EQ(answer.library, std::string(MP_FAKE_CUPTI_DIR) + "/libcupti.so.13");
    EXPECT_EQ(answer.message, "");
}

TEST_F(CuptiLibrary, NamesTheHolderAndTheCallThatFailed) {
    setenv("MP_FAKE_CUPTI_HOLDER", "CUPTI for Kineto", 1);
    const launch::doctor::CuptiAnswer held = ask_library("cuptiSubscribe_v2=39,cuptiSubscribe=39");
    EXPECT_EQ(held.state, mp_cupti_held);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    EXPECT_EQ(held.holder, "CUPTI for Kineto");
#endif
    const launch::doctor::CuptiAnswer refused = ask_library("cuptiUnsubscribe=35");
    EXPECT_EQ(refused.state, mp_cupti_refused);
    EXPECT_EQ(refused.call, "cuptiUnsubscribe");
    EXPECT_EQ(refused.code, 35);
    EXPECT_EQ(refused.message, "FAKE");
}

TEST_F(CuptiLibrary, ACrashInAnyCallIsAnAnswerToo) {
    std::vector<const char*> calls = {"cuptiGetVersion", "cuptiUnsubscribe"};
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    calls.push_back("cuptiSubscribe_v2");
#else
    calls.push_back("cuptiSubscribe");
#endif
    for (const char* const call : calls) {
        setenv("MP_FAKE_CUPTI_CRASH", call, 1);
        const launch::doctor::CuptiAnswer answer = ask_library("");
        EXPECT_FALSE(answer.asked) << call;
        EXPECT_THAT(answer.why, testing::HasSubstr("killed by signal")) << call;
    }
}

}  // namespace
}  // namespace mp::cupti
