#include "kernels/numerics/op.hpp"

#include <string>
#include <unordered_map>

#include "embedded_policies.hpp"
#include "kernels/numerics/op_table.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp {
namespace {

using Names = std::unordered_map<std::string_view, Op>;

// policies/ops.txt, read once. The keys are views of the embedded text.
struct Table {
    Names aten;
    Names modules;
    Names distributed;
    Names functions;
};

// In the sections of bare names the canonical name is a spelling of itself.
void add_line(Names& names, const OpLine& line, bool canonical_is_spelling) {
    const Op op(line.name);
    if (canonical_is_spelling) names.emplace(line.name, op);
    std::string_view rest = line.spellings;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest))
        names.emplace(word, op);
}

Table read_table(std::string_view text) {
    Table table;
    for_each_op_line(text, [&](const OpLine& line) {
        if (line.section == "aten")
            add_line(table.aten, line, true);
        else if (line.section == "modules")
            add_line(table.modules, line, false);
        else if (line.section == "distributed")
            add_line(table.distributed, line, true);
        else if (line.section == "functions")
            add_line(table.functions, line, false);
    });
    return table;
}

const Table& table() {
    static const Table it = read_table(embedded_policies("ops.txt"));
    return it;
}

Op find(const Names& names, std::string_view name) {
    const auto it = names.find(name);
    return it == names.end() ? Op{} : it->second;
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    return true;
}

// An ATen base name, perhaps in its in-place or out= form.
Op aten(std::string_view name) {
    if (const Op op = find(table().aten, name); op.known()) return op;
    if (drop_suffix(name, "_outf") || drop_suffix(name, "_out") || drop_suffix(name, "_"))
        return find(table().aten, name);
    return {};
}

struct Namespace {
    std::string_view prefix;
    std::string_view aten_prefix;  // put before what follows: torch::fft::rfft is ATen's fft_rfft
};

// Longer prefixes stand before the ones they begin with.
constexpr Namespace kNamespaces[] = {
    {"torch::nn::functional::", ""},
    {"torch::linalg::", "linalg_"},
    {"torch::fft::", "fft_"},
    {"torch::special::", "special_"},
    {"torch::Tensor::", ""},
    {"torch::", ""},
    {"at::Tensor::", ""},
    {"at::", ""},
    {"aten::", ""},
    {"torch.nn.functional.", ""},
    {"torch.linalg.", "linalg_"},
    {"torch.fft.", "fft_"},
    {"torch.special.", "special_"},
    {"torch.Tensor.", ""},
    {"torch.ops.aten.", ""},
    {"torch._C._nn.", ""},
    {"torch.", ""},
};

Op in_namespace(const Namespace& space, std::string_view name) {
    if (space.prefix == "aten::" || space.prefix == "torch.ops.aten.")
        name = name.substr(0, name.find('.'));  // without the overload
    if (name.find_first_of(":.") != std::string_view::npos) return {};
    if (space.aten_prefix.empty()) {
        if (const Op op = aten(name); op.known()) return op;
        return drop_prefix(name, "special_") ? aten(name) : Op{};
    }
    if (const Op op = aten(std::string(space.aten_prefix).append(name)); op.known()) return op;
    return space.aten_prefix == "special_" ? aten(name) : Op{};
}

// torch::nn::LayerNormImpl::forward, torch.nn.LayerNorm.forward.
Op module_forward(std::string_view name) {
    if (drop_prefix(name, "torch::nn::") && drop_suffix(name, "Impl::forward"))
        return find(table().modules, name);
    if (drop_prefix(name, "torch.nn.") && drop_suffix(name, ".forward")) return find(table().modules, name);
    return {};
}

// torch.distributed.all_reduce; c10d::ProcessGroupNCCL::allreduce, c10d::Backend::allreduce.
Op collective(std::string_view name) {
    if (drop_prefix(name, "torch.distributed.")) return find(table().distributed, name);
    if (!drop_prefix(name, "c10d::ProcessGroup") && !drop_prefix(name, "c10d::Backend")) return {};
    const std::size_t cut = name.rfind("::");
    return cut == std::string_view::npos ? Op{} : find(table().distributed, name.substr(cut + 2));
}

// at::operator+, at::Tensor::operator+=, c10::operator*. Not std::operator+, which joins strings. A
// minus is listed with its class: as a member of Tensor it negates, elsewhere it may do either.
Op tensor_operator(std::string_view name) {
    if (name.ends_with("operator-")) return find(table().functions, name);
    constexpr std::string_view kOwners[] = {"at::Tensor::", "torch::Tensor::", "at::", "torch::", "c10::"};
    for (const std::string_view owner : kOwners)
        if (drop_prefix(name, owner)) break;
    return name.starts_with("operator") ? find(table().functions, name) : Op{};
}

Op function(std::string_view name) {
    drop_prefix(name, "::");
    if (drop_prefix(name, "std::") && name.starts_with("operator")) return {};
    if (name.starts_with("cublas")) {
        drop_suffix(name, "_64");
        drop_suffix(name, "_v2");
    }
    return find(table().functions, name);
}

std::string_view last_component(std::string_view name) {
    const std::size_t cut = name.find_last_of(".:");
    return cut == std::string_view::npos ? name : name.substr(cut + 1);
}

// The traits of the canonical names in the section of ATen.
std::unordered_map<Symbol, Traits> interned_traits() {
    std::unordered_map<Symbol, Traits> out;
    for (const auto& [name, op] : table().aten) out.try_emplace(op.symbol(), traits_of(op.name()));
    return out;
}

}  // namespace

Traits traits_of(Op op) {
    static const std::unordered_map<Symbol, Traits> known = interned_traits();
    const auto found = known.find(op.symbol());
    return found == known.end() ? Traits{} : found->second;
}

Op op_from_spelling(std::string_view qualified_name) {
    std::string_view name = qualified_name;
    drop_prefix(name, "::");
    for (const auto look : {collective, module_forward, tensor_operator})
        if (const Op op = look(name); op.known()) return op;
    for (const Namespace& space : kNamespaces) {
        std::string_view rest = name;
        if (drop_prefix(rest, space.prefix)) return in_namespace(space, rest);
    }
    return function(name);
}

Op op_from_name(std::string_view name) {
    if (const Op op = aten(name.substr(0, name.find('.'))); op.known()) return op;
    if (const Op op = find(table().distributed, name); op.known()) return op;
    return op_from_spelling(name);
}

bool is_in_place(std::string_view qualified_name) {
    std::string_view name = last_component(qualified_name);
    if (name.starts_with("operator")) return name.ends_with("=") && op_from_spelling(qualified_name).known();
    // __iadd__ is the in-place form of __add__, but __invert__ is not that of "__nvert__".
    if (name.starts_with("__") && name.ends_with("__")) {
        const Op op = aten(name);
        const bool marked = name.size() > 5 && name[2] == 'i';
        return marked && op.known() && aten("__" + std::string(name.substr(3))) == op;
    }
    return name.size() > 1 && name.ends_with("_") && aten(name).known();
}

}  // namespace mp
