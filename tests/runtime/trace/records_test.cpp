#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/decode.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/op_columns.hpp"
#include "tests/fakes/source_dir.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace {
namespace {

using test::sample_note;
using test::sample_process;
using test::sample_step;

constexpr std::size_t kRoom = 1u << 20;

std::string dump_of(const ProcessRecord& p, const StepRecord& s, const NoteRecord& n) {
    Recording r;
    r.has_process = true;
    r.process = p;
    r.steps = {s};
    r.notes = {n};
    return dump_text(r);
}

struct Written {
    NameList names;
    std::string step;
    std::string ops;
};

Written write(const StepRecord& step, bool with_tensors = true) {
    Written out;
    NameTable table;
    encode(step, table, with_tensors, out.step);
    encode_ops(step, table, out.ops);
    std::string names;
    table.encode(0, names);
    EXPECT_TRUE(out.names.add(names));
    return out;
}

TEST(Records, EveryFieldComesBack) {
    const StepRecord step = sample_step(7);
    const Written w = write(step);
    StepDecoding how{.names = w.names, .room = kRoom};
    StepRecord step_back;
    ASSERT_TRUE(decode(w.step, how, step_back));
    StepOps ops;
    ASSERT_TRUE(decode(w.ops, how, ops));
    EXPECT_EQ(ops.step, step.step);
    EXPECT_EQ(ops.optimizer, step.optimizer);
    step_back.ops = ops.ops;
    EXPECT_EQ(how.names_lost, 0u);
    EXPECT_FALSE(how.left_out);
    EXPECT_LT(how.room, kRoom);
    std::string bytes;
    ProcessRecord process_back;
    encode(sample_process(), bytes);
    ASSERT_TRUE(decode(bytes, process_back));
    NoteRecord note_back;
    encode(sample_note(), bytes);
    ASSERT_TRUE(decode(bytes, note_back));
    // The dump shows every field exactly; its golden test shows that it does.
    EXPECT_EQ(dump_of(process_back, step_back, note_back), dump_of(sample_process(), step, sample_note()));
}

std::string bytes_of_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

// The payloads were written before the field lists existed: process, note, names, ops and step, a line each. Together
// with EveryFieldComesBack this holds the bytes of every field to what they were.
TEST(Records, PayloadsOfAnOlderWriterAreRead) {
    std::ifstream file(std::string(mp_source_dir()) + "/testdata/traces/payloads.txt");
    std::vector<std::string> payloads;
    for (std::string line; std::getline(file, line);) payloads.push_back(bytes_of_hex(line));
    ASSERT_EQ(payloads.size(), 5u);
    NameList names;
    ProcessRecord process;
    NoteRecord note;
    StepOps ops;
    StepRecord step;
    ASSERT_TRUE(decode(payloads[0], process) && decode(payloads[1], note) && names.add(payloads[2]));
    StepDecoding how{.names = names, .room = kRoom};
    ASSERT_TRUE(decode(payloads[3], how, ops) && decode(payloads[4], how, step));
    step.ops = ops.ops;
    StepRecord expected = sample_step(7);
    expected.coverage.regrouped = expected.coverage.relaid = expected.coverage.outside =
        expected.coverage.drawn = expected.coverage.by_name = 0;  // newer than the payloads
    expected.products.clear();
    expected.matmuls.clear();
    for (TensorRecord& t : expected.tensors) {  // younger than the payload
        t.mastered = 0;
        t.change_squares = t.twin_change_squares = t.change_error_squares = t.rounding_squares = 0;
        t.rounded = 0;
        t.narrow = DType::unknown;
    }
    EXPECT_EQ(dump_of(process, step, note), dump_of(sample_process(), expected, sample_note()));
}

TEST(Records, WithoutTensorsAllElseStays) {
    const Written w = write(sample_step(7), false);
    StepDecoding how{.names = w.names, .room = kRoom};
    StepRecord back;
    ASSERT_TRUE(decode(w.step, how, back));
    EXPECT_TRUE(back.tensors.empty());
    EXPECT_EQ(back.losses.size(), 2u);
    EXPECT_EQ(back.coverage.failed, 4u);
}

TEST(Records, EveryShorterPayloadIsRefused) {
    const Written w = write(sample_step(7));
    int older = 0;
    for (std::size_t size = 0; size < w.step.size(); ++size) {
        StepDecoding how{.names = w.names, .room = kRoom};
        StepRecord back;
        const bool good = decode(std::string_view(w.step).substr(0, size), how, back);
        // The shorter payloads that are whole ones: of version 1, which had no places, and of those without sketches,
        // without products, and without matmuls.
        EXPECT_TRUE(!good || (back.matmuls.empty() && back.tensors.size() == 4)) << size;
        older += good;
    }
    EXPECT_EQ(older, 4);
}

TEST(Records, EveryShorterListOfOpsIsRefused) {
    const Written w = write(sample_step(7));
    for (std::size_t size = 0; size < w.ops.size(); ++size) {
        StepDecoding how{.names = w.names, .room = kRoom};
        StepOps back;
        EXPECT_FALSE(decode(std::string_view(w.ops).substr(0, size), how, back)) << size;
    }
    StepDecoding how{.names = w.names, .room = kRoom};
    StepOps back;
    EXPECT_TRUE(decode(w.ops + "a column of a newer writer", how, back));
}

TEST(Records, OpsAtTheirExtremesComeBack) {
    StepRecord step;
    step.step = Step{std::numeric_limits<std::int64_t>::max()};
    step.optimizer = std::numeric_limits<std::int32_t>::min();
    OpRecord most = test::sample_op(1, 1);
    for (const auto& column : kOpCounts) most.*column.field = ~std::uint64_t{0};
    double value = -std::numeric_limits<double>::infinity();
    for (const auto& column : kOpValues) {
        most.*column.field = value;
        value = value < 0 ? std::numeric_limits<double>::denorm_min() : std::nan("");
    }
    most.layer = std::string(4096, '\x1b');
    step.ops = {OpRecord{}, most, OpRecord{}, test::sample_op(3, 2)};
    const Written w = write(step);
    StepDecoding how{.names = w.names, .room = kRoom};
    StepOps back;
    back.ops.assign(100, test::sample_op(9, 9));  // memory of an earlier step
    ASSERT_TRUE(decode(w.ops, how, back));
    EXPECT_EQ(back.step, step.step);
    StepRecord again = step;
    again.ops = back.ops;
    EXPECT_EQ(dump_of({}, again, {}), dump_of({}, step, {}));
}

// A row that is none, a bin that is none, more counts than bytes.
TEST(Records, ForgedExponentsAreRefused) {
    const auto with = [](std::initializer_list<std::uint64_t> numbers) {
        StepRecord step;
        step.ops.assign(2, OpRecord{});
        Written w = write(step);
        w.ops.pop_back();  // the mask: no column
        std::string rows;
        for (const std::uint64_t v : numbers) ByteWriter(rows).number(v);
        ByteWriter to(w.ops);
        to.number(std::uint64_t{1} << kExponentsBit);
        to.text(rows);
        StepDecoding how{.names = w.names, .room = kRoom};
        StepOps back;
        return decode(w.ops, how, back);
    };
    EXPECT_TRUE(with({1, 254, 1, 5}));
    EXPECT_TRUE(with({1, 0, 2, 5, 6, 1, 3, 1, 7}));
    EXPECT_FALSE(with({2, 254, 1, 5}));
    EXPECT_FALSE(with({1, 255, 1, 5}));
    EXPECT_FALSE(with({1, 254, 2, 5, 5}));
    EXPECT_FALSE(with({1, 254, 0}));
    EXPECT_FALSE(with({1, 0, 200, 5}));
    EXPECT_FALSE(with({1, ~std::uint64_t{0}, 1, 5}));
}

TEST(Records, ColumnsOfZerosTakeNoSpace) {
    StepRecord step;
    step.ops.assign(1000, OpRecord{});
    EXPECT_LT(write(step).ops.size(), 15'010u + 10);
}

TEST(Records, ForgedNumbersOfOpsAreRefusedBeforeTheyAllocate) {
    for (const std::uint64_t rows : {std::uint64_t{1} << 60, ~std::uint64_t{0}, std::uint64_t{70'000'000}}) {
        std::string bytes;
        ByteWriter to(bytes);
        to.signed_number(1);
        to.signed_number(0);
        to.number(rows);
        bytes += std::string(1000, '\1');
        const NameList names;
        StepDecoding how{.names = names, .room = kRoom};
        StepOps back;
        EXPECT_FALSE(decode(bytes, how, back)) << rows;
        EXPECT_EQ(how.room, kRoom);
    }
}

TEST(Records, OpsThatDoNotFitAreLeftOut) {
    const Written w = write(sample_step(7, 1000));
    StepDecoding how{.names = w.names, .room = 4096};
    StepOps back;
    ASSERT_TRUE(decode(w.ops, how, back));
    EXPECT_TRUE(how.left_out);
    EXPECT_TRUE(back.ops.empty());
}

TEST(Records, FieldsOfANewerWriterAtTheEndAreSkipped) {
    const Written w = write(sample_step(7));
    StepDecoding how{.names = w.names, .room = kRoom};
    StepRecord back;
    EXPECT_TRUE(decode(w.step + "more", how, back));
    std::string bytes;
    encode(sample_note(), bytes);
    NoteRecord note;
    EXPECT_TRUE(decode(bytes + "more", note));

    // A loss with one more field, by hand: step, optimizer, flags, scale, wall, then the list.
    std::string payload;
    ByteWriter to(payload);
    to.signed_number(1);
    to.signed_number(0);
    to.u8(0);
    to.f64(0);
    to.signed_number(0);
    to.number(1);
    std::string loss;
    ByteWriter element(loss);
    element.signed_number(0);
    element.u8(5);
    element.u8(0);
    element.f64(1.5);
    element.f64(0);
    element.text("what this version does not know");
    to.text(loss);
    for (int list = 0; list < 2; ++list) to.number(0);
    to.text(std::string(19, '\0'));
    to.number(0);
    StepDecoding again{.names = w.names, .room = kRoom};
    ASSERT_TRUE(decode(payload, again, back = {}));
    ASSERT_EQ(back.losses.size(), 1u);
    EXPECT_EQ(back.losses[0].real, 1.5);
}

TEST(Records, ALostNameIsMarkedAndCounted) {
    const Written w = write(sample_step(7));
    const NameList nothing;
    StepDecoding how{.names = nothing, .room = kRoom};
    StepRecord back;
    ASSERT_TRUE(decode(w.step, how, back));
    EXPECT_EQ(how.names_lost, 13u) << "four tensors; op, reduction and group of a collective; a place; layer "
                                      "and op of a product; layer, op and how of a matmul";
    EXPECT_EQ(back.tensors[0].name, "?name-3");
}

TEST(Records, ListsThatDoNotFitStayEmpty) {
    const Written w = write(sample_step(7, 1000));
    StepDecoding how{.names = w.names, .room = 4096};
    StepRecord back;
    ASSERT_TRUE(decode(w.step, how, back));
    EXPECT_TRUE(how.left_out);
    EXPECT_TRUE(back.tensors.empty());
    EXPECT_EQ(back.losses.size(), 2u);
}

TEST(Records, LongNamesReferredToByTwoBytesCountAgainstTheRoom) {
    StepRecord step = sample_step(0, 200);
    for (TensorRecord& t : step.tensors) t.name = std::string(4000, 'n');
    const Written w = write(step);
    EXPECT_LT(w.step.size(), 30'000u);
    StepDecoding how{.names = w.names, .room = 100'000};
    StepRecord back;
    ASSERT_TRUE(decode(w.step, how, back));
    EXPECT_TRUE(how.left_out);
    EXPECT_LT(memory_of(back), 110'000u + sizeof back);
}

TEST(NameTable, GivesTheSameNumberForTheSameName) {
    NameTable t;
    EXPECT_EQ(t.reference(""), 1u);
    EXPECT_EQ(t.reference("a"), 2u);
    EXPECT_EQ(t.reference("b"), 3u);
    EXPECT_EQ(t.reference("a"), 2u);
    t.forget(1);
    EXPECT_EQ(t.size(), 1u);
    EXPECT_EQ(t.reference("c"), 3u);
}

TEST(NameTable, IsBoundedAndNamesBeyondItAreWrittenInPlace) {
    NameTable t;
    for (std::size_t i = 0; i < NameTable::kMaxNames; ++i) t.reference(std::to_string(i));
    EXPECT_EQ(t.reference("one more"), 0u);
    EXPECT_EQ(t.reference("7"), 9u);
    StepRecord step = sample_step(1);
    std::string bytes;
    encode(step, t, true, bytes);
    NameList names;
    StepDecoding how{.names = names, .room = kRoom};
    StepRecord back;
    ASSERT_TRUE(decode(bytes, how, back));
    EXPECT_EQ(back.tensors[0].name, step.tensors[0].name);
}

TEST(NameList, RefusesWhatNoWriterMakes) {
    NameList list;
    const std::pair<std::uint64_t, std::uint64_t> bad[] = {{~0ull, 1}, {0, ~0ull}, {70000, 1}, {0, 3}};
    for (const auto& [first, count] : bad) {
        std::string bytes;
        ByteWriter to(bytes);
        to.number(first);
        to.number(count);
        to.text("x");
        to.text("y");
        EXPECT_FALSE(list.add(bytes)) << first << " " << count;
    }
    EXPECT_FALSE(list.add(""));
    std::string large;
    ByteWriter to(large);
    to.number(0);
    to.number(5);
    for (int i = 0; i < 5; ++i) to.text(std::string(1 << 20, 'x'));
    NameList fresh;
    EXPECT_FALSE(fresh.add(large));
    EXPECT_LE(fresh.bytes(), NameTable::kMaxBytes);
}

TEST(Records, AKindThatNoWriterOfThisVersionMakesIsRefused) {
    std::string bytes;
    encode(sample_note(), bytes);
    bytes[0] = 99;
    NoteRecord note;
    EXPECT_FALSE(decode(bytes, note));
}

}  // namespace
}  // namespace mp::trace
