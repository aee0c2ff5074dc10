#include "runtime/trace/decode.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"

namespace mp::trace {
namespace {

// A new kind of an enumeration raises the version of the format, so an unknown one is damage.
template <typename Enum>
Enum take_enum(ByteReader& from) {
    const std::uint8_t value = from.u8();
    if (value > static_cast<std::uint8_t>(last_of(Enum{}))) from.refuse();
    return from.ok() ? static_cast<Enum>(value) : Enum{};
}

// A dtype that this version does not know reads as DType::unknown, which is a valid value.
DType take_dtype(ByteReader& from) {
    const std::uint8_t value = from.u8();
    return value <= static_cast<std::uint8_t>(kLastDType) ? static_cast<DType>(value) : DType::unknown;
}

std::int32_t take_int32(ByteReader& from) { return static_cast<std::int32_t>(from.signed_number()); }

NameRef take_reference(ByteReader& from, const StepDecoding& how, std::size_t& lost) {
    NameRef name;
    name.reference = from.number();
    if (name.reference == 0) name.text = from.text();
    lost += name.reference > 1 && !how.names.find(name.reference - 2);
    return name;
}

// Counts the memory of names, because two bytes can refer to a name of 4 KiB. `written` returns the text of a name
// that has no reference.
template <typename Written>
void take_name(std::uint64_t reference, StepDecoding& how, std::string& into, Written written) {
    if (reference == 1) return into.clear();
    const std::string* kept = reference ? how.names.find(reference - 2) : nullptr;
    if (reference && !kept) {
        ++how.names_lost;
        into = "?name-" + std::to_string(reference - 2);
        return;
    }
    const std::string_view name = kept ? std::string_view(*kept) : written();
    const std::size_t heap = name.size() > 15 ? name.size() + 16 : 0;
    if (heap > how.room) {
        how.left_out = true;
        return into.clear();
    }
    how.room -= heap;
    into = name;
}

std::string take_name(ByteReader& from, StepDecoding& how) {
    std::string name;
    const std::uint64_t reference = from.number();
    take_name(reference, how, name, [&from] { return from.text(); });
    return name;
}

// Bytes of a record at its shortest, as version 1 wrote it.
template <class Record>
constexpr std::size_t smallest() {
    std::size_t bytes = 0;
    fields(
        [&](const Field& f, auto member) {
            if (f.generation == 0)
                bytes += std::is_same_v<decltype(member), double Record::*> ? sizeof(double) : 1;
        },
        Of<Record>{});
    return bytes;
}

// Reads the fields of a record in the order in which a recording holds them.
class Decoder {
public:
    // `how`: null for records that hold their texts themselves. `rows`: not null where the names of tensors and places
    // are stored outside the records.
    explicit Decoder(ByteReader& from, StepDecoding* how = nullptr, StepRows* rows = nullptr)
        : from_(from), how_(how), rows_(rows) {}

