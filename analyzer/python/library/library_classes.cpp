// The class of the object that a library call returns, and the attributes of such objects.

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "analyzer/python/library/dotted.hpp"
#include "analyzer/python/library/library.hpp"
#include "analyzer/python/library/library_tables.hpp"

namespace mp::lint::python {
namespace {

bool starts_upper(std::string_view name) {
    const std::size_t first = name.find_first_not_of('_');
    return first != std::string_view::npos && name[first] >= 'A' && name[first] <= 'Z';
}

bool is_below(std::string_view name, std::string_view home) {
    return name.size() > home.size() && name.starts_with(home) && name[home.size()] == '.';
}

bool is_in_home(std::string_view qualified, const Names& homes) {
    return std::ranges::any_of(homes, [&](const auto& h) { return is_below(qualified, h.first); });
}

bool ends_like_module(std::string_view leaf) {
    return std::ranges::any_of(names_in("module endings"),
                               [&](const auto& ending) { return leaf.ends_with(ending.first); });
}

bool is_class(std::string_view qualified) {
    if (holds(names_in("classes"), qualified)) return true;
    return starts_upper(last_part(qualified)) && !starts_upper(last_part(home_of(qualified))) &&
           is_library(first_part(qualified));
}

// torchvision.models.resnet50: functions that build a network.
bool builds_network(std::string_view qualified) {
    constexpr std::string_view kHome = "torchvision.models.";
    if (!qualified.starts_with(kHome)) return false;
    constexpr std::array<std::string_view, 4> kOthers{"get_model_weights", "get_weight", "list_models",
                                                      "get_model_builder"};
    return std::ranges::find(kOthers, last_part(qualified)) == kOthers.end();
}

Symbol made_by(std::string_view qualified) {
    const Names& makes = names_in("makes");
    auto found = makes.find(qualified);
    if (found == makes.end()) found = makes.find(short_name(qualified));
    if (found != makes.end()) return Symbol(found->second);
    found = makes.find(last_part(qualified));
    if (found == makes.end() || found->second != ".") return {};
    return is_class(home_of(qualified)) ? Symbol(home_of(qualified)) : Symbol();
}

// Finds the list of a name or of its short name. Both have the same last part, and few last parts have a list.
class ListFinder {
public:
    explicit ListFinder(std::string_view section) : lists_(lists_in(section)) {
        for (const auto& [name, items] : lists_) last_parts_.insert(last_part(name));
    }

