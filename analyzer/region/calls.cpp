#include "analyzer/region/calls.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "analyzer/python/library/library.hpp"
#include "analyzer/python/library/library_tables.hpp"

namespace mp::lint {
namespace {

// Sets the top bit of every byte of `eight` that equals `c`.
constexpr std::uint64_t bytes_equal(std::uint64_t eight, char c) {
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kLow = 0x7f * kOnes;
    const std::uint64_t differs = eight ^ (static_cast<unsigned char>(c) * kOnes);
    return ~(((differs & kLow) + kLow) | differs | kLow);
}

bool has_annotation(const Function& f, std::string_view name) {
    return std::ranges::any_of(f.annotations, [&](Symbol a) { return a.str() == name; });
}

// The number of arguments before the one for the callee's parameter 0; -1 when parameter 0 takes a
// receiver that is not in the argument list.
std::ptrdiff_t arguments_before(const Call& call, const Function& callee) {
    const bool in_class = !callee.parent_class.empty();
    if (is_enter(call) || is_exit(call)) {
        // A generator's own parameters follow the manager: they are the arguments of the call that
        // made it.
        const std::string_view name = callee.name.str();
        const bool of_class = in_class && name.starts_with(callee.parent_class.str()) &&
                              leaf(name) == name.substr(callee.parent_class.str().size() + 1);
        return of_class ? 0 : 1;
    }
    if (call.kind == CallKind::constructor) return -1;
    // autograd.Function.apply(x) creates the ctx that forward(ctx, x) takes.
    if (leaf(call.name.str()) == "apply" && leaf(callee.name.str()) == "forward")
        return call.kind == CallKind::method ? 0 : -1;
    if (call.kind == CallKind::method) return in_class && has_annotation(callee, "staticmethod") ? 1 : 0;
    return 0;
}

}  // namespace

bool is_library_method(std::string_view qualified, std::string_view method) {
    return leaf(qualified) == leaf(method) && python::short_name(qualified) == method;
}

bool is_python(const Function& f) {
    return f.kind == FunctionKind::python ||
           (f.kind == FunctionKind::lambda && f.usr.str().find("<lambda:") != std::string_view::npos);
}

std::string_view leaf(std::string_view qualified) {
    std::size_t begin = qualified.size();
    // Eight characters at a time, because this runs for every name, many times.
    for (std::uint64_t eight = 0; begin >= sizeof eight; begin -= sizeof eight) {
        std::memcpy(&eight, qualified.data() + begin - sizeof eight, sizeof eight);
        const std::uint64_t found = bytes_equal(eight, '.') | bytes_equal(eight, ':');
        if (found == 0) continue;
        if constexpr (std::endian::native == std::endian::little)
            return qualified.substr(begin - static_cast<std::size_t>(std::countl_zero(found)) / 8);
        break;
    }
    while (begin > 0 && qualified[begin - 1] != ':' && qualified[begin - 1] != '.') --begin;
    return qualified.substr(begin);
}

bool is_enter(const Call& call) { return call.name.str().ends_with(".__enter__"); }
bool is_exit(const Call& call) { return call.name.str().ends_with(".__exit__"); }

Passed::Passed(const Call& call, const Function& callee)
    : call_(call),
      callee_(callee),
      python_(is_python(callee)),
      // In C++ a method's receiver is its first argument.
      before_(python_ ? arguments_before(call, callee) : call.kind == CallKind::method) {}

const Operand* Passed::operator[](std::size_t param) const {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(param) + before_;
    if (python_)
        return param < callee_.params.size() ? in_python(callee_.params[param].name, first) : nullptr;
    const auto at = static_cast<std::size_t>(first);
    return at < call_.args.size() ? &call_.args[at] : nullptr;
}

const Operand* Passed::in_python(Symbol name, std::ptrdiff_t first) const {
    static const Symbol unpacked("*");
    std::ptrdiff_t at = 0;
    const Operand* positional = nullptr;
    for (const Operand& argument : call_.args) {
        if (!argument.keyword.empty()) {
            if (argument.keyword == name) return &argument;
            if (argument.keyword == unpacked && !positional) at = first + 1;
            continue;
        }
        if (at++ == first) positional = &argument;
    }
    return positional;
}

const Operand* argument_for(const Call& call, const Function& callee, std::int32_t param) {
    return param < 0 ? nullptr : Passed(call, callee)[static_cast<std::size_t>(param)];
}

const Call* call_of(const Function& f, const Operand& o) {
    const bool known = o.call >= 0 && static_cast<std::size_t>(o.call) < f.calls.size();
    return known ? &f.calls[static_cast<std::size_t>(o.call)] : nullptr;
}

Item item_of(const Call& call) {
    if (call.kind != CallKind::op || call.args.size() != 2 || leaf(call.name.str()) != "__getitem__" ||
        call.args[0].shape == Shape::tensor)
        return {};
    const std::string_view index = call.args[1].constant.str();
    Item item{&call.args[0], 0};
    const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), item.at);
    return error == std::errc{} && end == index.data() + index.size() ? item : Item{};
}

const Operand* item_of_display(const Call& call, std::size_t at) {
    const std::string_view name = call.name.str();
    const bool display = call.kind == CallKind::constructor && (name == "list" || name == "tuple");
    if (!display || at >= call.args.size()) return nullptr;
    const bool unpacks = std::ranges::any_of(call.args, [](const Operand& o) { return !o.keyword.empty(); });
    return unpacks ? nullptr : &call.args[at];
}

Op op_of_layer(Symbol class_name) {
    Call forward;
    forward.name = Symbol(std::string(class_name.str()) + ".forward");
    forward.kind = CallKind::method;
    forward.args.resize(2);
    python::complete(forward, Function());
    return forward.op;
}

}  // namespace mp::lint
