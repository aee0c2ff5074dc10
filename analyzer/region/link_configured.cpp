#include "analyzer/region/link_configured.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/python/library/library.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/python_regions.hpp"
#include "analyzer/region/values.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kTarget = "_target_", kPartial = "_partial_";

bool unpacks(const Operand& o) { return o.keyword.str() == "**"; }

const Operand* entry(const std::vector<Operand>& entries, std::string_view key) {
    const auto at = std::ranges::find(entries, key, [](const Operand& o) { return o.keyword.str(); });
    return at == entries.end() ? nullptr : &*at;
}

// `_target_`, `_recursive_` and others are for Hydra.
bool is_for_hydra(std::string_view key) { return key.size() > 2 && key.front() == '_' && key.back() == '_'; }

// What the call gives itself wins.
void add_arguments(Call& call, const std::vector<Operand>& entries) {
    for (const Operand& o : entries)
        if (!is_for_hydra(o.keyword.str()) && !entry(call.args, o.keyword.str())) call.args.push_back(o);
}

bool names_class(std::string_view target) {
    const std::string_view name = leaf(target);
    return !name.empty() && name.front() >= 'A' && name.front() <= 'Z';
}

// The operand of the call that a configuration may be behind.
const Operand* configured(const Call& call) {
    if (python::instantiates(call)) return &call.args[0];
    const auto unpacked = std::ranges::find_if(call.args, unpacks);
    return unpacked == call.args.end() ? nullptr : &*unpacked;
}

void make_partial(const Function& f, Call& call, Symbol target, Values& values) {
    Operand function;
    (values.read(f, target).is_known() ? function.refers : function.constant) = target;
    call.args.insert(call.args.begin(), function);
    call.name = Symbol("functools.partial");
}

// `target` is a class or a function, of the program or of a library.
void make(Function& f, Call& call, Symbol target, Values& values, const Names& names) {
    const Reading read = values.read(f, target);
    if (!read.in_class.empty()) return construct(call, read.in_class, names);
    if (read.function) {
        call.callee = read.function->usr;
        call.name = read.function->name;
        return;
    }
    call.name = target;
    python::complete(call, f, DType::unknown);
    if (!names_class(target.str())) return;
    call.kind = CallKind::constructor;
    if (call.result.shape == Shape::other) call.result.shape = Shape::object;
}

void make_target(Function& f, Call& call, const std::vector<Operand>& entries, Values& values,
                 const Names& names) {
    const Operand* const named = entry(entries, kTarget);
    const Symbol target(named ? unquoted(named->constant.str()) : "");
    if (target.empty()) return;
    call.callee = {};
    call.args.erase(call.args.begin());
    std::erase_if(call.args, [](const Operand& o) { return is_for_hydra(o.keyword.str()); });
    add_arguments(call, entries);
    const Operand* const partial = entry(entries, kPartial);
    if (partial && partial->constant.str() == "true")
        make_partial(f, call, target, values);
    else
        make(f, call, target, values, names);
}

void unpack(const Function& f, Call& call, const std::vector<Operand>& entries) {
    call.args.erase(std::ranges::find_if(call.args, unpacks));
    add_arguments(call, entries);
    if (call.result.dtype == DType::unknown) python::complete(call, f, DType::unknown);
}

}  // namespace

void construct(Call& call, Symbol type, const Names& names) {
    const Function* init = names.classes().method(type, "__init__");
    call.kind = CallKind::constructor;
    call.name = type;
    call.callee = init ? init->usr : Symbol{};
    call.result.shape = names.is_module(type) ? Shape::module : Shape::object;
}

bool may_be_configured(const Call& call) {
    return python::instantiates(call) || (call.callee.empty() && std::ranges::any_of(call.args, unpacks));
}

std::vector<ObjectClasses::Caller> link_configured(const std::vector<Unit>& units, const Names& names,
                                                   GroupsBySymbol<ObjectClasses::Caller> callers,
                                                   const LinkedCalls& calls) {
    std::vector<ObjectClasses::Caller> now_resolved;
    if (std::ranges::none_of(units, holds_configuration)) return now_resolved;
    Values values(units, names, std::move(callers), calls.stores, calls.options);
    // All are looked up before the first is changed: what is known of an operand is kept by its place.
    std::vector<std::vector<Operand>> entries;
    for (const auto& [f, call] : calls.of_configured)
        entries.push_back(values.entries(*f, *configured(*call)));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto& [f, call] = calls.of_configured[i];
        if (entries[i].empty()) continue;
        const bool makes = python::instantiates(*call);
        makes ? make_target(*f, *call, entries[i], values, names) : unpack(*f, *call, entries[i]);
        if (makes && !call->callee.empty()) now_resolved.push_back({f, call});
    }
    return now_resolved;
}

}  // namespace mp::lint
