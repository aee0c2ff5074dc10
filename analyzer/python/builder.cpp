#include "analyzer/python/builder.hpp"

#include <algorithm>

#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/python/library/library.hpp"
#include "kernels/base/sorted.hpp"

namespace mp::lint::python {

namespace {

bool is_open(const Value& v) {
    const Shape shape = v.is.shape;
    const bool may_be_read = shape == Shape::other || shape == Shape::object || shape == Shape::dtype;
    return v.entity.empty() && v.is.constant.empty() && may_be_read;
}

}  // namespace

Builder::Builder(File& file, Scope& scope, Function function)
    : file_(file), number_(++file.builders), scope_(scope), f_(std::move(function)) {
    env_.resize(scope_.bindings.size());
    bindings_ = env_.size();
    new_block();
    entered_blocks_[0] = true;
}

Value Builder::entity_value(Symbol entity, Binding::Kind kind) {
    Value v;
    v.entity = entity;
    v.callable = kind == Binding::Kind::function;
    v.is_class = kind == Binding::Kind::class_;
    if (kind == Binding::Kind::import)
        if (const DType dtype = dtype_named(entity.str()); dtype != DType::unknown)
            v.is = make_operand(Shape::dtype, dtype), v.is.constant = entity;
    return v;
}

Value Builder::load(Node name) {
    Value v = load(file_.names.of(name));
    v.is.name = file_.names.of(name);
    return v;
}

Value Builder::load(Symbol name) {
    for (std::size_t i = inner_.size(); i-- > 0;)
        if (inner_[i].first == name) return inner_[i].second;
    const std::uint32_t i = scope_.index.find(name);
    if (i == FlatMap::kAbsent || scope_.bindings[i].elsewhere) return from_outer(scope_.parent, name);
    if (env_[i].set) return env_[i].value;
    const Binding& binding = scope_.bindings[i];
    return binding.entity.empty() ? Value{} : entity_value(binding.entity, binding.kind);
}

// A name of an enclosing scope: the value that it has whenever this function runs.
Value Builder::from_outer(Scope* scope, Symbol name) {
    for (; scope; scope = scope->parent) {
        if (scope->kind == Scope::Kind::class_) continue;
        const std::uint32_t i = scope->index.find(name);
        if (i == FlatMap::kAbsent || scope->bindings[i].elsewhere) continue;
        const Binding& binding = scope->bindings[i];
        if (binding.kind != Binding::Kind::variable && !binding.entity.empty())
            return entity_value(binding.entity, binding.kind);
        if (i >= scope->last.size()) return {};
        const Value& last = scope->last[i];
        Value v;
        if (binding.is_fixed())
            v = last;
        else
            v.entity = last.entity;  // an import with a fallback
        // The link stage finds what a module binds as a whole.
        if (scope->kind == Scope::Kind::module && is_open(v))
            v.is.refers = file_.names.join(scope->prefix, name.str());
        return v;
    }
    Value v;
    if (is_builtin(name.str()))
        v.entity = name;
    else if (!file_.star.empty())
        return entity_value(file_.names.join(file_.star, name.str()), Binding::Kind::import);
    else if (file_.has_stars)  // one of several modules has it
        v.is.refers = file_.names.join(file_.names.module(), name.str());
    return v;
}

void Builder::set(std::uint32_t slot, Value value, bool fresh) {
    journal_.emplace_back(slot, env_[slot]);
    env_[slot].value = std::move(value);
    env_[slot].set = true;
    if (fresh) env_[slot].loop = loop_;
}

std::uint32_t Builder::slot_of(Symbol dotted) {
    std::uint32_t i = dotted_.find(dotted);
    if (i == FlatMap::kAbsent) {
        i = static_cast<std::uint32_t>(env_.size());
        dotted_.insert(dotted, i);
        env_.emplace_back();
    }
    if (!env_[i].set) parts_[Symbol(first_part(dotted.str()))].push_back(i);
    return i;
}

const Value* Builder::known_dotted(Symbol dotted) const {
    const std::uint32_t i = dotted_.find(dotted);
    return i != FlatMap::kAbsent && env_[i].set ? &env_[i].value : nullptr;
}

void Builder::forget_parts_of(Symbol name) {
    const auto known = parts_.find(name);
    if (known == parts_.end()) return;
    for (const std::uint32_t slot : known->second) {
        journal_.emplace_back(slot, env_[slot]);
        env_[slot] = {};
    }
    known->second.clear();
}

Builder::Delta Builder::take(std::size_t since) {
    Delta changed;
    for (std::size_t i = since; i < journal_.size(); ++i) {
        const std::uint32_t slot = journal_[i].first;
        if (env_[slot].mark == taken_ + 1) continue;
        env_[slot].mark = taken_ + 1;
        changed.emplace_back(slot, env_[slot]);
    }
    ++taken_;
    while (journal_.size() > since) {
        env_[journal_.back().first] = std::move(journal_.back().second);
        journal_.pop_back();
    }
    std::sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return changed;
}

void Builder::merge(const std::vector<Branch>& all, Symbol condition, bool when) {
    std::vector<const Branch*> branches;
    std::vector<std::uint32_t> slots;
    for (const Branch& branch : all) {
        if (!branch.alive) continue;
        branches.push_back(&branch);
        for (const auto& [slot, value] : branch.changed) slots.push_back(slot);
    }
    sort_unique(slots);
    const auto value_in = [&](const Branch& branch, std::uint32_t slot) -> const Slot& {
        const auto at = std::lower_bound(branch.changed.begin(), branch.changed.end(), slot,
                                         [](const auto& entry, auto s) { return entry.first < s; });
        return at != branch.changed.end() && at->first == slot ? at->second : env_[slot];
    };
    for (const std::uint32_t slot : slots) {
        Slot merged = value_in(*branches[0], slot);
        for (std::size_t i = 1; i < branches.size(); ++i) {
            const Slot& next = value_in(*branches[i], slot);
            // A variable that one branch leaves unbound is not read after the branches join.
            if (!next.set && unbound_is_absent(slot)) continue;
            if (!merged.set && unbound_is_absent(slot)) {
                merged = next;
                continue;
            }
            merged.value = join(merged.value, next.value, branches.size() == 2 ? condition : Symbol{}, when);
            merged.loop = std::min(merged.loop, next.loop);
        }
        set(slot, std::move(merged.value));
        env_[slot].loop = merged.loop;
    }
}

// Attributes that a function does not assign keep an earlier value; those of a new object have none.
bool Builder::unbound_is_absent(std::uint32_t slot) const {
    return slot < bindings_ || f_.name.str().ends_with(".__init__");
}

// Whether it is the earlier value behind a wrapper, such as DistributedDataParallel(net), and with the same dtype.
bool Builder::wraps(const Operand& value, const Operand& earlier) const {
    constexpr int kMostCalls = 16;
    const Operand* at = &value;
    bool is_wrapped = false;
    for (int i = 0; i < kMostCalls && at->call != kNone && at->call != earlier.call; ++i) {
        const Call& call = f_.calls[static_cast<std::size_t>(at->call)];
        const std::int32_t from = passes_on(call);
        if (from == kNone) return false;
        const Operand& inner = call.args[static_cast<std::size_t>(from)];
        if (call.result.dtype != DType::unknown && call.result.dtype != inner.dtype) return false;
        is_wrapped = is_wrapped || wraps_module(call.name.str());
        at = &inner;
    }
    return is_wrapped && at->call == earlier.call && at->param == earlier.param &&
           (at->call != kNone || at->param != kNone);
}

// The call of a parser of classes of whose results the value is one.
const Call* Builder::parsed_by(const Operand& value) const {
    if (value.call == kNone) return nullptr;
    const Call& item = f_.calls[static_cast<std::size_t>(value.call)];
    if (item.name.str() != "?.__getitem__" || item.args.size() != 2 || item.args[0].call == kNone)
        return nullptr;
    const Call& all = f_.calls[static_cast<std::size_t>(item.args[0].call)];
    return fills_classes(all) ? &all : nullptr;
}

// args, = parser.parse_json_file(path), or else parser.parse_args_into_dataclasses(): the same item of both.
bool Builder::are_parsed_alike(const Operand& a, const Operand& b) const {
    const Call *const from_a = parsed_by(a), *const from_b = parsed_by(b);
    if (!from_a || !from_b) return false;
    const auto index = [&](const Operand& value) {
        return f_.calls[static_cast<std::size_t>(value.call)].args[1].constant;
    };
    const Operand &parser = from_a->args[0], &other = from_b->args[0];
    return index(a) == index(b) && parser.call == other.call && parser.name == other.name;
}

namespace {

// suppress, nullcontext: functions whose call makes a manager that does nothing.
bool makes_nothing(const Value& value) {
    const std::string_view name = last_part(value.entity.str());
    return name == "nullcontext" || name == "suppress";
}

}  // namespace

// The function that makes a region, when called: torch.autocast. Empty for other values.
Symbol Builder::region_maker(const Value& value) const {
    if (!value.makes_region.empty()) return value.makes_region;
    for (const Symbol name : {value.entity, value.is.alternative})
        if (last_part(name.str()) == "autocast" && file_.is_library_name(name)) return name;
    return {};
}

Value Builder::join(const Value& a, const Value& b, Symbol condition, bool when) {
    static const Symbol kNoneText("None");
    const bool a_is_none = a.is.constant == kNoneText, b_is_none = b.is.constant == kNoneText;
    const bool dtype = a.is.shape == Shape::dtype || b.is.shape == Shape::dtype;
    if (a_is_none != b_is_none && !dtype) {
        // Code that uses the value has checked that it is not None. (`dtype=None` means the default.)
        Value v = a_is_none ? b : a;
        v.is.constant = {};
        return v;
    }
    // if distributed: net = DistributedDataParallel(net), whose forward is that of net
    if (wraps(a.is, b.is)) return b;
    if (wraps(b.is, a.is)) return a;
    if (are_parsed_alike(a.is, b.is)) return b;
    Value v = common(a, b);
    // `autocast if amp else nullcontext`: its call makes a region, or nothing.
    const Symbol of_a = region_maker(a), of_b = region_maker(b);
    if (makes_nothing(of_a.empty() ? a : b) && of_a.empty() != of_b.empty()) {
        const Value& maker = of_a.empty() ? b : a;
        const bool is_first = maker.region_condition.empty();
        v.is.call = maker.is.call;
        v.is.alternative = of_a.empty() ? of_b : of_a;
        v.region_condition = is_first ? condition : maker.region_condition;
        v.region_when = is_first ? when != of_a.empty() : maker.region_when;
        return v;
    }
    if (v.entity.empty() && !a.entity.empty() && !b.entity.empty() &&
        last_part(a.entity.str()) == last_part(b.entity.str())) {
        v.entity = a.entity;  // a fallback for another version
        v.callable = a.callable, v.is_class = a.is_class;
    }
    if (v.is.call != kNone || v.contexts != kNone) return v;
    std::vector<Choice> choices = choices_of(a);
    std::vector<Choice> others = choices_of(b);
    if (choices.empty() && others.empty()) return v;
    const auto limit = [&](std::vector<Choice>& list, bool value) {
        for (Choice& choice : list)
            if (choice.condition.empty()) choice.condition = condition, choice.when = value;
    };
    limit(choices, when);
    limit(others, !when);
    choices.insert(choices.end(), others.begin(), others.end());
    v.contexts = keep_choices(std::move(choices));
    return v;
}

Node stored_by(Node node) {
    switch (node.kind()) {
        case Kind::assignment:
        case Kind::augmented_assignment:
        case Kind::for_statement:
            return node.part(Part::left);
        case Kind::named_expression:
            return node.part(Part::name);
        case Kind::as_pattern_target:
            return node;
        default:
            return {};
    }
}

// Values that the body of a loop assigns are unknown at the start of the next iteration.
void Builder::weaken(Node loop) {
    const std::uint32_t end = loop.end_index();
    for (Node node = loop; node && node.index() < end;) {
        const Kind kind = node.kind();
        if (kind == Kind::function_definition || kind == Kind::class_definition || kind == Kind::lambda) {
            node = node.next_outside();
            continue;
        }
        if (const Node target = stored_by(node)) {
            const Node right = node.part(Part::right);
            const bool sums = kind == Kind::assignment && right.kind() == Kind::binary_operator &&
                              right.part(Part::left).text() == target.text();
            weaken_target(target, sums || kind == Kind::augmented_assignment);
        }
        node = node.next_inside();
    }
}

void Builder::weaken_target(Node target, bool augmented) {
    std::uint32_t slot = FlatMap::kAbsent;
    if (target.kind() == Kind::identifier)
        slot = scope_.index.find(file_.names.of(target));
    else if (target.kind() == Kind::attribute)
        slot = dotted_.find(file_.names.of(target));
    else
        for (const Node child : target.children()) weaken_target(child, augmented);
    if (slot == FlatMap::kAbsent || !env_[slot].set) return;
    Value v;
    if (augmented) {  // in place: kind and dtype stay
        const Value& old = env_[slot].value;
        v.is.dtype = old.is.dtype;
        v.is.shape = old.is.shape;
        v.object = old.object;
    }
    const std::uint32_t loop = env_[slot].loop;
    set(slot, std::move(v));
    env_[slot].loop = loop;
}

}  // namespace mp::lint::python
