#include "analyzer/analyses/autocast_calls.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/autocast_api.hpp"

namespace mp::lint {
namespace {

struct Spelling {
    std::string_view name;
    std::string_view device;  // empty: the first argument
};

constexpr std::array<Spelling, 13> kSpellings{{
    {"torch.autocast", ""},
    {"torch.amp.autocast", ""},
    {"torch.amp.autocast_mode.autocast", ""},
    {"torch.cuda.amp.autocast", "cuda"},
    {"torch.cuda.amp.autocast_mode.autocast", "cuda"},
    {"torch.cpu.amp.autocast", "cpu"},
    {"torch.cpu.amp.autocast_mode.autocast", "cpu"},
    {"torch.xpu.amp.autocast", "xpu"},
    {"torch.hpu.amp.autocast", "hpu"},
    {"torch_xla.amp.autocast", "xla"},
    {"torch_xla.amp.autocast_mode.autocast", "xla"},
    {"torch.npu.amp.autocast", "npu"},
    {"torch_npu.npu.amp.autocast", "npu"},
}};

// The same names as symbols, which compare without reading them.
const std::vector<Symbol>& symbols() {
    static const std::vector<Symbol> names = [] {
        std::vector<Symbol> out;
        for (const Spelling& s : kSpellings) out.emplace_back(s.name);
        return out;
    }();
    return names;
}

// "cuda" of "cuda:0".
std::string_view without_index(std::string_view device) { return device.substr(0, device.find(':')); }

}  // namespace

std::optional<AutocastCall> autocast_call(const Call& call) {
    if (call.kind == CallKind::method || call.kind == CallKind::destructor) return std::nullopt;
    const auto at = std::ranges::find(symbols(), call.name);
    if (at == symbols().end()) return std::nullopt;
    const Spelling* found = &kSpellings[static_cast<std::size_t>(at - symbols().begin())];
    AutocastCall is;
    is.device = found->device;
    is.device_in_name = !found->device.empty();
    if (found->device == "xla") {
        is.enabled = argument(call, 1, "enabled");
        is.dtype = argument(call, 2, "dtype");
    } else if (is.device_in_name) {
        is.enabled = argument(call, 0, "enabled");
        is.dtype = argument(call, 1, "dtype");
    } else {
        if (const Operand* device = argument(call, 0, "device_type"))
            is.device = without_index(spelled(*device));
        is.dtype = argument(call, 1, "dtype");
        is.enabled = argument(call, 2, "enabled");
    }
    if (is.dtype && is.dtype->constant.str() == "None") is.dtype = nullptr;
    return is;
}

DType region_dtype(const AutocastCall& is) {
    if (is.dtype) return is.dtype->dtype;
    const auto* device = std::ranges::find(kDeviceNames, is.device);
    if (is.device.empty() || device == kDeviceNames.end()) return DType::unknown;
    const DType dtype = default_dtype(static_cast<Device>(device - kDeviceNames.begin()));
    return dtype == DType::lowp ? DType::unknown : dtype;
}

bool is_disabled(const AutocastCall& is) { return is_false(is.enabled); }

const Context* written_region(const Program& program, const Function& f, const Call& call) {
    for (const Context& context : program.contexts(f, call))
        if (context.enabled == Switch::on && !context.framework && !context.process_wide) return &context;
    return nullptr;
}

std::vector<std::vector<std::size_t>> calls_by_block(const Function& f) {
    std::vector<std::vector<std::size_t>> blocks(std::max<std::size_t>(f.flow.size(), 1));
    for (std::size_t i = 0; i < f.calls.size(); ++i)
        if (f.calls[i].block < blocks.size()) blocks[f.calls[i].block].push_back(i);
    return blocks;
}

std::vector<std::size_t> calls_inside(const Function& f, std::size_t enter) {
    const auto index = static_cast<std::int32_t>(enter);
    return calls_until(f, enter, [&](const Call& call) { return is_exit_of(call, index); }).calls;
}

bool is_exit_of(const Call& call, std::int32_t enter) {
    return call.name.str().ends_with(".__exit__") && !call.args.empty() && call.args[0].call == enter;
}

bool clears_autocast_cache(const Call& call) {
    constexpr std::array<std::string_view, 2> kClear{"torch.clear_autocast_cache",
                                                     "at::autocast::clear_cache"};
    return any_of(call.name.str(), kClear);
}

bool is_uncached(const Function& f, const Context& region) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        if (call.span != region.opened) return false;
        // `with ctx:` opens the region behind the call that made it
        const bool enters = leaf(call.name.str()) == "__enter__" && !call.args.empty();
        const Call* made = enters ? call_of(f, call.args[0]) : &call;
        return made && autocast_call(*made) && is_false(keyword_argument(*made, "cache_enabled"));
    });
}

std::int32_t enter_of(const Function& f, const Call& constructor) {
    const auto index = static_cast<std::int32_t>(&constructor - f.calls.data());
    const auto found = std::ranges::find_if(f.calls, [&](const Call& call) {
        return call.name.str().ends_with(".__enter__") && !call.args.empty() && call.args[0].call == index;
    });
    return found == f.calls.end() ? kNone : static_cast<std::int32_t>(found - f.calls.begin());
}

bool is_guarded(const Function& f, std::uint32_t block,
                bool (*asks)(const Function&, const Edge&, std::uint32_t)) {
    if (f.flow.empty()) return false;
    std::vector<char> reached(f.flow.size());
    std::vector<std::uint32_t> pending{0};
    reached[0] = 1;
    while (!pending.empty()) {
        const std::uint32_t from = pending.back();
        pending.pop_back();
        if (from == block) return false;
        for (const Edge& edge : f.flow[from].to) {
            if (reached[edge.to] || asks(f, edge, from)) continue;
            reached[edge.to] = 1;
            pending.push_back(edge.to);
        }
    }
    return true;
}

}  // namespace mp::lint
