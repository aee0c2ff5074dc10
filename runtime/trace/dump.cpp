#include "runtime/trace/dump.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }
std::string text(std::uint64_t value) { return std::to_string(value); }
std::string text(double value) { return hex_of(value) + " (" + decimal_of(value) + ")"; }

// "key=value", each after a space.
class Line {
public:
    explicit Line(std::string start) : out_(std::move(start)) {}

    Line& word(std::string_view v) {
        out_.append(" ").append(v);
        return *this;
    }
    template <typename T>
    Line& field(std::string_view key, T value) {
        out_.append(" ").append(key).append("=");
        if constexpr (std::is_same_v<T, bool>) {
            out_ += value ? "yes" : "no";
        } else if constexpr (std::is_floating_point_v<T>) {
            out_ += text(static_cast<double>(value));
        } else if constexpr (std::is_unsigned_v<T>) {
            out_ += text(static_cast<std::uint64_t>(value));
        } else {
            out_ += text(static_cast<std::int64_t>(value));
        }
        return *this;
    }
    Line& name(std::string_view key, std::string_view value) {
        out_.append(" ").append(key).append("=").append(quoted(value));
        return *this;
    }
    void to(std::string& out) { out.append(out_).append("\n"); }

private:
    std::string out_;
};

// Shows the fields of a record on one line, in the order of its list.
template <class Record>
class Shower {
public:
    Shower(Line& line, const Record& record) : line_(line), record_(record) {}

    void field(const Field& f, auto Record::* member) {
        if (f.show != Show::hidden) value(f, f.name, record_.*member);
    }
    void field(std::string_view key, const Field& f, auto Record::* member) {
        value(f, key, record_.*member);
    }

private:
    template <class T>
    void value(const Field& f, std::string_view key, const T& v) {
        if constexpr (std::is_same_v<T, std::string>) {
            f.show == Show::bare ? line_.word(quoted(v)) : line_.name(key, v);
        } else if constexpr (std::is_enum_v<T>) {
            f.show == Show::bare ? line_.word(name_of(v))
                                 : line_.word(std::string(key) + "=" + std::string(name_of(v)));
        } else if constexpr (std::is_same_v<T, bool>) {
            if (f.show != Show::bare) line_.field(key, v);
            if (f.show == Show::bare && v) line_.word(key);
        } else if constexpr (std::is_same_v<T, Rank> || std::is_same_v<T, Step>) {
            line_.field(key, v.value);
        } else if constexpr (std::is_arithmetic_v<T>) {
            line_.field(key, v);
        }  // lists and records have separate lines
    }

    Line& line_;
    const Record& record_;
};

std::string_view start_of(const ProcessRecord&) { return "process"; }
std::string_view start_of(const LossRecord&) { return "  loss"; }
std::string_view start_of(const DTypeCount&) { return "  dtype"; }
std::string_view start_of(const CollectiveRecord&) { return "  collective"; }
std::string_view start_of(const Coverage&) { return "  coverage"; }
std::string_view start_of(const TensorRecord&) { return " "; }  // its kind follows
std::string_view start_of(const DTypePlace&) { return "  place"; }
std::string_view start_of(const SketchRecord&) { return "  sketch"; }
std::string_view start_of(const TimeRecord&) { return "  time"; }
std::string_view start_of(const ProductRecord&) { return "  product"; }
std::string_view start_of(const MatmulRecord&) { return "  matmul"; }

// Values that were not recorded are omitted.
bool is_there(const LossRecord& l, const Field& f) { return l.has_twin || f.name != "twin"; }
bool is_there(const StepRecord& s, const Field& f) { return s.has_loss_scale || f.name != "loss_scale"; }
bool is_there(const auto&, const Field&) { return true; }

template <class Record>
void put(std::string& out, const Record& r) {
    Line line{std::string(start_of(r))};
    Shower<Record> shower(line, r);
    fields(
        [&](const Field& f, auto member) {
            if (is_there(r, f)) shower.field(f, member);
            if constexpr (std::is_same_v<Record, TensorRecord>) {
                if (f.name == "twin_squares") line.word("relative_l2=" + decimal_of(relative_l2(r)));
            }
        },
        Of<Record>{});
    line.to(out);
}

// The text comes last.
void put(std::string& out, const NoteRecord& n) {
    Line line("note");
    Shower<NoteRecord> shower(line, n);
    fields(
        [&](const Field& f, auto member) {
            if (f.name != "text") shower.field(f, member);
        },
        Of<NoteRecord>{});
    line.word(quoted(n.text)).to(out);
}

void put(std::string& out, const Exponents& e) {
    Line line("    exponents");
    line.field("lowest", std::uint64_t{e.lowest});
    for (const std::uint64_t count : e.counts) line.word(text(count));
    line.to(out);
}

// A line for each measurement that was made.
void put(std::string& out, const OpRecord& o) {
    Line all("  op"), cum("    cum"), loc("    loc"), sums("    sums");
    Shower<OpRecord> of_all(all, o), of_cum(cum, o), of_loc(loc, o), of_sums(sums, o);
    fields(
        [&](const Field& f, auto member) {
            switch (f.part) {
                case Part::all:
                    return of_all.field(f, member);
                case Part::cum:
                    return of_cum.field(f, member);
                case Part::loc:
                    return of_loc.field(f.name.substr(f.name.starts_with("loc_") ? 4 : 0), f, member);
                case Part::sums:
                    return of_sums.field(f, member);
            }
        },
        Of<OpRecord>{});
    all.to(out);
    if (o.compared || o.nonfinite_real || o.nonfinite_twin) cum.to(out);
    if (o.loc_compared || o.loc_nonfinite) loc.to(out);
    if (!o.exponents.counts.empty()) put(out, o.exponents);
    if (o.added) sums.to(out);
}

void put(std::string& out, const StepRecord& s) {
    Line line("step " + text(s.step.value));
    Shower<StepRecord> shower(line, s);
    fields(
        [&](const Field& f, auto member) {
            if (f.name != "step" && is_there(s, f)) shower.field(f, member);
        },
        Of<StepRecord>{});
    line.to(out);
    fields(
        [&](const Field&, auto member) {
            const auto& value = s.*member;
            if constexpr (std::is_same_v<decltype(value), const Coverage&>) {
                put(out, value);
            } else if constexpr (requires { value.begin(); }) {
                for (const auto& element : value) put(out, element);
            }
        },
        Of<StepRecord>{});
}

void put(std::string& out, const Problem& p) {
    Line("problem").field("offset", p.offset).field("bytes_lost", p.bytes_lost).word(quoted(p.why)).to(out);
}

}  // namespace

std::string dump_text(const Recording& r) {
    std::string out;
    if (r.has_process) put(out, r.process);
    for (const StepRecord& s : r.steps) put(out, s);
    for (const NoteRecord& n : r.notes) put(out, n);
    for (const Problem& p : r.problems) put(out, p);
    return out;
}

}  // namespace mp::trace
