#include "analyzer/region/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "analyzer/python/library/library.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/is_leaf.hpp"
#include "analyzer/region/python_regions.hpp"
#include "analyzer/region/tables.hpp"

namespace mp::lint {
namespace {

constexpr int kMostParts = 3;               // of `settings.CONFIG.model.dtype`, after the name that is known
constexpr std::size_t kExpected = 1 << 14;  // answers in a large program; growing step by step takes longer

bool makes_options(std::string_view method) { return method == "parse_args" || method == "parse_known_args"; }

bool holds_keywords(std::string_view name) {
    constexpr std::array<std::string_view, 4> kNames{"SimpleNamespace", "Namespace", "dict", "EasyDict"};
    return std::ranges::find(kNames, leaf(name)) != kNames.end();
}

// Whether the operand is a dtype object, a tensor, or a cast of something that is not known to be a tensor.
bool has_dtype(const Operand& o) {
    return o.dtype != DType::unknown &&
           (o.shape == Shape::dtype || o.shape == Shape::tensor || o.shape == Shape::other);
}

bool is_self(const Function& f, std::int32_t param) {
    return param == 0 && !f.parent_class.empty() && !f.params.empty() && f.params[0].name.str() == "self";
}

Values::Known known_of(const Operand& o) { return {o.dtype, o.shape, o.constant, o.assumed, o.alternative}; }

// What a branch can give: its dtype if that is a low one.
DType low_dtype(const Values::Known& branch) {
    if (!branch.alternative.empty())
        return dtype_from_name(leaf(branch.alternative.str())).value_or(DType::unknown);
    return branch.shape == Shape::dtype && is_low_precision(branch.dtype) ? branch.dtype : DType::unknown;
}

// The low dtype of the branch that has one, of both what they have in common.
Symbol low_branch(const Values::Known& a, const Values::Known& b) {
    const DType x = low_dtype(a), y = low_dtype(b);
    const DType low = x == DType::unknown ? y : y == DType::unknown ? x : common_dtype(x, y);
    return low == DType::unknown ? Symbol{} : Symbol(std::string("torch.").append(name_of(low)));
}

// `return None` beside dtypes: none is chosen.
Shape common_shape(const Values::Known& a, const Values::Known& b) {
    if (a.constant.str() == "None" && b.shape == Shape::dtype) return b.shape;
    if (b.constant.str() == "None" && a.shape == Shape::dtype) return a.shape;
    return a.shape == b.shape ? a.shape : Shape::other;
}

Values::Known common(const Values::Known& a, const Values::Known& b) {
    const DType dtype = common_dtype(a.dtype, b.dtype);
    return {.dtype = dtype,
            .shape = common_shape(a, b),
            .constant = a.constant == b.constant ? a.constant : Symbol{},
            .assumed = a.assumed || b.assumed,
            .alternative = dtype == DType::unknown ? low_branch(a, b) : Symbol{}};
}

// Adds what one more branch gives. `first` is true before the first one.
void add_branch(Values::Known& all, const Values::Known& next, bool& first) {
    all = std::exchange(first, false) ? next : common(all, next);
}

std::string option_name(std::string_view flag) {
    flag = unquoted(flag);
    while (flag.starts_with('-')) flag.remove_prefix(1);
    std::string name(flag);
    std::ranges::replace(name, '-', '_');
    return name;
}

const Operand* keyword(const Call& call, std::string_view name) {
    const auto at = std::ranges::find(call.args, name, [](const Operand& o) { return o.keyword.str(); });
    return at == call.args.end() ? nullptr : &*at;
}

}  // namespace

bool is_optimizer_class(std::string_view name) {
    constexpr std::string_view kHome = "torch.optim.";
    return name.starts_with(kHome) && name.size() > kHome.size() && name[kHome.size()] >= 'A' &&
           name[kHome.size()] <= 'Z';
}

Values::Values(const std::vector<Unit>& units, const Names& names, GroupsBySymbol<Caller> callers,
               const std::vector<Caller>& stores, const std::vector<Caller>& options)
    : names_(names), finder_(names), callers_(std::move(callers)) {
    for (const Unit& unit : units) {
        if (unit.language != Language::python) continue;
        packages_[unit.path] = Symbol(mp::lint::package_of(module_of(unit)));
        has_data_ |= holds_configuration(unit);
    }
    if (has_data_)
        for (const Caller& store : stores)
            if (store.call->args.size() > 1) stored_keys_.insert(store.call->args[1].constant);
    for (const Caller& option : options) add_option(option);
    read_registries(units, stores);
    of_self_.reserve(kExpected);
}

void Values::add_option(const Caller& option) {
    const Operand* value = keyword(*option.call, "default");
    if (!value) return;
    for (const Operand& flag : option.call->args)
        if (flag.keyword.empty() && is_quoted(flag.constant.str()))
            options_[Symbol(option_name(flag.constant.str()))].push_back({option, value});
}

const Operand* Values::keep(Operand operand) { return &made_.emplace_back(std::move(operand)); }

Values::Known Values::of(const Function& f, const Operand& o) {
    if (has_dtype(o) || !o.constant.empty()) return known_of(o);
    if (o.refers.empty() && o.call == kNone && o.param == kNone) return known_of(o);
    if (depth_ < kDeepestValue && o.refers.empty() && o.call != kNone && gives_nothing(f, o))
        return {.dtype = DType::unknown, .shape = Shape::other, .constant = {}, .assumed = o.assumed};
    const auto [kept, is_new] = known_.try_emplace({&o, kNone});
    if (!is_new || depth_ >= kDeepestValue) return kept;
    ++depth_;
    Known found = find(f, o);
    --depth_;
    found.assumed |= o.assumed;
    return kept = found;
}

Values::Known Values::find(const Function& f, const Operand& o) {
    if (!o.refers.empty()) {
        const Known found = of_place(place_of(f, o.refers));
        const bool is_known = found.is_known() || !found.alternative.empty();
        return is_known ? found : dtype_of_tensor(f, o.refers.str());
    }
    if (const Call* call = call_of(f, o)) return of_call(f, *call);
    return o.param == kNone ? Known{} : of_parameter(f, o.param);
}

// Whether of_call() cannot find anything. Most operands are results of such calls, and answers are not worth
// keeping for them.
bool Values::gives_nothing(const Function& f, const Operand& o) {
    const Call* call = call_of(f, o);
    if (!call || has_dtype(call->result)) return false;
    if (const Function* callee = names_.function(call->callee); callee && call->kind != CallKind::constructor)
        return false;
    const std::string_view name = call->name.str();
    if (name == "getattr" || name == "float" || is_next(*call) || is_leaf("field", name)) return false;
    if (!reads_item(*call)) return true;
    const Object table = object_of(f, call->args[0]);
    return table.data.empty() && (!table.made || !is_display(*table.made));
}

bool Values::leads_nowhere(const Function& f, const Operand& o) {
    if (o.refers.empty() || o.refers.str().starts_with('@')) return false;
    return !place_of(f, o.refers).operand;
}

// "@3.dtype": of the tensor that a call gives.
Values::Known Values::dtype_of_tensor(const Function& f, std::string_view refers) {
    constexpr std::string_view kDtype = ".dtype";
    if (!refers.starts_with('@') || !refers.ends_with(kDtype)) return {};
    refers.remove_suffix(kDtype.size());
    Operand root;
    const auto [end, error] = std::from_chars(refers.data() + 1, refers.data() + refers.size(), root.call);
    if (error != std::errc{} || end != refers.data() + refers.size()) return {};
    const Call* call = call_of(f, root);
    Known found = call ? of_call(f, *call) : Known{};
    if (found.shape == Shape::dtype) return {};
    return {.dtype = found.dtype, .shape = Shape::dtype, .constant = {}, .assumed = found.assumed};
}

Values::Known Values::of_place(const Place& place) {
    if (!place.operand) return {};
    Known found = of(*place.function, *place.operand);
    found.assumed |= place.assumed;
    return found;
}

// "#2.dtype" and "@3.dtype" are about a parameter and a call of the function; other names are qualified.
Values::Place Values::place_of(const Function& f, Symbol refers) {
    const std::string_view text = refers.str();
    if (!text.starts_with('#') && !text.starts_with('@')) return place_named(f, text);
    if (!is_self(f, 0) || !text.starts_with("#0.")) return place_in(f, text);
    // Methods read the same attributes of their class again and again.
    const auto [entry, is_new] = of_self_.try_emplace(std::uint64_t{f.parent_class.id()} << 32 | refers.id());
    Place& kept = entry->second;  // stays in its place while others are added
    if (is_new) kept = place_in(f, text);
    return kept;
}

Values::Place Values::place_in(const Function& f, std::string_view refers) {
    Operand root;
    std::int32_t& at = refers.front() == '#' ? root.param : root.call;
    const auto [end, error] = std::from_chars(refers.data() + 1, refers.data() + refers.size(), at);
    if (error != std::errc{}) return {};
    return member_of_members(object_of(f, root), std::string_view(end, refers.data() + refers.size()));
}

Values::Place Values::place_named(const Function& f, std::string_view refers) {
    std::string_view name = refers;
    for (int parts = 0; parts <= kMostParts && !name.empty(); ++parts) {
        const Reading read = finder_.read(Symbol(name), package_of(f));
        const std::string_view rest = refers.substr(name.size());
        if (read.bound.definition) {
            const Place place{read.bound.function, &read.bound.definition->value,
                              read.bound.definition->value.assumed};
            if (rest.empty() || rest == ".value") return place;  // `.value` of a member of an enumeration
            return member_of_members(object_at(place), rest);
        }
        if (read.function && rest.empty()) return returned_by(*read.function);  // a property
        if (!read.in_class.empty() && !rest.empty()) return member_of_members({.type = read.in_class}, rest);
        name = name.substr(0, name.find_last_of('.') == std::string_view::npos ? 0 : name.find_last_of('.'));
    }
    return {};
}

// ".model.dtype" of an object.
Values::Place Values::member_of_members(Object object, std::string_view path) {
    while (path.starts_with('.')) {
        path.remove_prefix(1);
        const std::string_view part = path.substr(0, path.find('.'));
        path.remove_prefix(part.size());
        const Place place = member(object, part);
        if (path.empty() || !place.operand) return place;
        object = object_at(place);
    }
    return {};
}

Values::Object Values::object_at(const Place& place) {
    Object object = object_of(*place.function, *place.operand);
    object.assumed |= place.assumed;
    return object;
}

// The object that an operand is, through names, results and the callers of a parameter.
Values::Object Values::object_of(const Function& f, const Operand& o, int depth) {
    if (depth > kDeepestValue) return {};
    if (!o.refers.empty()) {
        if (o.refers.str().starts_with('/')) return {.data = o.refers};  // a mapping of a data file
        if (places_ >= kDeepestValue) return {};                         // names that refer to each other
        ++places_;
        const Place place = place_of(f, o.refers);
        Object object = place.operand ? object_of(*place.function, *place.operand, depth + 1) : Object{};
        --places_;
        object.assumed |= place.assumed;
        return object;
    }
    const Call* const call = call_of(f, o);
    if (!call && o.param == kNone) return {};
    // Only what other functions decide takes long to find.
    if (call && !names_.function(call->callee)) return object_made(f, *call, depth);
    if (!call && (is_self(f, o.param) || callers_.get(f.usr).empty())) return object_passed(f, o, depth);
    const FactKey key = call ? FactKey{call, kNone} : FactKey{&f, o.param};
    const auto [kept, is_new] = objects_.try_emplace(key);  // one that is being looked for is not known
    if (is_new) kept = call ? object_made(f, *call, depth) : object_passed(f, o, depth);
    return kept;
}

// What the callers of a function pass.
Values::Object Values::object_passed(const Function& f, const Operand& o, int depth) {
    if (is_self(f, o.param)) return {.type = f.parent_class};
    if (has_data_)
        if (Object data = data_of_hydra(f, o.param); !data.data.empty()) return data;
    Object common;
    bool first = true;
    for (const Caller& caller : callers_.get(f.usr)) {
        const Operand* argument = argument_for(*caller.call, f, o.param);
        Object found = argument ? object_of(*caller.function, *argument, depth + 1) : Object{};
        if (first)
            common = found;
        else if (found.data != common.data)
            return {};
        else if (found.made != common.made && found.type == common.type)
            common.made = nullptr;
        else if (found.made != common.made)
            return {};
        first = false;
    }
    return common;
}

Values::Object Values::object_made(const Function& f, const Call& call, int depth) {
    const std::string_view name = call.name.str(), method = leaf(name);
    if (has_data_)
        if (Object data = data_made(f, call, depth); !data.data.empty()) return data;
    if (Object parsed = object_parsed(f, call, depth); !parsed.type.empty()) return parsed;
    if (reads_item(call)) {
        const Object table = object_of(f, call.args[0], depth + 1);
        const bool is_table = !table.data.empty() || (table.made && is_display(*table.made));
        const Place entry = is_table ? entry_of(table, of(f, call.args[1])) : Place{};
        return entry.operand ? object_of(*entry.function, *entry.operand, depth + 1) : Object{};
    }
    if (call.kind == CallKind::constructor || makes_options(method) || holds_keywords(name))
        return {&f, &call, names_.classes().knows(call.name) ? call.name : Symbol{}};
    if (const Function* callee = names_.function(call.callee))
        if (callee->returned.size() == 1 && callee->returned[0].param == kNone)
            return object_of(*callee, callee->returned[0], depth + 1);
    return method == "field" ? object_by_default(f, call) : Object{};
}

// The field of a dataclass: field(default_factory=Precision)
Values::Object Values::object_by_default(const Function& f, const Call& field) {
    const Operand* const factory = keyword(field, "default_factory");
    if (!factory) return {};
    const Symbol type = named_by(f, *factory);
    return {.type = names_.classes().knows(type) ? type : Symbol{}, .assumed = true};
}

Values::Place Values::member(const Object& object, std::string_view part) {
    if (!object.data.empty()) return data_member(object, part);
    if (!object.type.empty()) return member_of_class(object, part);
    if (!object.made) return {};
    const std::string_view name = object.made->name.str();
    if (makes_options(leaf(name))) return option(object, part);
    if (!holds_keywords(name)) return {};
    return {object.function, keyword(*object.made, part), object.assumed};
}

Values::Place Values::member_of_class(const Object& object, std::string_view part) {
    if (object.made)  // a field of a dataclass, by keyword
        if (const Operand* given = keyword(*object.made, part); given && object.function)
            return {object.function, given, object.assumed};
    if (object.made && object.function)
        if (const Place given = unpacked(*object.function, *object.made, part); given.operand) return given;
    Reading read;
    if (names_.may_name(part))
        read = finder_.read(Symbol(std::string(object.type.str()).append(".").append(part)), {});
    if (read.bound.definition)
        return {read.bound.function, &read.bound.definition->value,
                object.assumed || read.bound.definition->value.assumed};
    if (read.function) {
        const auto& annotations = read.function->annotations;
        const bool property = std::ranges::any_of(
            annotations, [](Symbol a) { return a.str().find("property") != std::string_view::npos; });
        Place place = property ? returned_by(*read.function) : Place{};
        place.assumed |= object.assumed;
        if (place.operand) return place;
    }
    const auto [init, value] = names_.classes().kept(object.type, Symbol(std::string("self.").append(part)));
    if (!value) return {};
    if (value->param == kNone || !value->refers.empty()) return {init, value, object.assumed};
    if (!object.made || !object.function) return {init, value, object.assumed};
    Place place = argument_or_default(*object.function, *object.made, *init, value->param);
    place.assumed |= object.assumed;
    return place;
}

// The default of a command-line option: of the same function, else of the same file, else the only one.
Values::Place Values::option(const Object& object, std::string_view part) {
    const auto known = options_.find(Symbol(part));
    if (known == options_.end()) return {};
    const auto& all = known->second;
    const auto in_function =
        std::ranges::find_if(all, [&](const auto& entry) { return entry.first.function == object.function; });
    if (in_function != all.end()) return {in_function->first.function, in_function->second, true};
    const auto in_file = std::ranges::find_if(all, [&](const auto& entry) {
        return entry.first.function->span.file == object.function->span.file;
    });
    if (in_file != all.end()) return {in_file->first.function, in_file->second, true};
    return all.size() == 1 ? Place{all[0].first.function, all[0].second, true} : Place{};
}

// What a property gives: of several `return` statements what they have in common.
Values::Place Values::returned_by(const Function& f) {
    if (f.returned.empty()) return {};
    if (f.returned.size() == 1) return {&f, &f.returned.front()};
    const auto [entry, is_new] = returned_.try_emplace(&f, nullptr);
    if (is_new) {  // one that is being looked for is not known
        Known all;
        bool first = true;
        for (const Operand& o : f.returned) add_branch(all, of(f, o), first);
        Operand common;
        common.dtype = all.dtype, common.shape = all.shape, common.constant = all.constant;
        common.assumed = all.assumed, common.alternative = all.alternative;
        returned_[&f] = keep(common);
    }
    const Operand* const known = returned_[&f];
    return known ? Place{&f, known} : Place{};
}

Values::Place Values::default_of(const Function& f, std::int32_t param) {
    const Parameter& p = f.params[static_cast<std::size_t>(param)];
    if (p.constant.empty() && p.refers.empty()) return {};
    Operand standard;
    standard.constant = p.constant;
    standard.refers = p.refers;
    standard.dtype = python::dtype_named(p.constant.str());
    standard.shape = standard.dtype == DType::unknown ? Shape::scalar : Shape::dtype;
    return {&f, keep(standard), false};
}

Values::Place Values::argument_or_default(const Function& f, const Call& call, const Function& callee,
                                          std::int32_t param) {
    if (param < 0 || static_cast<std::size_t>(param) >= callee.params.size()) return {};
    if (const Operand* argument = argument_for(call, callee, param)) return {&f, argument, false};
    const bool unpacks =
        std::ranges::any_of(call.args, [](const Operand& o) { return o.keyword.str().starts_with('*'); });
    if (!unpacks) return default_of(callee, param);
    return unpacked(f, call, callee.params[static_cast<std::size_t>(param)].name.str());
}

// Every known caller passes it; without one it has its default.
Values::Known Values::of_parameter(const Function& f, std::int32_t param) {
    if (static_cast<std::size_t>(param) >= f.params.size()) return {};
    Known all;
    bool first = true;
    for (const Caller& caller : callers_.get(f.usr))
        add_branch(all, of_place(argument_or_default(*caller.function, *caller.call, f, param)), first);
    if (!first) return all;
    all = of_place(default_of(f, param));
    all.assumed = true;
    return all;
}

// `getattr(torch, "bfloat16")`
Values::Known Values::named(std::string_view text) {
    const DType dtype = python::dtype_named(std::string("torch.").append(unquoted(text)));
    return {.dtype = dtype, .shape = Shape::dtype, .constant = {}, .assumed = false};
}

Values::Known Values::of_call(const Function& f, const Call& call) {
    const std::string_view name = call.name.str();
    if (has_dtype(call.result)) return known_of(call.result);
    if (name == "getattr" && call.args.size() >= 2) {
        const Known text = of(f, call.args[1]);
        if (!is_quoted(text.constant.str())) return {};
        Known found;
        if (call.args[0].constant.str() == "torch")
            found = named(text.constant.str());
        else
            found = of_place(member(object_of(f, call.args[0]), unquoted(text.constant.str())));
        found.assumed |= text.assumed;
        return found;
    }
    if (name == "float" && call.args.size() == 1) return of(f, call.args[0]);
    if (reads_item(call)) return of_item(f, call, true);
    if (is_next(call)) return of_item(f, call, false);
    if (leaf(name) == "field")
        if (const Operand* standard = keyword(call, "default")) {
            Known found = of(f, *standard);
            found.assumed = true;
            return found;
        }
    const Function* callee = names_.function(call.callee);
    return callee && call.kind != CallKind::constructor ? of_returned(f, call, *callee) : Known{};
}

// One entry of a table; all of them when the key is not known.
Values::Known Values::of_item(const Function& f, const Call& reads, bool by_key) {
    const Object table = object_of(f, reads.args[0]);
    const Known wanted = by_key ? of(f, reads.args[1]) : Known{};
    if (const Place entry = entry_of(table, wanted); entry.operand) {
        Known found = of_place(entry);
        found.assumed |= wanted.assumed;
        return found;
    }
    if (!table.data.empty()) {  // cfg.get("dtype", "float32")
        const bool has_default = by_key && reads.args.size() > 2 && is_quoted(wanted.constant.str());
        return has_default ? of(f, reads.args[2]) : Known{};
    }
    if (!table.made || !is_display(*table.made)) return {};
    Known all;
    bool first = true;
    for (const Operand& entry : table.made->args) {
        if (entry.keyword.str().starts_with('*')) return {};
        add_branch(all, of(*table.function, entry), first);
    }
    all.constant = {};
    all.assumed |= table.assumed;
    return all.shape == Shape::dtype ? all : Known{};
}

// Dtypes and constants. The dtype of a tensor is followed where rules ask for it, with its path.
Values::Known Values::of_returned(const Function& f, const Call& call, const Function& callee) {
    Known all;
    bool first = true;
    for (const Operand& o : callee.returned) {
        const bool passed = o.param != kNone && o.refers.empty();
        add_branch(all, passed ? of_place(argument_or_default(f, call, callee, o.param)) : of(callee, o),
                   first);
    }
    return all;
}

namespace {

bool makes_partial(const Call* call) {
    return call && call->name.str() == "functools.partial" && !call->args.empty();
}

// About a parameter or a call of the function.
bool is_local(std::string_view refers) { return refers.front() == '#' || refers.front() == '@'; }

}  // namespace

Symbol Values::named_by(const Function& f, const Operand& o) {
    if (!o.constant.empty() || o.refers.empty() || is_local(o.refers.str())) return o.constant;
    const Reading read = finder_.read(o.refers, package_of(f));
    return read.function ? read.function->usr : read.in_class;
}

ObjectClasses::Caller Values::partial_of(const Function& user, Symbol name) {
    const Reading read = finder_.read(name, package_of(user));
    if (!read.bound.definition) return {};
    const Call* made = call_of(*read.bound.function, read.bound.definition->value);
    return makes_partial(made) ? Caller{read.bound.function, made} : Caller{};
}

ObjectClasses::Caller Values::partial_held(const Function& f, const Operand& o, int depth) {
    constexpr int kFarthest = 3;
    if (depth > kFarthest) return {};
    if (const Call* made = call_of(f, o)) return makes_partial(made) ? Caller{&f, made} : Caller{};
    if (!o.refers.empty() && !is_local(o.refers.str())) return partial_of(f, o.refers);
    if (is_attribute_of_self(o) && !f.parent_class.empty()) {
        const auto [init, value] = names_.classes().kept(f.parent_class, o.name);
        return value ? partial_held(*init, *value, depth + 1) : Caller{};
    }
    if (o.param == kNone) return {};
    Caller common;
    for (const Caller& caller : callers_.get(f.usr)) {
        const Operand* argument = argument_for(*caller.call, f, o.param);
        const Caller found = argument ? partial_held(*caller.function, *argument, depth + 1) : Caller{};
        if (!found.call || (common.call && common.call != found.call)) return {};
        common = found;
    }
    return common;
}

}  // namespace mp::lint
