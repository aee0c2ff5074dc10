// Streams of events that sources handed to a run, handed to another one: testdata/events/NAME.events gives the records
// of NAME.txt. There are no addresses in a stream, so nothing is measured; steps, layers, counts and notes are.
//
// A first line with '#' says where a stream was recorded. MP_UPDATE_GOLDEN=1 rewrites the records, never in CI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "instrument/cuda/run.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/reader.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::raw {
namespace {

namespace fs = std::filesystem;

// The fields of a line, one after the other.
class Fields {
public:
    explicit Fields(const std::string& line) {
        std::string field;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '\t') {
                all_.push_back(std::exchange(field, {}));
            } else if (line[i] == '\\' && i + 1 < line.size()) {
                const char c = line[++i];
                field += c == 't' ? '\t' : c == 'n' ? '\n' : c;
            } else {
                field += line[i];
            }
        }
        all_.push_back(field);
    }
    std::string text() { return at_ < all_.size() ? all_[at_++] : std::string(); }
    double real() { return std::strtod(text().c_str(), nullptr); }
    template <class T = int>
    T number() {
        return static_cast<T>(std::strtoll(text().c_str(), nullptr, 10));
    }
    bool ended() const { return at_ == all_.size(); }

private:
    std::vector<std::string> all_;
    std::size_t at_ = 0;
};

class Replay {
public:
    explicit Replay(Run& run) : run_(run) {}

    // False: the line is no event.
    bool event(const std::string& line) {
        Fields f(line);
        const std::string kind = f.text();
        if (kind == "place") {
            const auto id = f.number<PlaceId>(), parent = f.number<PlaceId>();
            places_[id] = run_.enter(places_[parent], f.text()).id;
        } else if (kind == "begin") {
            run_.begin_step(f.number<std::int64_t>());
        } else if (kind == "end") {
            run_.end_step();
        } else if (kind == "done") {
            const bool skipped = f.number() != 0;
            run_.step_done(skipped, f.real());
        } else if (kind == "tensor") {
            NamedTensor t;
            t.dtype = f.number<DType>();
            t.elements = f.number<long long>();
            t.role = f.number();
            t.name = f.text();
            run_.name_tensor(std::move(t));
        } else if (kind == "product") {
            product(f);
        } else if (kind == "collective") {
            const Collective c = collective(f);
            f.text();
            run_.after(run_.before(c), c, true);
        } else if (kind == "chose" || kind == "told") {
            const Collective c = collective(f);
            kind == "chose" ? run_.chose(c, f.text()) : run_.told(c, f.text());
        } else if (kind == "launch") {
            run_.launched(f.text().c_str());
        } else if (kind == "rank") {
            const int rank = f.number();
            run_.learn_rank(rank, f.number());
        } else {
            return false;
        }
        return f.ended();
    }

private:
    // Ops are compared by their addresses.
    const char* name(const std::string& text) { return names_.insert(text).first->c_str(); }

    static Matrix matrix(Fields& f) {
        Matrix m;
        m.dtype = f.number<DType>();
        for (std::int64_t* const value : {&m.rows, &m.columns, &m.leading, &m.batches, &m.stride})
            *value = f.number<std::int64_t>();
        m.row_major = f.number() != 0;
        return m;
    }
    void product(Fields& f) {
        const PlaceId place = places_[f.number<PlaceId>()];
        Product p;
        p.op = name(f.text());
        p.depth = f.number<std::uint64_t>();
        p.half_sums = f.number() != 0;
        p.split_sums = f.number() != 0;
        p.tf32 = f.number() != 0;
        p.result = matrix(f);
        for (int left = f.number(); left > 0; --left) p.read(matrix(f));
        if (!f.ended()) {  // those of the H100 end here
            p.compute = f.number();
            p.parts = f.number();
            p.epilogue = f.number<std::uint32_t>();
            p.scheme = f.number<std::uint32_t>();
            p.has_scales = f.number() != 0;
        }
        run_.after(run_.before(place, p), p, true);
    }
    Collective collective(Fields& f) {
        Collective c;
        c.op = name(f.text());
        c.reduction = name(f.text());
        c.dtype = f.number<DType>();
        for (std::uint64_t* const value : {&c.sent, &c.received, &c.width})
            *value = f.number<std::uint64_t>();
        c.ranks = f.number();
        c.rank = f.number();
        c.call = f.number<std::uint64_t>();
        return c;
    }

    Run& run_;
    std::map<PlaceId, PlaceId> places_{{0, 0}};  // of the stream, and of this run
    std::set<std::string> names_;
};

// The recording as text, without what differs from run to run.
std::string records_of(const fs::path& stream, const fs::path& directory) {
    fs::create_directories(directory);
    trace::Options options;
    options.run_dir = directory.string();
    options.quiet = true;
    Run run(options, {});
    Replay replay(run);
    std::ifstream file(stream);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number)
        EXPECT_TRUE(line.starts_with('#') || replay.event(line)) << stream << ":" << number << ": " << line;
    run.finish();
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
        if (entry.path().extension() != ".mpt") continue;
        auto recording = trace::read_recording(entry.path().string());
        if (!recording) continue;
        recording->has_process = false;
        for (trace::StepRecord& step : recording->steps) step.wall_ns = 0;
        return trace::dump_text(*recording);
    }
    return "no recording";
}

TEST(Events, AStreamGivesItsRecords) {
    int of_fakes = 0, of_gpus = 0;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(std::string(mp_source_dir()) + "/testdata/events")) {
        if (entry.path().extension() != ".events") continue;
        const bool is_of_gpu = entry.path().stem().string().ends_with("_h100");
        ++(is_of_gpu ? of_gpus : of_fakes);
        const fs::path scratch = fs::path(testing::TempDir()) / ("mp-replay-" + std::to_string(::getpid()));
        const std::string records = records_of(entry.path(), scratch);
        fs::remove_all(scratch);
        fs::path expected = entry.path();
        expected.replace_extension(".txt");
        if (std::getenv("MP_UPDATE_GOLDEN") && !std::getenv("CI")) std::ofstream(expected) << records;
        std::ostringstream text;
        text << std::ifstream(expected).rdbuf();
        EXPECT_EQ(records, text.str()) << entry.path();
        std::string first;
        std::getline(std::ifstream(entry.path()) >> std::ws, first);
        EXPECT_TRUE(first.starts_with("# ")) << "where was " << entry.path() << " recorded?";
        EXPECT_NE(first.find(is_of_gpu ? "recorded on: NVIDIA" : "recorded on: fakes"), std::string::npos)
            << entry.path() << ": " << first;
    }
    EXPECT_GE(of_fakes, 3);
    EXPECT_GE(of_gpus, 3);
}

}  // namespace
}  // namespace mp::raw
