// The results of library calls: see library.hpp. The result of a name lookup is memoised (Known); the part
// that depends on operands is decided per call.

#include "analyzer/python/library/library.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "analyzer/python/library/dotted.hpp"
#include "analyzer/python/library/library_dtypes.hpp"
#include "analyzer/python/library/library_tables.hpp"
#include "kernels/numerics/op_traits.hpp"
#include "kernels/numerics/policy.hpp"

namespace mp::lint::python {
namespace {

// The kind of result that a name alone implies.
enum class Gives : std::uint8_t {
    nothing,
    floats,  // tensors; the next ones follow the sections of the table
    integers,
    values,
    drawn,
    like,
    tensors,
    scalars,
    counts,
    objects,
    cast,  // to Known::dtype
    retype,
    same,     // the receiver
    element,  // x[i]
    keeps,    // the next ones are ops, by their effect on dtypes
    promotes,
    sums,
    truths,
    indices,
    extremes,
    several,
    op,    // an op whose result is unknown
    made,  // an object of class Known::made
    parameters,
};

struct Known {
    Op op;
    Gives gives = Gives::nothing;
    DType dtype = DType::unknown;
    Symbol made;
    bool in_place = false;
    bool is_method = false;  // of a tensor, or of an object that may be a tensor
    bool is_operator = false;
    bool of_module = false;  // a method of modules
};

struct Section {
    std::string_view name;
    Gives gives;
};

constexpr std::array<Section, 9> kFunctions{{{"floats", Gives::floats},
                                             {"integers", Gives::integers},
                                             {"values", Gives::values},
                                             {"drawn", Gives::drawn},
                                             {"like", Gives::like},
                                             {"tensors", Gives::tensors},
                                             {"scalars", Gives::scalars},
                                             {"counts", Gives::counts},
                                             {"objects", Gives::objects}}};

struct OpResult {
    Trait trait;
    Gives gives;
};

constexpr std::array<OpResult, 7> kOps{{{Trait::keeps, Gives::keeps},
                                        {Trait::promotes, Gives::promotes},
                                        {Trait::sums_integers, Gives::sums},
                                        {Trait::truths, Gives::truths},
                                        {Trait::indices, Gives::indices},
                                        {Trait::extremes, Gives::extremes},
                                        {Trait::several, Gives::several}}};

Gives result_of(Op op) {
    const Traits traits = traits_of(op);
    for (const OpResult& result : kOps)
        if (traits.has(result.trait)) return result.gives;
    return Gives::nothing;
}

Gives find(std::string_view name) {
    for (const Section& section : kFunctions)
        if (holds(names_in(section.name), name)) return section.gives;
    return Gives::nothing;
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

// jnp.exp and paddle.exp have the op torch.exp. The dot of Triton gives fp32 whatever its inputs are.
Op op_of(std::string_view name) {
    if (name == "triton.language.dot") return {};
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTwins{
        {{"jax.numpy.", "torch."},
         {"jax.nn.", "torch.nn.functional."},
         {"paddle.nn.functional.", "torch.nn.functional."},
         {"paddle.Tensor.", "torch.Tensor."},
         {"paddle.", "torch."},
         {"triton.language.", "torch."}}};
    for (const auto& [prefix, twin] : kTwins)
        if (std::string_view rest = name; drop_prefix(rest, prefix))
            return op_from_spelling(std::string(twin).append(rest));
    return op_from_spelling(name);
}

DType cast_of(std::string_view leaf) {
    const Names& casts = names_in("casts");
    const auto found = casts.find(leaf);
    return found == casts.end() ? DType::unknown : dtype_from_name(found->second).value_or(DType::unknown);
}

bool is_dunder(std::string_view leaf) { return leaf.starts_with("__") && leaf.ends_with("__"); }

void look_up_method(Known& known, std::string_view leaf) {
    known.is_method = true;
    known.is_operator = is_dunder(leaf);
    const std::string spelling = "torch.Tensor." + std::string(leaf);
    if (is_tensor_method(leaf)) known.op = op_from_spelling(spelling);
    known.in_place = known.op.known() && is_in_place(spelling);
    known.dtype = cast_of(leaf);
    if (known.dtype != DType::unknown)
        known.gives = Gives::cast;
    else if (holds(names_in("retypes"), leaf))
        known.gives = Gives::retype;
    else if (leaf == "__getitem__")
        known.gives = Gives::element;
    else if (holds(names_in("same tensor"), leaf))
        known.gives = Gives::same;
    else
        known.gives = find(spelling);
    if (known.gives == Gives::nothing && known.op.known()) known.gives = result_of(known.op);
}

void look_up_module_method(Known& known, std::string_view name, std::string_view leaf) {
    known.of_module = true;
    known.dtype = cast_of(leaf);
    if (known.dtype != DType::unknown)
        known.gives = Gives::cast;
    else if (leaf == "to" || leaf == "type")
        known.gives = Gives::retype;
    else if (leaf == "parameters")
        known.gives = Gives::parameters;
    else if (holds(names_in("same module"), leaf))
        known.gives = Gives::same;
    else
        known.gives = find(name);
}

void look_up_function(Known& known, Symbol symbol) {
    const std::string_view name = symbol.str();
    known.gives = find(name);
    if (known.gives == Gives::nothing) known.gives = find(short_name(name));
    if (known.gives != Gives::nothing) return;
    Call named;
    named.name = symbol;
    known.made = class_of(named);
    if (!known.made.empty()) {
        known.gives = Gives::made;
        return;
    }
    if (!is_library(first_part(name))) return;
    if (first_part(name) == "numpy") {
        known.gives = Gives::objects;
        return;
    }
    known.op = op_of(name);
    known.in_place = known.op.known() && is_in_place(name);
    if (known.op.known()) known.gives = result_of(known.op);
    if (known.op.known() && known.gives == Gives::nothing) known.gives = Gives::op;
}

Known look_up(Symbol symbol) {
    Known known;
    std::string_view name = symbol.str();
    if (drop_prefix(name, "?.") || drop_prefix(name, "torch.Tensor."))
        look_up_method(known, name);
    else if (std::string_view leaf = name; drop_prefix(leaf, "torch.nn.Module."))
        look_up_module_method(known, name, leaf);
    else
        look_up_function(known, symbol);
    if (known.is_method && known.op.known() && known.gives == Gives::nothing) known.gives = Gives::op;
    return known;
}

const Known& known_name(Symbol name) {
    static thread_local std::unordered_map<Symbol, Known> cache;
    const auto [entry, is_new] = cache.try_emplace(name);
    if (is_new) entry->second = look_up(name);
    return entry->second;
}

// Whether an autocast list of any device and version casts the inputs of an op.
struct Listed {
    bool lower = false;
    bool fp32 = false;
    bool promote = false;
};

std::map<Op, Listed> read_lists() {
    std::map<Op, Listed> lists;
    for (const std::string_view name : Policy::built_in_names()) {
        const Result<Policy> policy = Policy::built_in(name);
        if (!policy || name.starts_with("apex") || name.starts_with("hmp")) continue;
        for (const Policy::Entry& entry : policy->entries()) {
            Listed& listed = lists[entry.op];
            if (entry.category == Category::lower)
                listed.lower = true;
            else if (entry.category == Category::promote)
                listed.promote = true;
            else if (entry.category != Category::unlisted)
                listed.fp32 = true;
        }
    }
    return lists;
}

// Whether the dtype is `natural` inside and outside of every autocast region.
bool is_certain(Op op, DType natural) {
    static const std::map<Op, Listed> lists = read_lists();
    const auto found = lists.find(op);
    if (found == lists.end() || !is_float(natural) || natural == DType::fp64) return true;
    if (found->second.lower) return false;
    return natural == DType::fp32 || (!found->second.fp32 && !found->second.promote);
}

class Completion {
public:
    Completion(Call& call, const Function& function, DType default_float, const Known& known)
        : call_(call), function_(function), default_(default_float), known_(known) {}

    void run();

private:
    void factory(DType natural);
    void values();
    void drawn();
    void cast(DType dtype);
    void of_op(DType natural);
    void sums();
    void extremes();
    void made();
    void give(Shape shape, DType dtype);
    DType first() const;
    DType of_inputs() const;
    DType container_dtype() const;
    bool is_python_arithmetic() const;
    bool has_tensor() const;
    Shape tensor_or_other() const;

    Call& call_;
    const Function& function_;
    DType default_;
    const Known& known_;
};

void Completion::give(Shape shape, DType dtype) {
    call_.result.shape = shape;
    call_.result.dtype = dtype;
}

bool Completion::has_tensor() const {
    return std::ranges::any_of(call_.args, [](const Operand& o) { return o.shape == Shape::tensor; });
}

// A method of an unknown receiver has an unknown result, not a proven tensor.
Shape Completion::tensor_or_other() const {
    if (!known_.is_method) return Shape::tensor;
    return has_tensor() && (known_.is_operator || call_.args[0].shape == Shape::tensor) ? Shape::tensor
                                                                                        : Shape::other;
}

// a + b of numbers, NumPy arrays or strings: no tensor is involved.
bool Completion::is_python_arithmetic() const {
    if (!known_.is_method || call_.args.empty()) return false;
    const auto is_plain = [](const Operand& o) {
        return o.shape == Shape::object || o.shape == Shape::scalar;
    };
    return known_.is_operator ? std::ranges::all_of(call_.args, is_plain) : is_plain(call_.args[0]);
}

DType Completion::first() const {
    const bool is_forward = call_.op.known() && call_.kind == CallKind::method;
    for (const Operand& argument : call_.args) {
        const std::string_view keyword = argument.keyword.str();
        if (is_forward && argument.shape == Shape::module) continue;  // only its input counts
        if (keyword.empty() || keyword == "input" || keyword == "x" || keyword == "self")
            return argument.dtype;
    }
    return DType::unknown;
}

DType Completion::of_inputs() const {
    std::vector<Operand> inputs;
    for (const Operand& argument : call_.args) {
        const std::string_view keyword = argument.keyword.str();
        if (!keyword.empty() && keyword != "input" && keyword != "other" && keyword != "tensors") continue;
        const auto elements = elements_of(argument, function_);
        if (elements.empty())
            inputs.push_back(argument);
        else
            inputs.insert(inputs.end(), elements.begin(), elements.end());
    }
    return promoted(inputs, function_, default_);
}

void Completion::factory(DType natural) { give(Shape::tensor, dtype_argument(call_).value_or(natural)); }

void Completion::values() {
    const bool is_range = last_part(call_.name.str()).ends_with("range");
    const bool is_full = last_part(call_.name.str()).starts_with("f");
    std::vector<Operand> read;
    for (std::size_t i = known_.is_method ? 1 : 0; i < call_.args.size(); ++i) {
        const std::string_view keyword = call_.args[i].keyword.str();
        const bool is_value = keyword == "data" || keyword == "fill_value" || keyword == "value" ||
                              keyword == "start" || keyword == "end" || keyword == "step";
        const bool positional = keyword.empty() && (is_range || i == (is_full ? 1u : 0u) || known_.is_method);
        if (is_value || positional) read.push_back(call_.args[i]);
    }
    factory(dtype_of_values(read, function_, default_));
}

// torch.normal(mean, std): either may be a number.
void Completion::drawn() {
    for (std::size_t i = 0; i < call_.args.size(); ++i) {
        const Operand& given = call_.args[i];
        const std::string_view keyword = given.keyword.str();
        const bool is_parameter = keyword.empty() ? i < 2 : keyword == "mean" || keyword == "std";
        if (is_parameter && given.shape != Shape::scalar) return factory(given.dtype);
    }
    factory(default_);
}

void Completion::cast(DType dtype) {
    const bool is_module = known_.of_module || (!call_.args.empty() && call_.args[0].shape == Shape::module);
    if (is_python_arithmetic() && !is_module) return give(Shape::object, DType::unknown);
    give(is_module ? Shape::module : tensor_or_other(), dtype);
}

void Completion::of_op(DType natural) {
    if (call_.in_place) return give(tensor_or_other(), first());
    if (const auto asked = dtype_argument(call_)) return give(tensor_or_other(), *asked);
    if (is_integer(natural) && traits_of(call_.op).has(Trait::floats_integers)) natural = default_;
    give(tensor_or_other(), is_certain(call_.op, natural) ? natural : DType::unknown);
}

void Completion::sums() {
    const DType input = first();
    const bool is_whole = is_integer(input) || input == DType::boolean;
    of_op(is_whole ? DType::int64 : input);
}

// x.max(), torch.max(a, b), x.max(dim): the last one returns a pair.
void Completion::extremes() {
    if (call_.args.size() < 2) return of_op(first());
    if (call_.args[1].shape == Shape::tensor) return of_op(of_inputs());
    give(Shape::other, DType::unknown);
}

// nn.Sequential(a, b): the dtype that all arguments share.
DType Completion::container_dtype() const {
    DType common = DType::unknown;
    for (const Operand& argument : call_.args) {
        const auto elements = elements_of(argument, function_);
        const auto parts = elements.empty() ? std::span(&argument, 1) : elements;
        for (const Operand& part : parts) {
            if (part.dtype == DType::unknown) return DType::unknown;
            if (common != DType::unknown && part.dtype != common) return DType::unknown;
            common = part.dtype;
        }
    }
    return common;
}

void Completion::made() {
    const Shape shape = shape_of_class(known_.made.str());
    const std::string_view leaf = last_part(call_.name.str());
    if (shape == Shape::tensor) return factory(dtype_named(known_.made.str()));
    if (shape != Shape::module) return give(shape, DType::unknown);
    if (const auto asked = dtype_argument(call_)) return give(shape, *asked);
    if (const std::int32_t inner = passes_on(call_); inner != kNone)
        return give(shape, call_.args[static_cast<std::size_t>(inner)].dtype);
    if (holds(names_in("containers"), leaf)) return give(shape, container_dtype());
    const bool fresh = known_.made == call_.name && known_.made.str().starts_with("torch.nn.");
    const bool built =
        known_.made == Symbol("torch.nn.Module") && call_.name.str().starts_with("torchvision.models.");
    give(shape, fresh || built ? default_ : DType::unknown);
}

void Completion::run() {
    call_.op = known_.op;
    call_.in_place = known_.in_place;
    if (is_python_arithmetic() && known_.gives != Gives::nothing) {
        call_.op = {};
        call_.in_place = false;
        const bool numbers =
            std::ranges::all_of(call_.args, [](const Operand& o) { return o.shape == Shape::scalar; });
        if (known_.is_operator) return give(numbers ? Shape::scalar : Shape::object, DType::unknown);
        return give(Shape::object, DType::unknown);
    }
    switch (known_.gives) {
        case Gives::nothing:
            return;
        case Gives::floats:
            return factory(default_);
        case Gives::integers:
            return factory(DType::int64);
        case Gives::values:
            return values();
        case Gives::drawn:
            return drawn();
        case Gives::like:
            return factory(first());
        case Gives::tensors:
            return give(Shape::tensor, DType::unknown);
        case Gives::scalars:
            return give(Shape::scalar, DType::unknown);
        case Gives::counts:
            return give(Shape::scalar, DType::int64);
        case Gives::objects:
            return give(Shape::object, DType::unknown);
        case Gives::cast:
            return cast(known_.dtype);
        case Gives::retype:
            return cast(retyped(call_));
        case Gives::same:
            return cast(first());
        case Gives::element:
            return give(tensor_or_other(), first());
        case Gives::keeps:
            return of_op(first());
        case Gives::promotes:
            return of_op(of_inputs());
        case Gives::sums:
            return sums();
        case Gives::truths:
            return give(tensor_or_other(), DType::boolean);
        case Gives::indices:
            return give(tensor_or_other(), DType::int64);
        case Gives::extremes:
            return extremes();
        case Gives::several:
            return give(Shape::other, DType::unknown);
        case Gives::op:
            return of_op(DType::unknown);
        case Gives::made:
            return made();
        case Gives::parameters:
            return give(Shape::parameters, call_.args.empty() ? DType::unknown : call_.args[0].dtype);
    }
}

}  // namespace

bool is_tensor_method(std::string_view leaf) {
    const Names& methods = names_in("tensor methods");
    if (holds(methods, leaf)) return true;
    return leaf.ends_with('_') && !is_dunder(leaf) && holds(methods, leaf.substr(0, leaf.size() - 1));
}

void complete(Call& call, const Function& function, DType default_float) {
    Completion(call, function, default_float, known_name(call.name)).run();
}

}  // namespace mp::lint::python
