#include "runtime/trace/encode.hpp"

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
static_assert(static_cast<int>(Mode::trajectory) == 4 && static_cast<int>(NoteKind::policy) == 7 &&
              static_cast<int>(TensorKind::optimizer_state) == 3 && static_cast<int>(Phase::optimizer) == 4 &&
              static_cast<int>(TensorRole::checkpoint) == 6);

// Nobody names a tensor at such length; a name that long is a fault elsewhere.
constexpr std::size_t kMaxName = 4096;
constexpr std::size_t kMaxText = 65536;

std::string_view cut(std::string_view text, std::size_t limit) { return text.substr(0, limit); }

void put_name(ByteWriter& to, NameTable& names, std::string_view name) {
    name = cut(name, kMaxName);
    const std::uint64_t reference = names.reference(name);
    to.number(reference);
    if (reference == 0) to.text(name);
}

template <typename Enum>
void put_enum(ByteWriter& to, Enum value) {
    to.u8(static_cast<std::uint8_t>(value));
}

void put(ByteWriter& to, const LossRecord& r) {
    to.signed_number(r.micro_step);
    put_enum(to, r.dtype);
    to.u8(r.has_twin);
    to.f64(r.real);
    to.f64(r.twin);
}

void put(ByteWriter& to, const Coverage& c) {
    for (const std::uint64_t v : {c.ops, c.shadowed, c.unshadowed, c.shadowed_bytes, c.unshadowed_bytes,
                                  c.seeds, c.seeded_bytes, c.stale, c.flips, c.leaks})
        to.number(v);
    to.f64(c.worst_leak);
    to.number(c.failed);
    to.number(c.external);
}

void put(ByteWriter& to, NameTable& names, const CollectiveRecord& r) {
    put_name(to, names, r.op);
    put_name(to, names, r.reduction);
    put_enum(to, r.dtype);
    put_name(to, names, r.group);
    for (const std::uint64_t v : {r.calls, r.bytes, r.compared}) to.number(v);
    to.f64(r.error_squares);
    to.f64(r.sum_squares);
    to.number(r.made_nonfinite);
}

void put(ByteWriter& to, NameTable& names, const TensorRecord& r) {
    put_enum(to, r.kind);
    put_name(to, names, r.name);
    put_enum(to, r.dtype);
    for (const std::uint64_t v : {r.elements, r.compared, r.nonfinite_real, r.nonfinite_twin, r.differ})
        to.number(v);
    for (const double v : {r.error_squares, r.twin_squares, r.amax, r.twin_amax}) to.f64(v);
    for (const std::uint64_t v : {r.zeros, r.subnormals, r.flushed}) to.number(v);
    to.f64(r.flushed_abs);
    to.f64(r.twin_abs);
    for (const std::uint64_t v : {r.meant_to_move, r.unmoved, r.below_half_ulp}) to.number(v);
    to.f64(r.wanted_squares);
    to.f64(r.moved_dot);
    to.number(r.hash);
}

void put(ByteWriter& to, NameTable& names, const DTypePlace& r) {
    put_enum(to, r.role);
    put_name(to, names, r.layer);
    put_enum(to, r.phase);
    put_enum(to, r.dtype);
    to.number(r.tensors);
    to.number(r.elements);
}

// Each element with its length, so that a reader can skip fields it does not know.
class List {
public:
    List(ByteWriter& to, std::size_t count) : to_(to) { to_.number(count); }

    template <typename Put>
    void add(Put put_one) {
        element_.clear();
        ByteWriter writer(element_);
        put_one(writer);
        to_.text(element_);
    }

private:
    ByteWriter& to_;
    std::string element_;
};

template <typename T>
void append_little(std::string& out, T value) {
    char bytes[sizeof(T)];
    store_little(bytes, value);
    out.append(bytes, sizeof bytes);
}

// A name of an ops frame: a column of references; a name that has none is written behind them.
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

// A column in which every row is 0 is left out.
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

// The rows that have exponents, with the bins from the lowest to the highest. False: there are none.
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

