#include "runtime/trace/decode.hpp"

#include <algorithm>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/op_columns.hpp"

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
        into.push_back(take(element));
        if (!element.ok()) return false;
    }
    return true;
}

LossRecord take_loss(ByteReader& from) {
    LossRecord r;
    r.micro_step = take_int32(from);
    r.dtype = take_dtype(from);
    r.has_twin = from.u8() != 0;
    r.real = from.f64();
    r.twin = from.f64();
    return r;
}

DTypeCount take_dtype_count(ByteReader& from) {
    DTypeCount r;
    r.dtype = take_dtype(from);
    r.ops = from.number();
    return r;
}

CollectiveRecord take_collective(ByteReader& from, StepDecoding& how) {
    CollectiveRecord r;
    r.op = take_name(from, how);
    r.reduction = take_name(from, how);
    r.dtype = take_dtype(from);
    r.group = take_name(from, how);
    r.calls = from.number();
    r.bytes = from.number();
    if (from.at_end()) return r;  // version 1
    r.compared = from.number();
    r.error_squares = from.f64();
    r.sum_squares = from.f64();
    r.made_nonfinite = from.number();
    return r;
}

TensorRecord take_tensor(ByteReader& from, StepDecoding& how) {
    TensorRecord r;
    r.kind = take_enum(from, TensorKind::optimizer_state);
    r.name = take_name(from, how);
    r.dtype = take_dtype(from);
    for (std::uint64_t* v : {&r.elements, &r.compared, &r.nonfinite_real, &r.nonfinite_twin, &r.differ})
        *v = from.number();
    r.error_squares = from.f64();
    r.twin_squares = from.f64();
    if (from.at_end()) return r;  // version 1
    r.amax = from.f64();
    r.twin_amax = from.f64();
    for (std::uint64_t* v : {&r.zeros, &r.subnormals, &r.flushed}) *v = from.number();
    r.flushed_abs = from.f64();
    r.twin_abs = from.f64();
    for (std::uint64_t* v : {&r.meant_to_move, &r.unmoved, &r.below_half_ulp}) *v = from.number();
    r.wanted_squares = from.f64();
    r.moved_dot = from.f64();
    r.hash = from.number();
    return r;
}

DTypePlace take_place(ByteReader& from, StepDecoding& how) {
    DTypePlace r;
    r.role = take_enum(from, TensorRole::checkpoint);
    r.layer = take_name(from, how);
    r.phase = take_enum(from, Phase::optimizer);
    r.dtype = take_dtype(from);
    r.tensors = from.number();
    r.elements = from.number();
    return r;
}

Coverage take_coverage(ByteReader from) {
    Coverage c;
    for (std::uint64_t* v : {&c.ops, &c.shadowed, &c.unshadowed, &c.shadowed_bytes, &c.unshadowed_bytes, &c.seeds,
                             &c.seeded_bytes, &c.stale, &c.flips, &c.leaks})
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
bool take_kinds(ByteReader& from, std::vector<OpRecord>& ops) {
    const std::string_view bytes = from.bytes(ops.size() * 3);
    if (!from.ok()) return false;
    ByteReader guessed(bytes.substr(0, ops.size()));
    ByteReader phases(bytes.substr(ops.size(), ops.size()));
    ByteReader dtypes(bytes.substr(2 * ops.size()));
    for (OpRecord& op : ops) {
        op.guessed = guessed.u8() != 0;
        op.phase = take_enum(phases, Phase::optimizer);
        op.dtype = take_dtype(dtypes);
    }
    return phases.ok();
}

// A block of rows that stays in the first-level cache while all its columns are filled.
constexpr std::size_t kRows = 64;

struct Columns {
    const char* at[kOpCountColumns + kOpValueColumns] = {};  // null: all 0
};

template <typename T>
void fill(std::vector<OpRecord>& ops, std::size_t from, std::size_t to, T OpRecord::* field, const char* column) {
    for (std::size_t i = from; i < to; ++i)
        ops[i].*field = column ? std::bit_cast<T>(load_little<std::uint64_t>(column + 8 * i)) : T{};
}

bool take_columns(ByteReader& from, std::vector<OpRecord>& ops) {
    const std::uint64_t mask = from.number();
    Columns columns;
    for (unsigned bit = 0; bit < kOpCountColumns + kOpValueColumns; ++bit) {
        if (mask >> bit & 1) columns.at[bit] = from.bytes(ops.size() * 8).data();
    }
    if (!from.ok()) return false;
    for (std::size_t row = 0; row < ops.size(); row += kRows) {
        const std::size_t end = std::min(row + kRows, ops.size());
        unsigned bit = 0;
        for (const auto field : kOpCounts) fill(ops, row, end, field, columns.at[bit++]);
        for (const auto field : kOpValues) fill(ops, row, end, field, columns.at[bit++]);
    }
    return true;
}

}  // namespace

bool NameList::add(std::string_view payload) {
    ByteReader from(payload);
    const std::uint64_t first = from.number();
    const std::uint64_t count = from.number();
    if (!from.ok() || count > from.size() || first > NameTable::kMaxNames || count > NameTable::kMaxNames - first)
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
    for (std::string* v : {&r.host, &r.job, &r.launcher, &r.program, &r.framework, &r.adapter}) *v = from.text();
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

bool decode(std::string_view payload, StepDecoding& how, StepRecord& r) {
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

    auto collective = [&how](ByteReader& element) { return take_collective(element, how); };
    auto tensor = [&how](ByteReader& element) { return take_tensor(element, how); };
    if (!take_list(from, 20, how, r.losses, take_loss)) return false;
    if (!take_list(from, 3, how, r.dtypes, take_dtype_count)) return false;
    if (!take_list(from, 7, how, r.collectives, collective)) return false;
    r.coverage = take_coverage(from.record());
    if (!from.ok() || !take_list(from, 25, how, r.tensors, tensor)) return false;
    if (from.at_end()) return true;  // version 1
    return take_list(from, 7, how, r.places, [&how](ByteReader& element) { return take_place(element, how); });
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
    return take_kinds(from, r.ops) && take_columns(from, r.ops);
}

}  // namespace mp::trace
