#include "runtime/trace/encode.hpp"

#include <type_traits>

#include "runtime/trace/bytes.hpp"
#include "runtime/trace/op_columns.hpp"

namespace mp::trace {
namespace {

// The numbers in files; a new dtype goes to the end of the enumeration or gets a table here.
static_assert(static_cast<int>(DType::unknown) == 0 && static_cast<int>(DType::fp64) == 1 &&
              static_cast<int>(DType::fp32) == 2 && static_cast<int>(DType::tf32) == 3 &&
              static_cast<int>(DType::fp16) == 4 && static_cast<int>(DType::bf16) == 5 &&
              static_cast<int>(DType::e4m3) == 6 && static_cast<int>(DType::e5m2) == 7 &&
              static_cast<int>(DType::lowp) == 8 && static_cast<int>(DType::int64) == 9 &&
              static_cast<int>(DType::boolean) == 17);
static_assert(static_cast<int>(last_of(Mode{})) == 4 && static_cast<int>(last_of(NoteKind{})) == 11 &&
              static_cast<int>(last_of(TensorKind{})) == 3 && static_cast<int>(last_of(Phase{})) == 4 &&
              static_cast<int>(last_of(TensorRole{})) == 6);

// No program has tensor names of this length. A longer name comes from a fault elsewhere.
constexpr std::size_t kMaxName = 4096;
constexpr std::size_t kMaxText = 65536;

std::string_view cut(std::string_view text, std::size_t limit) { return text.substr(0, limit); }

// Writes the fields of a record in the order in which a recording holds them.
class Encoder {
public:
    // Texts are cut to `longest` bytes. `names`: null for records that hold their texts themselves.
    Encoder(std::string& out, std::size_t longest, NameTable* names = nullptr, bool with_tensors = true)
        : to_(out), longest_(longest), names_(names), with_tensors_(with_tensors) {}

    template <class Record>
    void record(const Record& r) {
        stored_fields<Record>([&](const Field& f, auto member) {
            if (f.bit < 0) return value(r.*member);
            if (f.bit == 0) to_.u8(flags_of(r));
        });
    }

private:
    template <class Record>
    static std::uint8_t flags_of(const Record& r) {
        unsigned flags = 0;
        fields(
            [&](const Field& f, auto member) {
                if constexpr (std::is_same_v<decltype(member), bool Record::*>) {
                    if (f.bit >= 0) flags |= unsigned{r.*member} << f.bit;
                }
            },
            Of<Record>{});
        return static_cast<std::uint8_t>(flags);
    }

    void value(bool v) { to_.u8(v); }
    void value(std::uint64_t v) { to_.number(v); }
    void value(std::int64_t v) { to_.signed_number(v); }
    void value(std::int32_t v) { to_.signed_number(v); }
    void value(double v) { to_.f64(v); }
    void value(Rank v) { to_.signed_number(v.value); }
    void value(Step v) { to_.signed_number(v.value); }
    template <class Enum>
        requires std::is_enum_v<Enum>
    void value(Enum v) {
        to_.u8(static_cast<std::uint8_t>(v));
    }
    void value(const std::string& v) {
        const std::string_view name = cut(v, longest_);
        if (!names_) return to_.text(name);
        const std::uint64_t reference = names_->reference(name);
        to_.number(reference);
        if (reference == 0) to_.text(name);
    }
    void value(const Coverage& v) { element(v); }
    void value(const std::vector<OpRecord>&) {}  // written in a separate frame
    template <class Record>
    void value(const std::vector<Record>& list) {
        const bool left_out = std::is_same_v<Record, TensorRecord> && !with_tensors_;
        to_.number(left_out ? 0 : list.size());
        for (std::size_t i = 0; !left_out && i < list.size(); ++i) element(list[i]);
    }
    // With its length, so that a reader can skip fields that it does not know.
    template <class Record>
    void element(const Record& r) {
        element_.clear();
        Encoder(element_, longest_, names_).record(r);
        to_.text(element_);
    }

    ByteWriter to_;
    std::size_t longest_;
    NameTable* names_;
    bool with_tensors_;
    std::string element_;
};

template <typename T>
void append_little(std::string& out, T value) {
    char bytes[sizeof(T)];
    store_little(bytes, value);
    out.append(bytes, sizeof bytes);
}

// The names of an ops frame: a column of references, then the text of each name without a reference.
class NameColumn {
public:
    NameColumn(NameTable& names, std::size_t rows) : names_(names) { references_.reserve(rows * 4); }