    // A generation that an older writer did not know reads as its default.
    template <class Record>
    void record(Record& r) {
        unsigned generation = 0;
        bool known = true;
        stored_fields<Record>([&](const Field& f, auto member) {
            if (f.generation != generation) known = known && !from_.at_end(), generation = f.generation;
            if (!from_.ok()) return;
            if (!known) {
                r.*member = {};
            } else if constexpr (std::is_same_v<decltype(member), std::string Record::*>) {
                name(r, r.*member);
            } else if constexpr (std::is_same_v<decltype(member), bool Record::*>) {
                if (f.bit <= 0) flags_ = from_.u8();
                r.*member = f.bit < 0 ? flags_ != 0 : (flags_ >> f.bit & 1) != 0;
            } else {
                value(r.*member);
            }
        });
    }

private:
    void value(std::uint64_t& v) { v = from_.number(); }
    void value(std::int64_t& v) { v = from_.signed_number(); }
    void value(std::int32_t& v) { v = take_int32(from_); }
    void value(double& v) { v = from_.f64(); }
    void value(Rank& v) { v.value = take_int32(from_); }
    void value(Step& v) { v.value = from_.signed_number(); }
    void value(DType& v) { v = take_dtype(from_); }
    template <class Enum>
        requires std::is_enum_v<Enum>
    void value(Enum& v) {
        v = take_enum<Enum>(from_);
    }
    void value(std::vector<OpRecord>&) {}  // stored in a separate frame
    // What is missing at its end reads as 0.
    void value(Coverage& v) {
        ByteReader element = from_.record();
        v = {};
        Decoder(element).record(v);
    }
    template <class Record>
    void name(const Record&, std::string& into) {
        if (!how_) {
            into = from_.text();
            return;
        }
        std::vector<NameRef>* beside = nullptr;
        if constexpr (std::is_same_v<Record, TensorRecord>) beside = rows_ ? &rows_->tensors : nullptr;
        if constexpr (std::is_same_v<Record, DTypePlace>) beside = rows_ ? &rows_->places : nullptr;
        if (beside) {
            beside->push_back(take_reference(from_, *how_, how_->names_lost));
        } else {
            into = take_name(from_, *how_);
        }
    }
    // A list that exceeds the room stays empty.
    template <class Record>
    void value(std::vector<Record>& into) {
        into.clear();
        const std::uint64_t count = from_.number();
        constexpr std::size_t kShortest = 1 + smallest<Record>();  // with its length
        if (!from_.ok() || count > from_.size() / kShortest) return from_.refuse();
        const bool fits = count <= how_->room / sizeof(Record);
        if (fits) {
            into.reserve(static_cast<std::size_t>(count));
            how_->room -= static_cast<std::size_t>(count) * sizeof(Record);
        } else {
            how_->left_out = true;
        }
        for (std::uint64_t i = 0; i < count && from_.ok(); ++i) {
            ByteReader element = from_.record();
            if (!from_.ok() || !fits) continue;
            Decoder(element, how_, rows_).record(into.emplace_back());
            if (!element.ok()) from_.refuse();
        }
    }

