#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"
#include "runtime/trace/cupti_probe.hpp"
#include "scratch.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

CuptiAnswer answer(std::int32_t state, std::int32_t code = 0, const char* holder = "") {
    MpCuptiProbe probe{};
    probe.size = sizeof probe;
    probe.state = state;
    probe.code = code;
    probe.version = 130001;
    std::strcpy(probe.library, "libcupti.so.13");
    std::strcpy(probe.call, "cuptiSubscribe_v2");
    std::strcpy(probe.message, "CUPTI_ERROR_NAME");
    std::strcpy(probe.holder, holder);
    return cupti_from_bytes({reinterpret_cast<const char*>(&probe), sizeof probe});
}

Line place(const CuptiAnswer& plain) {
    return line_of(cupti_section({.probe = "/p.so", .plain = plain}), "subscriber's place");
}

TEST(CuptiSection, SaysFreeOrHeldAndByWhom) {
    EXPECT_EQ(place(answer(mp_cupti_free)).verdict, Verdict::ok);
    const Line held = place(answer(mp_cupti_held, 39, "CUPTI for Kineto"));
    EXPECT_EQ(held.verdict, Verdict::warn);
    EXPECT_EQ(held.value, "held by 'CUPTI for Kineto'");
    EXPECT_THAT(place(answer(mp_cupti_held, 39)).value, HasSubstr("does not name"));
}

TEST(CuptiSection, ARefusalHasItsCallItsCodeAndWhatToDo) {
    for (std::int32_t code = -1; code < 50; ++code) {
        const Line line = place(answer(mp_cupti_refused, code));
        EXPECT_EQ(line.verdict, Verdict::no);
        EXPECT_EQ(line.value, "cuptiSubscribe_v2 answers " + std::to_string(code) + " (CUPTI_ERROR_NAME)");
        EXPECT_FALSE(line.hint.empty());
        EXPECT_FALSE(line.needed) << "CUPTI is optional";
    }
    EXPECT_THAT(place(answer(mp_cupti_refused, 35)).hint, HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
}

TEST(CuptiSection, AnAbsentOrIncompleteLibraryIsSaidWithWhatTurnsItOn) {
    EXPECT_THAT(place(answer(mp_cupti_absent)).hint, HasSubstr("nvidia-cuda-cupti"));
    EXPECT_THAT(place(answer(mp_cupti_incomplete)).value, HasSubstr("libcupti.so.13 has no"));
    EXPECT_EQ(place(answer(12345)).verdict, Verdict::no);
    EXPECT_THAT(line_of(cupti_section({}), "CUPTI").hint, HasSubstr("cuda-cupti-dev"));
}

TEST(CuptiSection, ThePlaceAfterImportTorchHasALineOfItsOwn) {
    const Section section = cupti_section({.probe = "/p.so",
                                           .plain = answer(mp_cupti_free),
                                           .with_torch = answer(mp_cupti_held, 39, "CUPTI for Kineto")});
    EXPECT_EQ(line_of(section, "subscriber's place").verdict, Verdict::ok);
    EXPECT_EQ(line_of(section, "the same after import torch").verdict, Verdict::warn);
}

TEST(CuptiAnswer, BytesWithoutAnEndOrOfAnotherSizeAreRead) {
    EXPECT_FALSE(cupti_from_bytes("").asked);
    EXPECT_FALSE(cupti_from_bytes(std::string(10, 'x')).asked);
    const CuptiAnswer full = cupti_from_bytes(std::string(sizeof(MpCuptiProbe), 'x'));
    EXPECT_EQ(full.library.size(), sizeof(MpCuptiProbe::library));
}

using CuptiProbe = Scratch;

TEST_F(CuptiProbe, AProbeThatIsNoLibraryIsAnAnswerToo) {
    const CuptiAnswer none = probe_cupti(file("libmptrace_cupti_probe.so", "not ELF"), {});
    EXPECT_FALSE(none.asked);
    EXPECT_NE(none.why, "");
    EXPECT_THAT(place(none).value, HasSubstr("could not be asked"));
}

}  // namespace
}  // namespace mp::launch::doctor
