#include "runtime/trace/decode.hpp"

#include <algorithm>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"

namespace mp::trace {
namespace {

// A new kind of an enumeration raises the version of the format, so an unknown one is damage.
template <typename Enum>
Enum take_enum(ByteReader& from, Enum last) {
    const std::uint8_t value = from.u8();
    if (value > static_cast<std::uint8_t>(last)) from.refuse();
    return from.ok() ? static_cast<Enum>(value) : Enum{};
}

// A dtype that this version does not know is unknown, which is a value.
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

// Two bytes can refer to a name of 4 KiB, so what names take is counted here. `written` gives the text of a
// name that has no reference.
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

// `smallest`: the bytes of an element at its shortest, length included. False: malformed. A list that has
// no room stays empty.
template <typename T, typename Take>
bool take_list(ByteReader& from, std::size_t smallest, StepDecoding& how, std::vector<T>& into, Take take) {
    into.clear();
    const std::uint64_t count = from.number();
    if (!from.ok() || count > from.size() / smallest) return false;
    const bool fits = count <= how.room / sizeof(T);
    if (fits) {
        into.reserve(static_cast<std::size_t>(count));
        how.room -= static_cast<std::size_t>(count) * sizeof(T);
    } else {
        how.left_out = true;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        ByteReader element = from.record();
        if (!from.ok()) return false;
        if (!fits) continue;
        take(element, into.emplace_back());
        if (!element.ok()) return false;
    }
    return true;
}

void take_loss(ByteReader& from, LossRecord& r) {
    r.micro_step = take_int32(from);
    r.dtype = take_dtype(from);
    r.has_twin = from.u8() != 0;
    r.real = from.f64();
    r.twin = from.f64();
}

void take_dtype_count(ByteReader& from, DTypeCount& r) {
    r.dtype = take_dtype(from);
    r.ops = from.number();
}

void take_collective(ByteReader& from, StepDecoding& how, CollectiveRecord& r) {
    r.op = take_name(from, how);
    r.reduction = take_name(from, how);
    r.dtype = take_dtype(from);
    r.group = take_name(from, how);
    r.calls = from.number();
    r.bytes = from.number();
    if (from.at_end()) return;  // version 1
    r.compared = from.number();
    r.error_squares = from.f64();
    r.sum_squares = from.f64();
    r.made_nonfinite = from.number();
}

// Their names are taken by `name`, which knows where to.
template <typename Name>
void take_tensor(ByteReader& from, TensorRecord& r, Name name) {
    r.kind = take_enum(from, TensorKind::optimizer_state);
    name(r.name);
    r.dtype = take_dtype(from);
    for (std::uint64_t* v : {&r.elements, &r.compared, &r.nonfinite_real, &r.nonfinite_twin, &r.differ})
        *v = from.number();
    r.error_squares = from.f64();
    r.twin_squares = from.f64();
    if (from.at_end()) return;  // version 1
    r.amax = from.f64();
    r.twin_amax = from.f64();
    for (std::uint64_t* v : {&r.zeros, &r.subnormals, &r.flushed}) *v = from.number();
    r.flushed_abs = from.f64();
    r.twin_abs = from.f64();
    for (std::uint64_t* v : {&r.meant_to_move, &r.unmoved, &r.below_half_ulp}) *v = from.number();
    r.wanted_squares = from.f64();
    r.moved_dot = from.f64();
    r.hash = from.number();
}

template <typename Name>
void take_place(ByteReader& from, DTypePlace& r, Name name) {
    r.role = take_enum(from, TensorRole::checkpoint);
    name(r.layer);
    r.phase = take_enum(from, Phase::optimizer);
    r.dtype = take_dtype(from);
    r.tensors = from.number();
    r.elements = from.number();
}

Coverage take_coverage(ByteReader from) {
    Coverage c;
    for (std::uint64_t* v : {&c.ops, &c.shadowed, &c.unshadowed, &c.shadowed_bytes, &c.unshadowed_bytes,
                             &c.seeds, &c.seeded_bytes, &c.stale, &c.flips, &c.leaks})
        *v = from.number();
    c.worst_leak = from.f64();
    c.failed = from.number();
    c.external = from.number();
    return c;
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

// The small columns: a switch and two enumerations of a byte each.
template <typename Op>
bool take_kinds(ByteReader& from, std::vector<Op>& ops) {
    const std::string_view bytes = from.bytes(ops.size() * 3);
    if (!from.ok()) return false;
    ByteReader guessed(bytes.substr(0, ops.size()));
    ByteReader phases(bytes.substr(ops.size(), ops.size()));
    ByteReader dtypes(bytes.substr(2 * ops.size()));
    for (Op& op : ops) {
        op.guessed = guessed.u8() != 0;
        op.phase = take_enum(phases, Phase::optimizer);
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

using Columns = std::array<const char*, kOpCountColumns + kOpValueColumns>;  // null: all 0

// `exponents` is what follows the columns.
bool find_columns(ByteReader& from, std::size_t rows, Columns& columns, ByteReader& exponents) {
    const std::uint64_t mask = from.number();
    for (unsigned bit = 0; bit < columns.size(); ++bit)
        columns[bit] = mask >> bit & 1 ? from.bytes(rows * 8).data() : nullptr;
    if (mask >> kExponentsBit & 1) exponents = from.record();
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
        unsigned bit = 0;
        for (const auto field : kOpCounts) fill(ops, row, end, field, columns[bit++]);
        for (const auto field : kOpValues) fill(ops, row, end, field, columns[bit++]);
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

bool decode(std::string_view payload, ProcessRecord& r) {
    ByteReader from(payload);
    r.rank = Rank{take_int32(from)};
    r.local_rank = take_int32(from);
    r.world_size = take_int32(from);
    r.restart = take_int32(from);
    r.pid = from.signed_number();
    r.started_unix_ns = from.signed_number();
    for (std::string* v : {&r.host, &r.job, &r.launcher, &r.program, &r.framework, &r.adapter})
        *v = from.text();
    r.mode = take_enum(from, Mode::trajectory);
    return from.ok();
}

bool decode(std::string_view payload, NoteRecord& r) {
    ByteReader from(payload);
    r.kind = take_enum(from, NoteKind::policy);
    r.step = Step{from.signed_number()};
    r.text = from.text();
    r.count = from.number();
    return from.ok();
}

namespace {

// `tensor_name` and `place_name` take the name of a row: (from, into).
template <typename TensorName, typename PlaceName>
bool take_step(std::string_view payload, StepDecoding& how, StepRecord& r, TensorName tensor_name,
               PlaceName place_name) {
    ByteReader from(payload);
    r.step = Step{from.signed_number()};
    r.optimizer = take_int32(from);
    const std::uint8_t flags = from.u8();
    r.skipped = flags & 1;
    r.has_loss_scale = flags & 2;
    r.sampled = flags & 4;
    r.loss_scale = from.f64();
    r.wall_ns = from.signed_number();
    if (!from.ok()) return false;

    auto collective = [&](ByteReader& element, CollectiveRecord& c) { take_collective(element, how, c); };
    auto tensor = [&](ByteReader& element, TensorRecord& t) {
        take_tensor(element, t, [&](std::string& into) { tensor_name(element, into); });
    };
    auto place = [&](ByteReader& element, DTypePlace& p) {
        take_place(element, p, [&](std::string& into) { place_name(element, into); });
    };
    if (!take_list(from, 20, how, r.losses, take_loss)) return false;
    if (!take_list(from, 3, how, r.dtypes, take_dtype_count)) return false;
    if (!take_list(from, 7, how, r.collectives, collective)) return false;
    r.coverage = take_coverage(from.record());
    if (!from.ok() || !take_list(from, 25, how, r.tensors, tensor)) return false;
    r.places.clear();
    if (from.at_end()) return true;  // version 1
    return take_list(from, 7, how, r.places, place);
}

}  // namespace

bool decode(std::string_view payload, StepDecoding& how, StepRecord& r) {
    auto name = [&how](ByteReader& from, std::string& into) { into = take_name(from, how); };
    return take_step(payload, how, r, name, name);
}

bool decode(std::string_view payload, StepDecoding& how, StepRows& r) {
    r.tensors.clear();
    r.places.clear();
    auto into = [&how](std::vector<NameRef>& list) {
        return [&how, &list](ByteReader& from, std::string&) {
            list.push_back(take_reference(from, how, how.names_lost));
        };
    };
    return take_step(payload, how, r.record, into(r.tensors), into(r.places));
}

bool decode(std::string_view payload, StepDecoding& how, StepOps& r) {
    ByteReader from(payload);
    r.step = Step{from.signed_number()};
    r.optimizer = take_int32(from);
    const std::uint64_t count = from.number();
    constexpr std::size_t kSmallest = 3 * 4 + 3;  // a row without numbers
    if (!from.ok() || count > from.size() / kSmallest) return false;
    if (count > how.room / sizeof(OpRecord)) {
        how.left_out = true;
        r.ops.clear();
        return true;
    }
    how.room -= static_cast<std::size_t>(count) * sizeof(OpRecord);
    r.ops.resize(static_cast<std::size_t>(count));
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

// Most steps have the ops of the one before: then the rows are those already read.
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
    const std::uint64_t count = from.number();
    constexpr std::size_t kSmallest = 3 * 4 + 3;  // a row without numbers
    if (!from.ok() || count > from.size() / kSmallest) return false;
    if (count > how.room / sizeof(OpRecord)) {
        how.left_out = true;
        return true;
    }
    r.rows.resize(static_cast<std::size_t>(count));
    if (!take_rows(from, how, r)) return false;
    // Once more, from bytes that stay.
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
    unsigned bit = 0;
    auto value = [&](auto& into) {
        using T = std::remove_reference_t<decltype(into)>;
        const char* const column = columns.columns[bit++];
        if (column) into = std::bit_cast<T>(load_little<std::uint64_t>(column + 8 * row));
    };
    for (const auto field : kOpCounts) value(r.*field);
    for (const auto field : kOpValues) value(r.*field);
    return r;
}

}  // namespace mp::trace
