#include "runtime/report/page.hpp"

#include <algorithm>
#include <limits>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/report/sample_models.hpp"

namespace mp::trace {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json data_in(const std::string& page) {
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const std::size_t from = page.find(open) + open.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

TEST(Page, HoldsItsDataAndNoMarkerOfItsTemplate) {
    const test::Judged run = test::overflow_run();
    const std::string page = html_page(run.model, run.judgement);
    const json data = data_in(page);
    EXPECT_EQ(data["verdict"]["result"], "fail");
    EXPECT_EQ(data["findings"][0]["layer"], "blocks.2.mlp.up");
    EXPECT_EQ(data["map"]["rows"].size(), run.model.map.size());
    EXPECT_FALSE(std::regex_search(page.substr(0, 3000), std::regex("@[A-Z_]+@")));
    EXPECT_LT(page.size(), 400'000u);
}

// As many hashes as inline scripts and styles, and nothing in the policy that would let others run.
TEST(Page, PolicyAllowsItsOwnScriptsOnly) {
    const test::Judged run = test::clean_run();
    const std::string page = html_page(run.model, run.judgement);
    const std::string open = "http-equiv=\"Content-Security-Policy\" content=\"";
    const std::size_t from = page.find(open) + open.size();
    const std::string policy = page.substr(from, page.find('"', from) - from);
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_THAT(policy, Not(HasSubstr("http")));
    EXPECT_EQ(count(policy, "'sha256-"), count(page, "<script>") + count(page, "<style>"));
}

TEST(Page, HostileNamesCannotEndTheScriptNorReachATerminal) {
    const test::Judged hostile = test::hostile_run(), clean = test::clean_run();
    const std::string page = html_page(hostile.model, hostile.judgement);
    EXPECT_EQ(count(page, "</script"), count(html_page(clean.model, clean.judgement), "</script"));
    EXPECT_THAT(page, Not(HasSubstr("<img")));
    const std::string data = script_json(page_data(hostile.model, hostile.judgement));
    for (const char c : data) ASSERT_TRUE(c >= 0x20 && c < 0x7f && c != '<' && c != '>' && c != '&');
    EXPECT_THAT(data, Not(HasSubstr("\\u001b")));
    EXPECT_THAT(data, Not(HasSubstr("\\u202e")));
    for (const char* bare : {":nan", ":NaN", ":inf", ":-inf", ",nan", ",inf"})
        EXPECT_THAT(data, Not(HasSubstr(bare)));
}

// The rung of a layer shows the worst of its ops. A NaN is the worst, and the page shows it as null.
TEST(Page, OfALayersOpsTheOneWithANaNIsShownInEveryOrder) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    const auto rung = [](const char* op, double phi) {
        return Rung{.layer = "l",
                    .op = op,
                    .phase = Phase::forward,
                    .dtype = DType::bf16,
                    .introduced = phi,
                    .inherited = phi,
                    .total = phi};
    };
    std::vector<Rung> ops = {rung("one", 1), rung("nan", kNaN), rung("seven", 7)};
    for (int turn = 0; turn < 3; ++turn) {
        std::ranges::rotate(ops, ops.begin() + 1);
        Judgement judgement;
        judgement.ladder = ops;
        const json data = json::parse(script_json(page_data({}, judgement)));
        const json& shown = data.at("ladder").at(0);
        EXPECT_EQ(shown[1], "nan") << turn;
        for (const int figure : {4, 5, 6}) EXPECT_TRUE(shown[figure].is_null()) << turn << " " << shown;
    }
}

TEST(Page, LongNamesAreCutInTheirMiddle) {
    const test::Judged run = test::hostile_run();
    const json data = json::parse(script_json(page_data(run.model, run.judgement)));
    for (const json& row : data["map"]["rows"]) EXPECT_LE(row[0].get<std::string>().size(), kPageText);
    const std::string cut = data["findings"][4]["layer"];
    EXPECT_THAT(cut, HasSubstr("AAA ... AAA"));
    EXPECT_TRUE(cut.ends_with("<b>"));
}

TEST(Page, AnEmptyRunIsAPageToo) {
    const json data = data_in(html_page({}, {}));
    EXPECT_TRUE(data["cause"].is_null());
    EXPECT_TRUE(data["trust"]["coverage"]["ops_fraction"].is_null());
    EXPECT_EQ(data["map"]["columns"], 0);
}

TEST(Page, CauseHasTheFiguresOfItsOpAndItsNeighbours) {
    const test::Judged run = test::overflow_run();
    const json cause = json::parse(script_json(page_data(run.model, run.judgement)))["cause"];
    EXPECT_NEAR(cause["introduced"].get<double>(), 7.9, 1e-9);
    EXPECT_EQ(cause["nonfinite"], 12);
    EXPECT_EQ(cause["twin_amax"], 71'304);
    EXPECT_EQ(cause["input_amax"], 212);
    EXPECT_EQ(cause["before"].back()["layer"], "blocks.2.ln2");
    EXPECT_EQ(cause["after"][0]["layer"], "blocks.2.mlp.down");
}

TEST(Page, LadderHasOneRungALayerAndPhase) {
    test::Judged run = test::clean_run();
    const std::size_t before = run.judgement.ladder.size();
    Rung second = run.judgement.ladder[3];
    second.op = "aten::softmax";
    second.introduced = 40;
    run.judgement.ladder.insert(run.judgement.ladder.begin() + 4, second);
    const json ladder = json::parse(script_json(page_data(run.model, run.judgement)))["ladder"];
    EXPECT_EQ(ladder.size(), before);
    EXPECT_EQ(ladder[3][1], "aten::softmax") << "the op that introduced most";
    EXPECT_EQ(ladder[3][4], 40);
}

}  // namespace
}  // namespace mp::trace