    ByteReader& from_;
    StepDecoding* how_;
    StepRows* rows_;
    std::uint8_t flags_ = 0;
};

template <class Record>
bool decode_whole(std::string_view payload, StepDecoding* how, StepRows* rows, Record& r) {
    ByteReader from(payload);
    Decoder(from, how, rows).record(r);
    return from.ok();
}

bool take_name_column(ByteReader& from, StepDecoding& how, std::vector<OpRecord>& ops,
                      std::string OpRecord::* field) {
    const std::string_view column = from.bytes(ops.size() * 4);
    for (std::size_t i = 0; i < ops.size() && from.ok(); ++i) {
        const auto reference = load_little<std::uint32_t>(column.data() + 4 * i);
        take_name(reference, how, ops[i].*field, [&from] { return from.text(); });
    }
    return from.ok();
}

// The columns of one byte per row: a boolean and two enumerations.
template <typename Op>
bool take_kinds(ByteReader& from, std::vector<Op>& ops) {
    const std::string_view bytes = from.bytes(ops.size() * 3);
    if (!from.ok()) return false;
    ByteReader guessed(bytes.substr(0, ops.size()));
    ByteReader phases(bytes.substr(ops.size(), ops.size()));
    ByteReader dtypes(bytes.substr(2 * ops.size()));
    for (Op& op : ops) {
        op.guessed = guessed.u8() != 0;
        op.phase = take_enum<Phase>(phases);
        op.dtype = take_dtype(dtypes);
    }
    return phases.ok();
}

bool take_reference_column(ByteReader& from, const StepDecoding& how, OpColumns& r,
                           NameRef OpColumns::Row::* field) {
    const std::string_view column = from.bytes(r.rows.size() * 4);
    for (std::size_t i = 0; i < r.rows.size() && from.ok(); ++i) {
        NameRef& name = r.rows[i].*field;
        name.reference = load_little<std::uint32_t>(column.data() + 4 * i);
        name.text = name.reference ? std::string_view() : from.text();
        r.names_lost += name.reference > 1 && !how.names.find(name.reference - 2);
    }
    return from.ok();
}

bool take_rows(ByteReader& from, const StepDecoding& how, OpColumns& r) {
    r.names_lost = 0;
    for (NameRef OpColumns::Row::* const field :
         {&OpColumns::Row::layer, &OpColumns::Row::op, &OpColumns::Row::source}) {
        if (!take_reference_column(from, how, r, field)) return false;
    }
    return take_kinds(from, r.rows);
}

// A block of rows that stays in the first-level cache while all its columns are filled.
constexpr std::size_t kRows = 64;

using Columns = std::array<const char*, kOpBits>;  // null: all 0

bool find_columns(ByteReader& from, std::size_t rows, Columns& columns, ByteReader& exponents) {
    const std::uint64_t mask = from.number();
    for (unsigned bit = 0; bit < columns.size(); ++bit) {
        const bool stored = mask >> bit & 1;
        columns[bit] = nullptr;
        if (bit != kExponentsBit) {
            if (stored) columns[bit] = from.bytes(rows * 8).data();
        } else if (stored) {
            exponents = from.record();
        }
    }
    return from.ok();
}

// One row of exponents. False: malformed.
bool take_exponents(ByteReader& from, std::size_t rows, StepDecoding& how, std::size_t& row, Exponents& e) {
    const std::uint64_t at = from.number(), lowest = from.number(), bins = from.number();
    if (!from.ok() || at >= rows || bins == 0 || lowest >= Exponents::kBins ||
        bins > Exponents::kBins - lowest)
        return false;
    std::uint64_t counts[Exponents::kBins];
    for (std::uint64_t i = 0; i < bins; ++i) counts[i] = from.number();
    if (!from.ok()) return false;
    row = static_cast<std::size_t>(at);
    const std::size_t bytes = sizeof e + 8 * static_cast<std::size_t>(bins);
    how.left_out = how.left_out || bytes > how.room;
    if (bytes > how.room) return true;
    how.room -= bytes;
    e.add(static_cast<unsigned>(lowest), {counts, static_cast<std::size_t>(bins)});
    return true;
}

bool take_exponents(ByteReader from, StepDecoding& how, OpColumns& r) {
    while (from.ok() && !from.at_end()) {
        auto& [row, exponents] = r.exponents.emplace_back();
        if (!take_exponents(from, r.rows.size(), how, row, exponents)) return false;
        if (exponents.counts.empty()) r.exponents.pop_back();
    }
    return from.ok();
}

template <typename T>
void fill(std::vector<OpRecord>& ops, std::size_t from, std::size_t to, T OpRecord::* field,
          const char* column) {
    for (std::size_t i = from; i < to; ++i)
        ops[i].*field = column ? std::bit_cast<T>(load_little<std::uint64_t>(column + 8 * i)) : T{};
}

bool take_columns(ByteReader& from, StepDecoding& how, std::vector<OpRecord>& ops) {
    Columns columns;
    ByteReader exponents({});
    if (!find_columns(from, ops.size(), columns, exponents)) return false;
    for (std::size_t row = 0; row < ops.size(); row += kRows) {
        const std::size_t end = std::min(row + kRows, ops.size());
        for (const auto& c : kOpCounts) fill(ops, row, end, c.field, columns[c.bit]);
        for (const auto& c : kOpValues) fill(ops, row, end, c.field, columns[c.bit]);
    }
    for (OpRecord& op : ops) op.exponents.counts.clear();
    while (!exponents.at_end()) {
        std::size_t row = 0;
        Exponents one;
        if (!take_exponents(exponents, ops.size(), how, row, one)) return false;
        ops[row].exponents.add(one);
    }
    return true;
}

// The number of rows that follow; nothing when the payload cannot have as many.
std::optional<std::size_t> take_row_count(ByteReader& from) {
    constexpr std::size_t kSmallest = 3 * 4 + 3;  // a row without numbers
    const std::uint64_t count = from.number();
    if (!from.ok() || count > from.size() / kSmallest) return std::nullopt;
    return static_cast<std::size_t>(count);
}

}  // namespace

bool NameList::add(std::string_view payload) {
    ByteReader from(payload);
    const std::uint64_t first = from.number();
    const std::uint64_t count = from.number();
    if (!from.ok() || count > from.size() || first > NameTable::kMaxNames ||
        count > NameTable::kMaxNames - first)
        return false;
    for (std::uint64_t i = first; i < first + count; ++i) {
        const std::string_view text = from.text();
        if (!from.ok() || bytes_ + text.size() > NameTable::kMaxBytes) return false;
        if (i >= names_.size()) names_.resize(static_cast<std::size_t>(i) + 1);
        Name& name = names_[static_cast<std::size_t>(i)];
        if (name.known) continue;
        name.known = true;
        name.text = text;
        bytes_ += text.size();
    }
    return true;
}

void NameList::clear() {
    for (Name& name : names_) name.known = false;
    bytes_ = 0;
}

const std::string* NameList::find(std::uint64_t index) const {
    return index < names_.size() && names_[index].known ? &names_[index].text : nullptr;
}

bool decode(std::string_view payload, ProcessRecord& r) { return decode_whole(payload, nullptr, nullptr, r); }
bool decode(std::string_view payload, NoteRecord& r) { return decode_whole(payload, nullptr, nullptr, r); }

bool decode(std::string_view payload, StepDecoding& how, StepRecord& r) {
    return decode_whole(payload, &how, nullptr, r);
}

bool decode(std::string_view payload, StepDecoding& how, StepRows& r) {
    r.tensors.clear();
    r.places.clear();
    return decode_whole(payload, &how, &r, r.record);
}

bool decode(std::string_view payload, StepDecoding& how, StepOps& r) {
    ByteReader from(payload);
    r.step = Step{from.signed_number()};
    r.optimizer = take_int32(from);
    const std::optional<std::size_t> count = take_row_count(from);
    if (!count) return false;
    if (*count > how.room / sizeof(OpRecord)) {
        how.left_out = true;
        r.ops.clear();
        return true;
    }
    how.room -= *count * sizeof(OpRecord);
    r.ops.resize(*count);
    for (std::string OpRecord::* const field : {&OpRecord::layer, &OpRecord::op, &OpRecord::source}) {
        if (!take_name_column(from, how, r.ops, field)) return false;
    }
    return take_kinds(from, r.ops) && take_columns(from, how, r.ops);
}

std::string text_of(const NameRef& name, const NameList& names) {
    if (name.reference == 0) return std::string(name.text);
    if (name.reference == 1) return {};
    const std::string* const kept = names.find(name.reference - 2);
    return kept ? *kept : "?name-" + std::to_string(name.reference - 2);
}

// Most steps have the ops of the step before. The rows read for that step are then used again.
bool decode(std::string_view payload, StepDecoding& how, OpColumns& r) {
    ByteReader from(payload);
    r.step = Step{from.signed_number()};
    r.optimizer = take_int32(from);
    const std::string_view from_count = payload.substr(payload.size() - from.size());
    r.columns = {};
    r.exponents.clear();
    ByteReader exponents({});
    if (!r.head.empty() && from_count.starts_with(r.head)) {
        how.names_lost += r.names_lost;
        from.bytes(r.head.size());
        return find_columns(from, r.rows.size(), r.columns, exponents) && take_exponents(exponents, how, r);
    }
    ++r.version;
    r.head.clear();
    r.rows.clear();
    const std::optional<std::size_t> count = take_row_count(from);
    if (!count) return false;
    if (*count > how.room / sizeof(OpRecord)) {
        how.left_out = true;
        return true;
    }
    r.rows.resize(*count);
    if (!take_rows(from, how, r)) return false;
    // Reads the rows again from `head`: they refer to texts in it, and later payloads use the rows too.
    r.head = from_count.substr(0, from_count.size() - from.size());
    ByteReader kept(r.head);
    kept.number();
    how.names_lost += take_rows(kept, how, r) ? r.names_lost : 0;
    return find_columns(from, r.rows.size(), r.columns, exponents) && take_exponents(exponents, how, r);
}

OpRecord record_of(const OpColumns& columns, std::size_t row, const NameList& names) {
    OpRecord r;
    const OpColumns::Row& from = columns.rows[row];
    r.layer = text_of(from.layer, names);
    r.op = text_of(from.op, names);
    r.source = text_of(from.source, names);
    r.guessed = from.guessed;
    r.phase = from.phase;
    r.dtype = from.dtype;
    auto value = [&](auto& into, unsigned bit) {
        using T = std::remove_reference_t<decltype(into)>;
        const char* const column = columns.columns[bit];
        if (column) into = std::bit_cast<T>(load_little<std::uint64_t>(column + 8 * row));
    };
    for (const auto& c : kOpCounts) value(r.*c.field, c.bit);
    for (const auto& c : kOpValues) value(r.*c.field, c.bit);
    return r;
}

}  // namespace mp::trace
