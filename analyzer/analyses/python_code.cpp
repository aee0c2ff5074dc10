#include "analyzer/analyses/python_code.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

bool has_component(std::string_view path, std::string_view name) {
    for (auto at = path.find(name); at != std::string_view::npos; at = path.find(name, at + 1)) {
        const bool begins = at == 0 || path[at - 1] == '/';
        const auto end = at + name.size();
        if (begins && end < path.size() && path[end] == '/') return true;
    }
    return false;
}

bool is_integral(DType d) { return is_integer(d) || d == DType::boolean; }

// x.dtype == torch.float16, x.dtype in (torch.float16, torch.bfloat16). A comparison with torch.bool
// asks for something else.
bool asks_for_dtype(const Call& call) {
    constexpr std::array<std::string_view, 4> kCompares{"__eq__", "__ne__", "__contains__", "__is__"};
    if (!any_of(leaf(call.name.str()), kCompares)) return false;
    bool asks = false;
    for (const Operand& value : call.args) {
        if (value.shape == Shape::dtype && is_integral(value.dtype)) return false;
        asks = asks || value.shape == Shape::dtype || value.name.str().ends_with(".dtype");
    }
    return asks;
}

bool names_precision(std::string_view condition) {
    constexpr std::array<std::string_view, 7> kWords{"fp16", "bf16",    "half",     "float16",
                                                     "amp",  "float32", "precision"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(condition, word); });
}

bool is_guard(const Function& f, std::uint32_t block) {
    for (const Edge& edge : f.flow[block].to)
        if (names_precision(edge.condition.str())) return true;
    return std::ranges::any_of(f.calls,
                               [&](const Call& call) { return call.block == block && asks_for_dtype(call); });
}

// Whether control gets from `from` to `to` without coming through `avoided`.
bool reaches(const Function& f, std::uint32_t from, std::uint32_t to, std::uint32_t avoided) {
    std::vector<bool> seen(f.flow.size());
    std::vector<std::uint32_t> open{from};
    while (!open.empty()) {
        const std::uint32_t block = open.back();
        open.pop_back();
        if (block == to) return true;
        if (block == avoided || seen[block]) continue;
        seen[block] = true;
        for (const Edge& edge : f.flow[block].to) open.push_back(edge.to);
    }
    return false;
}

}  // namespace

CodeKind code_kind(std::string_view path) {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    if (file.starts_with("test_") || file.ends_with("_test.py") || file == "conftest.py" ||
        has_component(path, "tests") || has_component(path, "test") || has_component(path, "testing"))
        return CodeKind::test;
    if (has_component(path, "benchmarks") || has_component(path, "benchmark")) return CodeKind::benchmark;
    return CodeKind::product;
}

CodeKind code_kind(Symbol file) {
    thread_local Symbol last;
    thread_local CodeKind kind = CodeKind::product;
    if (file != last) {
        kind = code_kind(file.str());
        last = file;
    }
    return kind;
}

Severity severity_in(CodeKind kind, Severity severity) {
    if (severity == Severity::error && kind != CodeKind::product) return Severity::warning;
    if (severity == Severity::warning && kind == CodeKind::test) return Severity::note;
    return severity;
}

bool is_dtype_guarded(const Function& f, std::uint32_t block) {
    if (block >= f.flow.size()) return false;
    for (std::uint32_t b = 0; b < f.flow.size(); ++b) {
        std::vector<Edge> ways;
        for (const Edge& edge : f.flow[b].to)
            if (!edge.raises) ways.push_back(edge);
        if (b == block || ways.size() < 2 || !is_guard(f, b)) continue;
        const auto taken =
            std::ranges::count_if(ways, [&](const Edge& edge) { return reaches(f, edge.to, block, b); });
        if (taken > 0 && static_cast<std::size_t>(taken) < ways.size()) return true;
    }
    return false;
}

}  // namespace mp::lint
