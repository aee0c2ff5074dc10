#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "runtime/fold/run_model.hpp"
#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame.hpp"
#include "tests/fakes/synthetic_run.hpp"
#include "tests/runtime/trace/samples.hpp"

// Malicious recordings. Each gives a model or an error within seconds, and the missing parts are listed.

namespace mp::trace {
namespace {

namespace fs = std::filesystem;

class Hostile : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(fakes::write({.ranks = 1, .layers = 3, .steps = 6}, directory_.path()));
        for (const auto& entry : fs::directory_iterator(directory_.path())) path_ = entry.path();
        good_ = test::bytes_of(path_);
        for (std::size_t at = kFileHeaderSize; at < good_.size();) {
            const auto header = read_frame_header(good_.data() + at);
            ASSERT_TRUE(header);
            frames_.push_back(good_.substr(at, kFrameOverhead + header->stored));
            at += frames_.back().size();
        }
    }

    RunModel folded(const std::string& bytes) {
        test::write_bytes(path_, bytes);
        const auto started = std::chrono::steady_clock::now();
        auto model = fold_run(directory_.path(), {.threads = 2});
        EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
        EXPECT_TRUE(model);
        return model ? *std::move(model) : RunModel{};
    }
    static bool complains(const RunModel& m) {
        return !m.unreadable.empty() || (!m.ranks.empty() && (m.ranks[0].problems > 0 || !m.ranks[0].ended));
    }
    // A file of these payloads after the process frame of the good one.
    std::string file_of(const std::vector<std::pair<FrameKind, std::string>>& payloads) {
        std::string bytes = file_header() + frames_[0];
        std::uint32_t sequence = 1;
        for (const auto& [kind, payload] : payloads) bytes += packer_.frame(kind, sequence++, payload);
        return bytes;
    }

    test::TemporaryDirectory directory_;
    std::string path_;
    std::string good_;
    std::vector<std::string> frames_;
    Packer packer_;
};

TEST_F(Hostile, TwentyTruncations) {
    for (std::size_t i = 0; i < 20; ++i)
        EXPECT_TRUE(complains(folded(good_.substr(0, good_.size() * i / 20)))) << i;
}

TEST_F(Hostile, FortyFlippedBits) {
    std::mt19937 random(7);
    for (int i = 0; i < 40; ++i) {
        std::string bytes = good_;
        const std::size_t at = random() % bytes.size();
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
        EXPECT_TRUE(complains(folded(bytes))) << at;
    }
}

TEST_F(Hostile, FramesTwiceSwappedOrOfAnotherKind) {
    for (std::size_t i = 1; i + 1 < frames_.size(); ++i) {
        std::string twice = file_header(), swapped = file_header();
        for (std::size_t k = 0; k < frames_.size(); ++k) {
            twice += frames_[k];
            if (k == i) twice += frames_[k];
            swapped += frames_[k == i ? i + 1 : k == i + 1 ? i : k];
        }
        EXPECT_TRUE(complains(folded(twice))) << i;
        EXPECT_TRUE(complains(folded(swapped))) << i;
    }
    std::string payload;
    encode(fakes::recording_of({}, 0).process, payload);
    for (const FrameKind kind : {FrameKind::step, FrameKind::note, FrameKind::names, FrameKind::ops})
        EXPECT_TRUE(complains(folded(file_of({{kind, payload}}))));
}

TEST_F(Hostile, ForgedOps) {
    const std::uint64_t numbers[] = {~std::uint64_t{0}, 1u << 30, 1000, 3};
    for (const std::uint64_t rows : numbers) {
        for (const std::uint64_t mask : {~std::uint64_t{0}, std::uint64_t{1}}) {
            std::string payload;
            ByteWriter to(payload);
            to.signed_number(0);
            to.signed_number(0);
            to.number(rows);
            payload.append(3 * 12 + 9, '\1');
            to.number(mask);
            payload += "short";
            EXPECT_TRUE(complains(folded(file_of({{FrameKind::ops, payload}})))) << rows;
        }
    }
}

TEST_F(Hostile, LengthsOfAGigabyte) {
    for (const FrameKind kind :
         {FrameKind::process, FrameKind::step, FrameKind::note, FrameKind::names, FrameKind::ops}) {
        for (const std::uint64_t length : {std::uint64_t{1} << 30, ~std::uint64_t{0}}) {
            for (std::size_t before = 0; before < 30; before += 3) {
                std::string payload(before, '\0');
                ByteWriter(payload).number(length);
                payload += "x";
                EXPECT_TRUE(complains(folded(file_of({{kind, payload}}))));
            }
        }
    }
}

TEST_F(Hostile, NamesStayNames) {
    StepRecord step = fakes::recording_of({.layers = 1, .steps = 1}, 0).steps[0];
    const std::string names[] = {"\x1b[2J\x1b]0;title\a",
                                 "</script><script>alert(1)</script>",
                                 "../../../etc/passwd",
                                 std::string("nul\0nul", 7),
                                 "\xff\xfe",
                                 "\u202e",
                                 std::string(5000, 'A')};
    for (const std::string& name : names) {
        step.ops[0].layer = step.ops[0].op = step.ops[0].source = step.tensors[0].name = name;
        NameTable table;
        std::string ops, bytes, list;
        encode_ops(step, table, ops);
        encode(step, table, true, bytes);
        table.encode(0, list);
        const RunModel m =
            folded(file_of({{FrameKind::names, list}, {FrameKind::ops, ops}, {FrameKind::step, bytes}}));
        ASSERT_FALSE(m.ops.empty());
        EXPECT_TRUE(std::any_of(m.ops.begin(), m.ops.end(),
                                [&name](const OpSum& o) { return o.total.layer == name.substr(0, 4096); }));
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 1);
}

TEST_F(Hostile, WhatIsNoRecordingIsListed) {
    for (const char* bytes : {"", "MPT", "#!/bin/sh\nexit 0\n"}) {
        const RunModel m = folded(bytes);
        EXPECT_TRUE(complains(m));
        EXPECT_EQ(m.step_count, 0);
    }
    EXPECT_FALSE(fold_run(directory_.path() + "/nothing"));
}

}  // namespace
}  // namespace mp::trace
