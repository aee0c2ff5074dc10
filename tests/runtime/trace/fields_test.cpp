// The field lists of runtime/trace/records.hpp hold every member of their structs, and docs/trace_format.md names every
// stored field in the order in which a recording holds it.

#include "runtime/trace/fields.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/trace/op_columns.hpp"
#include "runtime/trace/op_stats.hpp"
#include "runtime/trace/records.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::trace {
namespace {

struct Anything {
    template <class T>
    operator T() const;
};

// The number of members of an aggregate: the most initialisers that it takes.
template <class Record, class... Given>
constexpr std::size_t members() {
    if constexpr (requires { Record{std::declval<Given>()..., std::declval<Anything>()}; }) {
        return members<Record, Given..., Anything>();
    } else {
        return sizeof...(Given);
    }
}

template <class Record>
constexpr std::size_t listed() {
    std::size_t n = 0;
    fields([&n](const Field&, auto) { ++n; }, Of<Record>{});
    return n;
}

static_assert(listed<ProcessRecord>() == members<ProcessRecord>());
static_assert(listed<LossRecord>() == members<LossRecord>());
static_assert(listed<DTypeCount>() == members<DTypeCount>());
static_assert(listed<CollectiveRecord>() == members<CollectiveRecord>());
static_assert(listed<TensorRecord>() == members<TensorRecord>());
static_assert(listed<OpRecord>() == members<OpRecord>());
static_assert(listed<DTypePlace>() == members<DTypePlace>());
static_assert(listed<SketchRecord>() == members<SketchRecord>());
static_assert(listed<TimeRecord>() == members<TimeRecord>());
static_assert(listed<MatmulRecord>() == members<MatmulRecord>());
static_assert(listed<ProductRecord>() == members<ProductRecord>());
static_assert(listed<Coverage>() == members<Coverage>());
static_assert(listed<StepRecord>() == members<StepRecord>());
static_assert(listed<NoteRecord>() == members<NoteRecord>());

const std::string& page() {
    static const std::string text = [] {
        std::ifstream file(std::string(mp_source_dir()) + "/docs/trace_format.md");
        return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The position of the whole word `word` in `text`, from `from` on.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
    for (std::size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return at;
    }
    return std::string_view::npos;
}

class Reference {
public:
    // The text of the document from `start` to `end`.
    Reference(std::string_view start, std::string_view end) : start_(start) {
        const std::size_t from = page().find(start);
        if (from == std::string::npos) return;
        text_ = std::string_view(page()).substr(from + start.size());
        text_ = text_.substr(0, text_.find(end));
    }
    void expect_next(std::string_view name) {
        const std::size_t found = find_word(text_, name, at_);
        EXPECT_NE(found, std::string_view::npos) << "docs/trace_format.md: " << start_ << ": " << name;
        if (found != std::string_view::npos) at_ = found + name.size();
    }
    template <class Record>
    void expect_all() {
        stored_fields<Record>([this](const Field& f, auto) { expect_next(f.name); });
    }

private:
    std::string start_;
    std::string_view text_;
    std::size_t at_ = 0;
};

template <class Record>
void expect_row(std::string_view start, std::string_view end = "\n") {
    Reference(start, end).expect_all<Record>();
}

TEST(TraceDocument, NamesEveryFieldInItsOrder) {
    expect_row<ProcessRecord>("**1 process**", "\n\n");
    expect_row<NoteRecord>("**3 note**", "\n\n");
    expect_row<LossRecord>("| list losses |");
    expect_row<DTypeCount>("| list dtypes |");
    expect_row<CollectiveRecord>("| list collectives |");
    expect_row<Coverage>("| record coverage |");
    expect_row<TensorRecord>("| list tensors |");
    expect_row<DTypePlace>("| list places |");
    expect_row<SketchRecord>("| list sketches |");
    expect_row<TimeRecord>("| list times |");
    expect_row<ProductRecord>("| list products |");
    expect_row<MatmulRecord>("| list matmuls |");
    Reference step("**2 step**", "\n\ndtype:");
    fields(
        [&step](const Field& f, auto) {
            if (f.stored && f.bit < 1) step.expect_next(f.name);
        },
        Of<StepRecord>{});
    Reference ops("**5 ops**", "\n\nExponents:");
    for (const char* name : {"layer", "op", "source", "guessed", "phase", "dtype"}) ops.expect_next(name);
    for (unsigned bit = 0; bit < kOpBits; ++bit) {
        fields(
            [&](const Field& f, auto member) {
                if constexpr (columns::is_column(decltype(member){})) {
                    if (bit_of(member) == bit) ops.expect_next(f.name);
                }
            },
            Of<OpRecord>{});
        if (bit == kExponentsBit) ops.expect_next("exponents");
    }
}

TEST(Nan, IsTheWorstWhereverItStands) {
    const double nan = std::nan("");
    EXPECT_TRUE(std::isnan(larger(nan, 1.0)) && std::isnan(larger(1.0, nan)));
    EXPECT_TRUE(std::isnan(smaller(nan, 1.0)) && std::isnan(smaller_above_zero(1.0, nan)));
    EXPECT_FALSE(std::signbit(larger(-nan, 1.0))) << "one NaN, so that no order shows";
    EXPECT_EQ(larger(1.0, 2.0), 2.0);
    EXPECT_EQ(smaller_above_zero(0.0, 2.0), 2.0);
    EXPECT_EQ(smaller_above_zero(3.0, 2.0), 2.0);
    EXPECT_TRUE(is_worse(nan, 1.0) && is_worse(2.0, 1.0));
    EXPECT_FALSE(is_worse(1.0, nan) || is_worse(nan, nan) || is_worse(1.0, 1.0));
}

// The kernels give a finite amax, or 0. A NaN comes from a record that was damaged or merged, and no order may hide it.
TEST(AddResult, ANanIsTheWorstInEveryOrder) {
    TensorStats some, lost;
    some.amax = 3;
    some.amin = 1;
    lost.amax = lost.amin = std::nan("");
    for (const auto& [first, second] : {std::pair(some, lost), std::pair(lost, some)}) {
        OpRecord op;
        add_result(op, first);
        add_result(op, second);
        EXPECT_TRUE(std::isnan(op.amax));
        EXPECT_TRUE(std::isnan(op.amin));
    }
    OpRecord op;
    add_result(op, some);
    add_result(op, TensorStats{});  // of zeros
    EXPECT_EQ(op.amax, 3);
    EXPECT_EQ(op.amin, 1);
}

}  // namespace
}  // namespace mp::trace