std::size_t heap(const std::string& s) { return s.capacity() > 15 ? s.capacity() + 16 : 0; }

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
    ByteWriter to(out);
    for (const std::int64_t v :
         {std::int64_t{r.rank.value}, std::int64_t{r.local_rank}, std::int64_t{r.world_size},
          std::int64_t{r.restart}, r.pid, r.started_unix_ns})
        to.signed_number(v);
    for (const std::string* v : {&r.host, &r.job, &r.launcher, &r.program, &r.framework, &r.adapter})
        to.text(cut(*v, kMaxName));
    put_enum(to, r.mode);
}

void encode(const NoteRecord& r, std::string& out) {
    out.clear();
    ByteWriter to(out);
    put_enum(to, r.kind);
    to.signed_number(r.step.value);
    to.text(cut(r.text, kMaxText));
    to.number(r.count);
}

void encode(const StepRecord& r, NameTable& names, bool with_tensors, std::string& out) {
    out.clear();
    ByteWriter to(out);
    to.signed_number(r.step.value);
    to.signed_number(r.optimizer);
    to.u8(static_cast<std::uint8_t>(r.skipped | r.has_loss_scale << 1 | r.sampled << 2));
    to.f64(r.loss_scale);
    to.signed_number(r.wall_ns);
    List losses(to, r.losses.size());
    for (const LossRecord& l : r.losses) losses.add([&](ByteWriter& w) { put(w, l); });
    List dtypes(to, r.dtypes.size());
    for (const DTypeCount& d : r.dtypes) {
        dtypes.add([&](ByteWriter& w) {
            put_enum(w, d.dtype);
            w.number(d.ops);
        });
    }
    List collectives(to, r.collectives.size());
    for (const CollectiveRecord& c : r.collectives) collectives.add([&](ByteWriter& w) { put(w, names, c); });
    std::string coverage;
    ByteWriter coverage_writer(coverage);
    put(coverage_writer, r.coverage);
    to.text(coverage);
    List tensors(to, with_tensors ? r.tensors.size() : 0);
    for (std::size_t i = 0; with_tensors && i < r.tensors.size(); ++i)
        tensors.add([&](ByteWriter& w) { put(w, names, r.tensors[i]); });
    List places(to, r.places.size());
    for (const DTypePlace& p : r.places) places.add([&](ByteWriter& w) { put(w, names, p); });
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
    for (const OpRecord& op : r.ops) put_enum(to, op.phase);
    for (const OpRecord& op : r.ops) put_enum(to, op.dtype);
    std::uint64_t mask = 0;
    unsigned bit = 0;
    std::string columns;
    columns.reserve(r.ops.size() * 8 * (kOpCountColumns + kOpValueColumns));
    for (const auto field : kOpCounts) mask |= std::uint64_t{put_column(r.ops, field, columns)} << bit++;
    for (const auto field : kOpValues) mask |= std::uint64_t{put_column(r.ops, field, columns)} << bit++;
    mask |= std::uint64_t{put_exponents(r.ops, columns)} << kExponentsBit;
    to.number(mask);
    out += columns;
}

std::size_t memory_of(const ProcessRecord& r) {
    return sizeof r + heap(r.host) + heap(r.job) + heap(r.launcher) + heap(r.program) + heap(r.framework) +
           heap(r.adapter);
}

std::size_t memory_of(const NoteRecord& r) { return sizeof r + heap(r.text); }

std::size_t memory_of(const StepRecord& r) {
    std::size_t bytes =
        sizeof r + r.losses.capacity() * sizeof(LossRecord) + r.dtypes.capacity() * sizeof(DTypeCount) +
        r.collectives.capacity() * sizeof(CollectiveRecord) + r.tensors.capacity() * sizeof(TensorRecord) +
        r.ops.capacity() * sizeof(OpRecord) + r.places.capacity() * sizeof(DTypePlace);
    for (const CollectiveRecord& c : r.collectives) bytes += heap(c.op) + heap(c.reduction) + heap(c.group);
    for (const TensorRecord& t : r.tensors) bytes += heap(t.name);
    for (const OpRecord& o : r.ops)
        bytes += heap(o.layer) + heap(o.op) + heap(o.source) + 8 * o.exponents.counts.capacity();
    for (const DTypePlace& p : r.places) bytes += heap(p.layer);
    return bytes;
}

}  // namespace mp::trace