    const std::vector<std::string_view>* find(std::string_view name) const {
        if (!last_parts_.contains(last_part(name))) return nullptr;
        auto found = lists_.find(name);
        if (found == lists_.end()) found = lists_.find(short_name(name));
        return found == lists_.end() ? nullptr : &found->second;
    }

private:
    const Lists& lists_;
    std::unordered_set<std::string_view> last_parts_;
};

const std::vector<std::string_view>* items_of(std::string_view name) {
    static const ListFinder finder("items");
    return finder.find(name);
}

const std::vector<std::string_view>* passes_of(std::string_view name) {
    static const ListFinder finder("passes");
    return finder.find(name);
}

bool is_unpacked(const Operand& o) { return o.keyword.str().starts_with("*"); }

// "model@1": the argument of that keyword, else at that position.
std::int32_t find_argument(const Call& call, std::string_view which) {
    const std::size_t at = which.find('@');
    if (at == std::string_view::npos) return kNone;
    const std::string_view keyword = which.substr(0, at);
    const auto position = static_cast<std::size_t>(which[at + 1] - '0');
    for (std::size_t i = 0; i < call.args.size(); ++i) {
        const Operand& argument = call.args[i];
        if (is_unpacked(argument)) return kNone;
        if (argument.keyword.empty() ? i == position : argument.keyword.str() == keyword)
            return static_cast<std::int32_t>(i);
    }
    return kNone;
}

std::size_t positional_count(const Call& call) {
    return static_cast<std::size_t>(
        std::ranges::count_if(call.args, [](const Operand& o) { return o.keyword.empty(); }));
}

// For "*": item i is positional argument i after the receiver.
std::int32_t nth_argument(const Call& call, std::size_t item) {
    const std::size_t index = item + (call.kind == CallKind::method ? 1 : 0);
    if (index >= positional_count(call)) return kNone;
    return std::ranges::any_of(call.args, is_unpacked) ? kNone : static_cast<std::int32_t>(index);
}

// A class of another file of the project counts as a module when one of these methods is called on it.
// Modules return themselves from them, and other classes hardly have methods of these names.
bool is_module_of_project(const Call& call) {
    constexpr std::array<std::string_view, 9> kChains{"bfloat16", "cpu",  "cuda", "double",        "eval",
                                                      "float",    "half", "to",   "requires_grad_"};
    const std::string_view name = call.name.str();
    return call.args[0].shape == Shape::object && name[0] != '?' && !is_library(first_part(name)) &&
           std::ranges::find(kChains, last_part(name)) != kChains.end();
}

bool gives_receiver(const Call& call) {
    if (call.kind != CallKind::method || call.args.empty()) return false;
    if (is_module_of_project(call)) return true;
    const std::string_view name = call.name.str();
    const std::string_view leaf = last_part(name);
    const Shape shape = call.args[0].shape;
    if (shape == Shape::module || is_below(name, "torch.nn.Module"))
        return holds(names_in("same module"), leaf);
    const bool may_be_tensor = is_below(name, "torch.Tensor") || is_below(name, "?");
    return may_be_tensor && (holds(names_in("same tensor"), leaf) || leaf == "eval" || leaf == "train");
}

}  // namespace

bool is_library(std::string_view root) { return holds(names_in("libraries"), root); }

Shape shape_of_class(std::string_view qualified) {
    if (holds(names_in("tensor classes"), qualified)) return Shape::tensor;
    if (qualified == "torch.dtype") return Shape::dtype;
    if (qualified == "torch.device") return Shape::options;
    if (!is_library(first_part(qualified)))
        return holds(names_in("classes"), qualified) ? Shape::object : Shape::other;
    const std::string_view leaf = last_part(qualified);
    if (leaf.ends_with("Tensor") && dtype_named(qualified) != DType::unknown) return Shape::tensor;
    if (!starts_upper(leaf)) return is_class(qualified) ? Shape::object : Shape::other;
    const bool is_module = is_in_home(qualified, names_in("module homes")) ||
                           holds(names_in("module classes"), leaf) ||
                           (!qualified.starts_with("torch.") && ends_like_module(leaf));
    return is_module ? Shape::module : Shape::object;
}

Symbol class_of(const Call& call) {
    const std::string_view name = call.name.str();
    if (name.empty() || name[0] == '?') return {};
    if (const Symbol made = made_by(name); !made.empty()) return made;
    if (builds_network(name) && !starts_upper(last_part(name))) return Symbol("torch.nn.Module");
    return is_class(name) ? call.name : Symbol();
}

Symbol class_of_item(const Call& call, std::size_t item) {
    const auto* items = items_of(call.name.str());
    if (!items || item >= items->size()) return {};
    const std::string_view what = (*items)[item];
    return what.find('.') == std::string_view::npos ? Symbol() : Symbol(what);
}

std::int32_t passes_on(const Call& call) {
    if (gives_receiver(call)) return 0;
    const std::string_view name = call.name.str();
    if (const auto* items = items_of(name); items && items->front() == "*")
        return positional_count(call) == (call.kind == CallKind::method ? 2u : 1u) ? nth_argument(call, 0)
                                                                                   : kNone;
    const auto* passes = passes_of(name);
    return passes ? find_argument(call, passes->front()) : kNone;
}

bool wraps_module(std::string_view qualified) { return passes_of(qualified) && is_class(qualified); }

std::int32_t passes_on_item(const Call& call, std::size_t item) {
    const auto* items = items_of(call.name.str());
    if (!items) return kNone;
    if (items->front() == "*") return nth_argument(call, item);
    return item < items->size() ? find_argument(call, (*items)[item]) : kNone;
}

namespace {

struct Member {
    std::string_view name;
    Shape shape;
    std::string_view type;  // its class, when it is an object
    DType dtype = DType::unknown;
    bool follows = false;  // its dtype is that of the object
};

using enum Shape;

constexpr Member kOfTensors[]{
    {"H", tensor, "", DType::unknown, true},
    {"T", tensor, "", DType::unknown, true},
    {"data", tensor, "", DType::unknown, true},
    {"device", options, "torch.device"},
    {"dtype", dtype, "torch.dtype", DType::unknown, true},
    {"grad", tensor, "", DType::unknown, true},
    {"is_cuda", scalar, "", DType::boolean},
    {"is_leaf", scalar, "", DType::boolean},
    {"itemsize", scalar, "", DType::int64},
    {"mH", tensor, "", DType::unknown, true},
    {"mT", tensor, "", DType::unknown, true},
    {"nbytes", scalar, "", DType::int64},
    {"ndim", scalar, "", DType::int64},
    {"requires_grad", scalar, "", DType::boolean},
    {"shape", object, "torch.Size"},
};

constexpr Member kOfModules[]{
    {"bias", tensor, "", DType::unknown, true},
    {"device", options, "torch.device"},
    {"dtype", dtype, "torch.dtype", DType::unknown, true},
    {"module", module, "torch.nn.Module", DType::unknown, true},
    {"running_mean", tensor, "", DType::unknown, true},
    {"running_var", tensor, "", DType::unknown, true},
    {"training", scalar, "", DType::boolean},
    {"weight", tensor, "", DType::unknown, true},
};

constexpr Member kOfLimits[]{
    {"bits", scalar, "", DType::int64}, {"eps", scalar, ""},  {"max", scalar, ""}, {"min", scalar, ""},
    {"smallest_normal", scalar, ""},    {"tiny", scalar, ""},
};

const Member* find_member(std::span<const Member> members, std::string_view name) {
    const auto it = std::ranges::lower_bound(members, name, {}, &Member::name);
    return it != members.end() && it->name == name ? &*it : nullptr;
}

const Member* member_of(const Operand& object_, std::string_view type, std::string_view name) {
    if (object_.shape == tensor) return find_member(kOfTensors, name);
    if (object_.shape == module) return find_member(kOfModules, name);
    if (type == "torch.finfo" || type == "torch.iinfo" || type == "numpy.finfo")
        return find_member(kOfLimits, name);
    return nullptr;
}

}  // namespace

Attribute attribute_of(const Operand& object_, Symbol type, std::string_view name) {
    const Member* found = member_of(object_, type.str(), name);
    if (found)
        return {.dtype = found->follows ? object_.dtype : found->dtype,
                .shape = found->shape,
                .type = found->type.empty() ? Symbol() : Symbol(found->type)};
    // An object that may be a tensor has a tensor's members too, but only the dtype of a cast is known.
    const Member* guess = object_.shape == other ? find_member(kOfTensors, name) : nullptr;
    if (!guess || !guess->follows || object_.dtype == DType::unknown) return {};
    return {
        .dtype = object_.dtype, .shape = guess->shape == dtype ? dtype : other, .type = Symbol(guess->type)};
}

}  // namespace mp::lint::python
