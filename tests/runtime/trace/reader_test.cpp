#include "runtime/trace/reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame.hpp"
#include "runtime/trace/info.hpp"
#include "runtime/trace/recorder.hpp"
#include "tests/runtime/trace/samples.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mp::trace {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::sample_note;
using test::sample_process;
using test::sample_step;
using test::write_bytes;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// Where the frames of a good file begin; the last element is its size.
std::vector<std::size_t> frames_of(const std::string& bytes) {
    std::vector<std::size_t> at{kFileHeaderSize};
    while (at.back() < bytes.size()) {
        const auto header = read_frame_header(bytes.data() + at.back());
        EXPECT_TRUE(header);
        at.push_back(at.back() + kFrameOverhead + header->stored);
    }
    EXPECT_EQ(at.back(), bytes.size());
    return at;
}

// A frame with other lengths and flags in its header than its payload has, and right checks for them.
std::string forged(std::string frame, std::uint8_t flags, std::uint32_t stored, std::uint32_t raw) {
    frame[5] = static_cast<char>(flags);
    store_little(frame.data() + 8, stored);
    store_little(frame.data() + 12, raw);
    store_little(frame.data() + 20, static_cast<std::uint32_t>(XXH3_64bits(frame.data(), 20)));
    const std::size_t body = frame.size() - kFrameTrailerSize;
    store_little(frame.data() + body, std::uint64_t{XXH3_64bits(frame.data(), body)});
    return frame;
}

class ReaderTest : public testing::Test {
protected:
    static constexpr int kSteps = 12;

    void SetUp() override {
        auto recorder = Recorder::open(directory_.path(), "good.mpt", {});
        ASSERT_TRUE(recorder);
        (*recorder)->process(sample_process());
        for (int i = 0; i < kSteps; ++i) {
            (*recorder)->step(sample_step(i, i % 4 == 3 ? 40 : 2));
            if (i % 5 == 2) (*recorder)->note(sample_note("note " + std::to_string(i)));
        }
        recorder->reset();
        good_ = bytes_of(directory_.file("good.mpt"));
        frames_ = frames_of(good_);
        whole_ = *read_recording(directory_.file("good.mpt"));
    }

    Recording read(const std::string& bytes) {
        write_bytes(directory_.file("some.mpt"), bytes);
        auto recording = read_recording(directory_.file("some.mpt"));
        EXPECT_TRUE(recording) << recording.error().message;
        return recording ? *std::move(recording) : Recording{};
    }
    static std::vector<std::string> why(const Recording& r) {
        std::vector<std::string> out;
        for (const Problem& p : r.problems) out.push_back(p.why);
        return out;
    }
    std::size_t kind(std::size_t frame) const {
        return static_cast<unsigned char>(good_[frames_[frame] + 4]);
    }
    std::string frame(std::size_t i) const { return good_.substr(frames_[i], frames_[i + 1] - frames_[i]); }
    std::size_t count() const { return frames_.size() - 1; }

    test::TemporaryDirectory directory_;
    std::string good_;
    std::vector<std::size_t> frames_;
    Recording whole_;
};

