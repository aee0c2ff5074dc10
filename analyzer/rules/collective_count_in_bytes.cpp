// MP412 collective-count-in-bytes
//
// What   The count of a collective of NCCL or MPI is multiplied by sizeof, and its type has more than one byte.
// Why    Counts are in elements. The call reads and writes as many times too much as the type has bytes: it adds up
//        and overwrites what lies behind the buffers. Small buffers hide that, because allocations are rounded up.
// Fix    Pass the number of elements, or the type of one byte where nothing is reduced (ncclInt8, MPI_BYTE).
// Silent Types of one byte, types that are no constants, a quotient (sizeof(a) / sizeof(a[0])), sizeof...(pack).
// Tests  testdata/lint/MP412.md, tests/analyzer/rules/collective_count_in_bytes_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Where the count is; the type follows it.
struct Collective {
    std::string_view name;
    std::size_t count;
};
constexpr std::array<Collective, 18> kCollectives{{{"ncclAllReduce", 2},
                                                   {"ncclReduce", 2},
                                                   {"ncclReduceScatter", 2},
                                                   {"ncclAllGather", 2},
                                                   {"ncclBroadcast", 2},
                                                   {"ncclBcast", 1},
                                                   {"ncclSend", 1},
                                                   {"ncclRecv", 1},
                                                   {"MPI_Allreduce", 2},
                                                   {"MPI_Iallreduce", 2},
                                                   {"MPI_Reduce", 2},
                                                   {"MPI_Scan", 2},
                                                   {"MPI_Bcast", 1},
                                                   {"MPI_Ibcast", 1},
                                                   {"MPI_Send", 1},
                                                   {"MPI_Isend", 1},
                                                   {"MPI_Recv", 1},
                                                   {"MPI_Irecv", 1}}};

constexpr std::array<std::string_view, 25> kWideTypes{
    "ncclFloat16", "ncclHalf",    "ncclBfloat16", "ncclFloat32",  "ncclFloat",     "ncclFloat64",
    "ncclDouble",  "ncclInt32",   "ncclInt",      "ncclUint32",   "ncclInt64",     "ncclUint64",
    "MPI_FLOAT",   "MPI_DOUBLE",  "MPI_INT",      "MPI_LONG",     "MPI_LONG_LONG", "MPI_UNSIGNED",
    "MPI_INT32_T", "MPI_INT64_T", "MPI_UINT32_T", "MPI_UINT64_T", "MPI_SHORT",     "MPI_UNSIGNED_SHORT",
    "MPI_UINT16_T"};

const Collective* collective(std::string_view name) {
    const auto found = std::ranges::find(kCollectives, leaf(name), &Collective::name);
    return found == kCollectives.end() ? nullptr : &*found;
}

bool may_count(std::string_view name) { return collective(name) != nullptr; }

// Facts keep the first 80 bytes of a source text.
constexpr std::size_t kWholeText = 79;

bool is_in_bytes(const Operand& count) {
    const std::string_view text = count.text.str();
    return mentions(text, "sizeof") && !mentions(text, "sizeof...") &&
           text.find('/') == std::string_view::npos && text.find(">>") == std::string_view::npos &&
           text.size() < kWholeText;
}

// The constant, or the macro as it is written.
std::string_view wide_type(const Operand& type) {
    for (const std::string_view text : {leaf(type.constant.str()), type.text.str()})
        if (any_of(text, kWideTypes)) return text;
    return {};
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, may_count, [&](const Function& f, const Call& call) {
        const std::size_t at = collective(call.name.str())->count;
        if (at + 1 >= call.args.size() || !is_in_bytes(call.args[at])) return;
        const std::string_view type = wide_type(call.args[at + 1]);
        if (type.empty()) return;
        emit(context, f,
             {.rule = "MP412",
              .severity = Severity::error,
              .span = call.span,
              .message = std::string(leaf(call.name.str())) + " takes its count in elements of " +
                         std::string(type) + ", not in bytes:" + quoted(call.args[at].text.str()) +
                         " makes it read and write past its buffers",
              .fix = "pass the number of elements, without sizeof",
              .notes = {},
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kCollectiveCountInBytes{.id = "MP412",
                                                    .name = "collective-count-in-bytes",
                                                    .severity = Severity::error,
                                                    .on_by_default = true,
                                                    .confirmed_by = "MPT076",
                                                    .triggers = Triggers::cpp_only(),
                                                    .check = check};

}  // namespace mp::lint