    void add(std::string_view name) {
        name = cut(name, kMaxName);
        const std::uint64_t reference = names_.reference(name);  // at most kMaxNames + 1
        append_little(references_, static_cast<std::uint32_t>(reference));
        if (reference == 0) ByteWriter(texts_).text(name);
    }
    void to(std::string& out) const { out.append(references_).append(texts_); }

private:
    NameTable& names_;
    std::string references_;
    std::string texts_;
};

// A column in which every row is 0 is omitted.
template <typename T>
bool put_column(const std::vector<OpRecord>& ops, T OpRecord::* field, std::string& out) {
    bool any = false;
    const std::size_t before = out.size();
    for (const OpRecord& op : ops) {
        const auto bits = std::bit_cast<std::uint64_t>(op.*field);
        any = any || bits != 0;
        append_little(out, bits);
    }
    if (!any) out.resize(before);
    return any;
}

// Writes the rows that have exponents, with their bins from the lowest to the highest. False: no row has any.
bool put_exponents(const std::vector<OpRecord>& ops, std::string& out) {
    std::string rows;
    ByteWriter to(rows);
    for (std::size_t row = 0; row < ops.size(); ++row) {
        const Exponents& e = ops[row].exponents;
        if (e.counts.empty()) continue;
        for (const std::uint64_t v :
             {std::uint64_t{row}, std::uint64_t{e.lowest}, std::uint64_t{e.counts.size()}})
            to.number(v);
        for (const std::uint64_t count : e.counts) to.number(count);
    }
    if (!rows.empty()) ByteWriter(out).text(rows);
    return !rows.empty();
}

// Bytes of a record on the heap.
template <class T>
std::size_t heap_of(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value.capacity() > 15 ? value.capacity() + 16 : 0;
    } else if constexpr (std::is_same_v<T, Exponents>) {
        return 8 * value.counts.capacity();
    } else if constexpr (requires { value.capacity(); }) {
        std::size_t bytes = value.capacity() * sizeof(typename T::value_type);
        for (const auto& element : value) bytes += heap_of(element);
        return bytes;
    } else if constexpr (requires { fields([](const Field&, auto) {}, Of<T>{}); }) {
        std::size_t bytes = 0;
        fields([&](const Field&, auto member) { bytes += heap_of(value.*member); }, Of<T>{});
        return bytes;
    } else {
        return 0;
    }
}

}  // namespace

std::uint64_t NameTable::reference(std::string_view name) {
    if (name.empty()) return 1;
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second + 2;
    if (names_.size() >= kMaxNames || bytes_ + name.size() > kMaxBytes) return 0;
    names_.emplace_back(name);
    try {
        ids_.emplace(names_.back(), names_.size() - 1);
    } catch (...) {
        names_.pop_back();
        throw;
    }
    bytes_ += name.size();
    return names_.size() + 1;
}

void NameTable::forget(std::size_t from) {
    while (names_.size() > from) {
        bytes_ -= names_.back().size();
        ids_.erase(names_.back());
        names_.pop_back();
    }
}

void NameTable::encode(std::size_t from, std::string& out) const {
    out.clear();
    ByteWriter to(out);
    to.number(from);
    to.number(names_.size() - from);
    for (std::size_t i = from; i < names_.size(); ++i) to.text(names_[i]);
}

void encode(const ProcessRecord& r, std::string& out) {
    out.clear();
    Encoder(out, kMaxName).record(r);
}

void encode(const NoteRecord& r, std::string& out) {
    out.clear();
    Encoder(out, kMaxText).record(r);
}

void encode(const StepRecord& r, NameTable& names, bool with_tensors, std::string& out) {
    out.clear();
    Encoder(out, kMaxName, &names, with_tensors).record(r);
}

void encode_ops(const StepRecord& r, NameTable& names, std::string& out) {
    out.clear();
    ByteWriter to(out);
    to.signed_number(r.step.value);
    to.signed_number(r.optimizer);
    to.number(r.ops.size());
    for (std::string OpRecord::* const field : {&OpRecord::layer, &OpRecord::op, &OpRecord::source}) {
        NameColumn column(names, r.ops.size());
        for (const OpRecord& op : r.ops) column.add(op.*field);
        column.to(out);
    }
    for (const OpRecord& op : r.ops) to.u8(op.guessed);
    for (const OpRecord& op : r.ops) to.u8(static_cast<std::uint8_t>(op.phase));
    for (const OpRecord& op : r.ops) to.u8(static_cast<std::uint8_t>(op.dtype));
    std::uint64_t mask = 0;
    std::string columns;
    columns.reserve(r.ops.size() * 8 * kOpBits);
    for (unsigned bit = 0; bit < kOpBits; ++bit) {
        const auto [value, index] = kOpColumns[bit];
        const bool any = bit == kExponentsBit ? put_exponents(r.ops, columns)
                         : value              ? put_column(r.ops, kOpValues[index].field, columns)
                                              : put_column(r.ops, kOpCounts[index].field, columns);
        mask |= std::uint64_t{any} << bit;
    }
    to.number(mask);
    out += columns;
}

std::size_t memory_of(const ProcessRecord& r) { return sizeof r + heap_of(r); }
std::size_t memory_of(const NoteRecord& r) { return sizeof r + heap_of(r); }
std::size_t memory_of(const StepRecord& r) { return sizeof r + heap_of(r); }

}  // namespace mp::trace