TEST_F(ReaderTest, AGoodFileHasNoProblems) {
    EXPECT_THAT(whole_.problems, IsEmpty());
    EXPECT_TRUE(whole_.has_process);
    EXPECT_EQ(whole_.steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_EQ(whole_.notes.size(), 2u);
    EXPECT_EQ(whole_.bytes, good_.size());
}

TEST_F(ReaderTest, EveryTruncationReadsTheWholeFramesBeforeIt) {
    for (std::size_t size = 0; size < good_.size(); ++size) {
        // Every place near a border, and a sample of the others.
        const auto border = std::lower_bound(frames_.begin(), frames_.end(), size);
        const bool near = *border - size < 3 || (border != frames_.begin() && size - *(border - 1) < 3);
        if (size > kFileHeaderSize && !near && size % 17) continue;
        const Recording r = read(good_.substr(0, size));
        std::size_t steps = 0;
        for (std::size_t i = 0; i < count() && frames_[i + 1] <= size; ++i) steps += kind(i) == 2;
        ASSERT_EQ(r.steps.size(), steps) << size;
        const bool whole = std::find(frames_.begin(), frames_.end(), size) != frames_.end();
        ASSERT_EQ(r.problems.size(), whole ? 0u : 1u) << size;
        if (!whole) {
            EXPECT_EQ(r.problems[0].offset + r.problems[0].bytes_lost, size);
        }
    }
}

TEST_F(ReaderTest, ADamagedFrameCostsItselfOnly) {
    for (std::size_t i = 0; i < count(); ++i) {
        for (const std::size_t where : {frames_[i], frames_[i] + 9, frames_[i + 1] - 1}) {
            std::string bytes = good_;
            bytes[where] = static_cast<char>(bytes[where] ^ 0x10);
            const Recording r = read(bytes);
            EXPECT_EQ(r.steps.size(), kSteps - (kind(i) == 2)) << i;
            EXPECT_EQ(r.has_process, kind(i) != 1);
            ASSERT_FALSE(r.problems.empty());
            EXPECT_EQ(r.problems[0].offset, frames_[i]);
            EXPECT_EQ(r.problems[0].bytes_lost, frames_[i + 1] - frames_[i]);
            // Lost names, and ops that lost their step, are a problem of their own; not those of a torn end.
            const bool lost_step = kind(i) == 2 && i + 1 < count();
            EXPECT_EQ(r.problems.size(), kind(i) == 4 || lost_step ? 2u : 1u) << i;
            std::size_t with_ops = 0;
            for (const StepRecord& s : r.steps) with_ops += !s.ops.empty();
            EXPECT_EQ(with_ops, kSteps - (kind(i) == 2 || kind(i) == 5)) << i;
        }
    }
}

TEST_F(ReaderTest, NamesThatAreLostAreMarkedUntilTheyAreRepeated) {
    ASSERT_EQ(kind(1), 4u);
    std::string bytes = good_;
    bytes[frames_[1] + 30] ^= 1;
    const Recording lost = read(bytes);
    EXPECT_EQ(lost.steps[0].tensors[0].name.substr(0, 6), "?name-");
    EXPECT_THAT(why(lost), Contains(HasSubstr("references to names that were lost")));
    // A later copy of the same names serves the frames before it too.
    Packer packer;
    const std::size_t payload = frames_[1] + kFrameHeaderSize;
    const std::string names = good_.substr(payload, frames_[2] - kFrameTrailerSize - payload);
    const Recording found = read(bytes + packer.frame(FrameKind::names, 1000, names));
    EXPECT_EQ(found.steps[0].tensors[0].name, whole_.steps[0].tensors[0].name);
}

TEST_F(ReaderTest, DuplicatedFramesAreReadOnceAndMissingOnesAreSaid) {
    std::string twice = good_.substr(0, frames_[5]) + frame(4) + good_.substr(frames_[5]);
    Recording r = read(twice);
    EXPECT_EQ(r.steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_THAT(why(r), ElementsAre(HasSubstr("again")));
    r = read(good_.substr(0, frames_[4]) + good_.substr(frames_[6]));
    EXPECT_THAT(why(r), ElementsAre(HasSubstr("2 frames are missing")));
}

TEST_F(ReaderTest, ADamagedFileHeaderIsAProblemAndNoFailure) {
    std::string bytes = good_;
    bytes[3] ^= 1;
    const Recording r = read(bytes);
    EXPECT_EQ(r.steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_THAT(why(r), Contains(HasSubstr("file header")));
}

TEST_F(ReaderTest, UnknownKindsOfFramesAreSkippedSilently) {
    Packer packer;
    const std::string ahead =
        packer.frame(static_cast<FrameKind>(200), static_cast<std::uint32_t>(count()), "new");
    const Recording r = read(good_ + ahead);
    EXPECT_THAT(r.problems, IsEmpty());
    EXPECT_EQ(r.steps.size(), static_cast<std::size_t>(kSteps));
}

TEST_F(ReaderTest, ANewerVersionAndWhatIsNoRecordingAreErrors) {
    write_bytes(directory_.file("text.mpt"), std::string(1000, 'x'));
    EXPECT_THAT(read_recording(directory_.file("text.mpt")).error().message, HasSubstr("not a recording"));
    EXPECT_THAT(read_recording(directory_.file("none.mpt")).error().message, HasSubstr("No such file"));
    EXPECT_FALSE(read_recording(directory_.path()));
    EXPECT_FALSE(read_recording("/dev/zero"));
    ASSERT_EQ(::mkfifo(directory_.file("fifo.mpt").c_str(), 0600), 0);
    EXPECT_FALSE(read_recording(directory_.file("fifo.mpt"))) << "and does not wait for a writer";
}

TEST_F(ReaderTest, AForgedLengthIsNoFrameAndASearchAmongThemEnds) {
    Packer packer;
    std::string bombs;
    for (std::uint32_t i = 0; i < 2000; ++i) {
        const std::string frame = packer.frame(FrameKind::step, 50 + i, std::string(60, '\xff'));
        bombs += forged(frame, 0, static_cast<std::uint32_t>(kMaxPayload) >> (i % 16), 60);
    }
    const Recording r = read(good_ + bombs + std::string(3 << 20, '\0'));
    EXPECT_EQ(r.steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_FALSE(r.problems.empty());
}

TEST_F(ReaderTest, APayloadThatUnpacksToAnotherSizeIsAProblem) {
    Packer packer;
    const auto next = static_cast<std::uint32_t>(count());
    const std::string packed = packer.frame(FrameKind::note, next, std::string(5000, 'a'));
    const auto header = *read_frame_header(packed.data());
    ASSERT_EQ(header.flags, kFlagZstd);
    for (const std::uint32_t raw : {0u, 10u, 4999u, 5001u, static_cast<std::uint32_t>(kMaxPayload)}) {
        const Recording r = read(good_ + forged(packed, kFlagZstd, header.stored, raw));
        EXPECT_THAT(why(r), ElementsAre(HasSubstr("cannot be unpacked"))) << raw;
    }
    const std::string unpacked = packer.frame(FrameKind::note, next, "not zstd");
    EXPECT_THAT(why(read(good_ + forged(unpacked, kFlagZstd, 8, 8))),
                ElementsAre(HasSubstr("cannot be unpacked")));
    EXPECT_THAT(why(read(good_ + forged(unpacked, 2, 8, 8))), ElementsAre(HasSubstr("cannot be unpacked")));
}

TEST_F(ReaderTest, MegabytesOfDamageCostWhatTheyHitOnly) {
    // Marks at every place around the borders of the pieces in which a search reads.
    for (std::size_t size = (1 << 20) - 6; size < (1 << 20) + 6; ++size) {
        const Recording r =
            read(good_.substr(0, frames_[6]) + std::string(size, '\xf5') + good_.substr(frames_[6]));
        EXPECT_EQ(r.steps.size(), static_cast<std::size_t>(kSteps)) << size;
        ASSERT_EQ(r.problems.size(), 1u);
        EXPECT_EQ(r.problems[0].bytes_lost, size);
    }
}

TEST_F(ReaderTest, APackedBombStaysWithinTheBound) {
    // References of two bytes to names of 4 KiB, packed. Few frames that are each too large to hold, then many
    // that are too large together.
    for (const auto& [tensors, frames] : {std::pair<std::size_t, std::uint32_t>{300'000, 4}, {3000, 400}}) {
        Packer packer;
        NameTable table;
        StepRecord step = sample_step(1, 0);
        step.tensors.resize(tensors);
        for (TensorRecord& t : step.tensors) t.name = std::string(4000, 'n');
        std::string payload, names;
        encode(step, table, true, payload);
        table.encode(0, names);
        std::string bytes = file_header() + packer.frame(FrameKind::names, 0, names);
        for (std::uint32_t i = 1; i <= frames; ++i) bytes += packer.frame(FrameKind::step, i, payload);
        ASSERT_LT(bytes.size(), 4u << 20);
        const Recording r = read(bytes);
        EXPECT_EQ(r.steps.size(), frames) << "the steps are there, not all of their tensors";
        EXPECT_THAT(why(r), Contains(HasSubstr("too large to hold")));
        std::size_t memory = 0;
        for (const StepRecord& s : r.steps) memory += memory_of(s);
        EXPECT_LT(memory, (256u << 20) + 4 * bytes.size());
    }
}

TEST_F(ReaderTest, ARunListsItsRecordingsMissingRanksAndWhatCannotBeRead) {
    test::TemporaryDirectory run;
    const auto record = [&run](const std::string& name, std::int32_t rank, std::int32_t restart) {
        auto recorder = Recorder::open(run.path(), name, {});
        ProcessRecord p = sample_process(rank);
        p.world_size = 5;
        p.restart = restart;
        (*recorder)->process(p);
        (*recorder)->step(sample_step(0));
    };
    record("c.mpt", 3, 0);
    record("a.mpt", 0, 1);
    record("b.mpt", 0, 0);
    write_bytes(run.file("options.17"), "mode=watch\n");
    write_bytes(run.file("twin-0.safetensors"), "x");
    write_bytes(run.file("zero.mpt"), std::string(100, '\0'));
    write_bytes(run.file("empty.mpt"), "");
    const auto r = read_run(run.path());
    ASSERT_TRUE(r);
    std::vector<std::string> names;
    for (const Recording& recording : r->recordings) names.push_back(fs::path(recording.path).filename());
    EXPECT_THAT(names, ElementsAre("b.mpt", "a.mpt", "c.mpt", "empty.mpt"));
    EXPECT_THAT(r->missing, ElementsAre(Rank{1}, Rank{2}, Rank{4}));
    ASSERT_EQ(r->unreadable.size(), 1u);
    EXPECT_THAT(r->unreadable[0].message, HasSubstr("zero.mpt"));
    EXPECT_FALSE(read_run(run.file("none")));
}

TEST_F(ReaderTest, AHostileWorldSizeDoesNotFillTheMemory) {
    test::TemporaryDirectory run;
    {
        auto recorder = Recorder::open(run.path(), "a.mpt", {});
        ProcessRecord p = sample_process();
        p.world_size = 0x7fffffff;
        (*recorder)->process(p);
    }
    EXPECT_LE(read_run(run.path())->missing.size(), 1u << 20);
}

// One of the faults that files get, at a random place; returns the first byte it touched.
std::size_t mutate(std::string& bytes, const std::vector<std::size_t>& frames, std::mt19937& random) {
    auto below = [&random](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    const std::size_t at = below(bytes.size());
    const std::size_t i = below(frames.size() - 1);
    const std::string one = bytes.substr(frames[i], frames[i + 1] - frames[i]);
    switch (below(9)) {
        case 0:
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
            return at;
        case 1:
            bytes.resize(at);
            return at;
        case 2:
            bytes.erase(at, 1 + below(100));
            return at;
        case 3:
            bytes.insert(at, std::string(1 + below(100), static_cast<char>(below(256))));
            return at;
        case 4:  // a length bomb
            store_little(bytes.data() + frames[i] + 8 + 4 * below(2),
                         static_cast<std::uint32_t>(0xffffffff >> below(8)));
            return frames[i] + 8;
        case 5:
            bytes.insert(frames[i + 1], one);
            return frames[i + 1];
        case 6:  // zeros, as file systems leave them after power loss
            for (std::size_t k = at; k < std::min(at + 512, bytes.size()); ++k) bytes[k] = '\0';
            return at;
        case 7:  // two frames exchanged
            bytes.erase(frames[i], one.size());
            bytes.insert(bytes.size(), one);
            return frames[i];
        default: {  // an intact frame with a mangled payload: only the decoder can notice
            std::string payload = one.substr(kFrameHeaderSize, one.size() - kFrameOverhead);
            for (std::size_t k = 1 + below(4); k > 0 && !payload.empty(); --k)
                payload[below(payload.size())] = static_cast<char>(below(256));
            Packer packer;
            const auto header = read_frame_header(one.data());
            std::string again = packer.frame(static_cast<FrameKind>(header->kind), header->sequence, payload);
            bytes.replace(frames[i], one.size(), again);
            return frames[i];
        }
    }
}

TEST_F(ReaderTest, TwoThousandMutantsCrashNothingAndAllBeforeTheDamageIsIntact) {
    std::mt19937 random(20240607);
    int with_problems = 0;
    for (int n = 0; n < 2000; ++n) {
        std::string bytes = good_;
        std::size_t damage = mutate(bytes, frames_, random);
        const bool twice = n % 4 == 0 && bytes.size() >= good_.size();
        if (twice) {
            // Offsets of the original still lie inside: some second fault, wherever it hits.
            const std::size_t at = random() % bytes.size();
            bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
            damage = std::min(damage, at);
        }
        write_bytes(directory_.file("some.mpt"), bytes);
        const auto r = read_recording(directory_.file("some.mpt"));
        if (damage < kFileHeaderSize) continue;  // may be an error; a crash it may not be
        ASSERT_TRUE(r) << n;
        with_problems += !r->problems.empty();
        std::size_t intact = 0;
        for (std::size_t i = 0; i + 1 < frames_.size() && frames_[i + 1] <= damage; ++i)
            intact += kind(i) == 2;
        ASSERT_GE(r->steps.size(), intact) << n;
        Recording expected, got;
        expected.steps.assign(whole_.steps.begin(),
                              whole_.steps.begin() + static_cast<std::ptrdiff_t>(intact));
        got.steps.assign(r->steps.begin(), r->steps.begin() + static_cast<std::ptrdiff_t>(intact));
        // Names that only a later or damaged frame gives may be lost; all else is as it was.
        if (frames_[2] <= damage) {
            std::string a = dump_text(expected), b = dump_text(got);
            if (a != b) EXPECT_THAT(b, HasSubstr("?name-")) << n;
        }
        dump_text(*r);
        info_text(*r);
    }
    EXPECT_GT(with_problems, 1500);
}

}  // namespace
}  // namespace mp::trace
