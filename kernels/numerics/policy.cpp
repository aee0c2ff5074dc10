#include "kernels/numerics/policy.hpp"

#include <algorithm>
#include <optional>

#include "embedded_policies.hpp"
#include "kernels/numerics/policy_reader.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp {
namespace {

// A list, with the oldest version of torch that uses it.
struct TorchList {
    std::string_view device;
    TorchVersion since;
    std::string_view suffix;
};

// By device, oldest first.
constexpr TorchList kTorchLists[] = {
    {"cuda", {1, 13}, "-1.13"}, {"cuda", {2, 4}, "-2.4"},  {"cuda", {2, 5}, "-2.5"},
    {"cuda", {2, 12}, "-2.12"}, {"cpu", {1, 13}, "-1.13"}, {"cpu", {2, 4}, "-2.4"},
    {"cpu", {2, 5}, "-2.5"},    {"xpu", {2, 4}, "-2.4"},   {"xpu", {2, 5}, "-2.5"},
    {"xpu", {2, 12}, "-2.12"},  {"mps", {2, 5}, "-2.5"},   {"mps", {2, 11}, "-2.11"},
    {"hpu", {2, 0}, "-2.0"},    {"xla", {2, 0}, "-2.0"}};
// `mp-lint policy dump --from-torch` says what an installed torch registers.
constexpr TorchVersion kNewestCompared{2, 15};
constexpr std::string_view kExtension = ".txt";
constexpr std::string_view kNotAPolicy = "ops.txt";

std::string joined(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

bool is_floating(DType d) { return is_float(d) || d == DType::unknown; }

// The inputs that decide the dtype: those that have, or may have, a floating dtype.
std::vector<DType> floating(std::span<const DType> inputs) {
    std::vector<DType> kept;
    std::ranges::copy_if(inputs, std::back_inserter(kept), is_floating);
    return kept;
}

// Two halves: their dtype when it is the same, lowp when it may be the same.
DType join_halves(DType a, DType b) {
    if (a == b) return a;
    if (a == DType::lowp || b == DType::lowp) return DType::lowp;
    return DType::unknown;  // fp16 and bf16: neither contains the other
}

DType join(DType a, DType b) {
    if (a == b) return a;
    if (a == DType::unknown || b == DType::unknown) return DType::unknown;
    if (a == DType::fp64 || b == DType::fp64) return DType::fp64;
    if (a == DType::fp32 || b == DType::fp32) return DType::fp32;
    if (is_half(a) && is_half(b)) return join_halves(a, b);
    return DType::unknown;  // fp8 is not widened implicitly
}

}  // namespace

std::string_view name_of(Category c) {
    switch (c) {
        case Category::unlisted:
            return "unlisted";
        case Category::lower:
            return "lower";
        case Category::fp32:
            return "fp32";
        case Category::fp32_set_opt_dtype:
            return "fp32_set_opt_dtype";
        case Category::fp32_append_dtype:
            return "fp32_append_dtype";
        case Category::promote:
            return "promote";
        case Category::banned:
            return "banned";
    }
    return "unlisted";
}

std::vector<std::string_view> Policy::built_in_names() {
    std::vector<std::string_view> names;
    for (std::string_view file : embedded_policies_names())
        if (file != kNotAPolicy) names.push_back(file.substr(0, file.size() - kExtension.size()));
    return names;
}

Result<Policy> Policy::built_in(std::string_view name) {
    std::string full(name);
    for (const TorchList& list : kTorchLists)
        if (name == "torch-" + std::string(list.device)) full = std::string(name) + std::string(list.suffix);
    const std::string file = full + std::string(kExtension);
    const std::string_view text = embedded_policies(file);
    if (text.data() == nullptr || file == kNotAPolicy)
        return Error{"no built-in policy is called '" + printable(name) + "'",
                     "the built-in ones are " + joined(built_in_names())};
    return parse(text, file);
}

TorchVersion Policies::newest() { return kNewestCompared; }

Result<Policy> Policy::for_torch(std::string_view device, std::string_view version) {
    const bool any =
        std::ranges::any_of(kTorchLists, [&](const TorchList& list) { return list.device == device; });
    if (!any)
        return Error{"no autocast list is known for device '" + printable(device) + "'",
                     "the devices are cuda, cpu, xpu, mps, hpu and xla; a list of your own can be "
                     "given as a file"};
    const std::string name = "torch-" + std::string(device);
    if (version.empty()) return built_in(name);
    const auto asked = parse_torch_version(version);
    if (!asked)
        return Error{"'" + printable(version) + "' is not a torch version", "write it as 2.5 or 1.13.1"};
    const TorchList* best = nullptr;
    const TorchList* oldest = nullptr;
    for (const TorchList& list : kTorchLists) {
        if (list.device != device) continue;
        if (!oldest) oldest = &list;
        if (list.since <= *asked) best = &list;
    }
    if (!best)
        return Error{"no autocast list of " + printable(device) + " is known for torch " + printable(version),
                     "the oldest one is that of torch " + std::string(oldest->suffix.substr(1))};
    return built_in(name + std::string(best->suffix));
}

void Policy::keep_only(const std::function<bool(Op)>& wanted) {
    std::erase_if(entries_, [&](const Entry& entry) { return !wanted(entry.op); });
}

std::string Policy::text() const {
    std::string out = "family = " +
                      std::string(family_ == Family::hmp        ? "hmp"
                                  : family_ == Family::autocast ? "autocast"
                                                                : "apex") +
                      "\ndtype = " + std::string(mp::name_of(low_)) + "\n";
    if (!device_.empty()) out += "device = " + device_ + "\n";
    for (int c = static_cast<int>(Category::lower); c <= static_cast<int>(Category::banned); ++c) {
        bool first = true;
        for (const Entry& entry : entries_) {
            if (static_cast<int>(entry.category) != c) continue;
            if (first) out += "\n[" + std::string(mp::name_of(entry.category)) + "]\n";
            first = false;
            out += std::string(entry.op.name()) + "\n";
        }
    }
    return out;
}

const Policy::Entry* Policy::find(Op op) const {
    if (!op.known()) return nullptr;
    const auto name = [](const Entry& e) { return e.op.name(); };
    const auto it = std::ranges::lower_bound(entries_, op.name(), {}, name);
    return it != entries_.end() && it->op == op ? &*it : nullptr;
}

Category Policy::category(Op op) const {
    const Entry* entry = find(op);
    return entry ? entry->category : Category::unlisted;
}

DType Policy::dtype_of(Op op, std::span<const DType> inputs, bool in_place, DType low) const {
    if (low == DType::unknown) low = low_;
    const Category listed = category(op);
    // The result of an in-place op must fit the storage of its first input, so nothing is widened.
    const bool stays = in_place && (listed == Category::promote || family_ == Family::autocast);
    if (listed == Category::unlisted || stays) return first(inputs, in_place);
    return listed_dtype(listed, inputs, low);
}

DType Policy::listed_dtype(Category listed, std::span<const DType> inputs, DType low) const {
    if (listed == Category::banned) return DType::unknown;
    const std::vector<DType> deciding = floating(inputs);
    if (deciding.empty() && !inputs.empty()) return inputs.front();
    if (listed == Category::promote) return widest(deciding, low);
    // Autocast does not cast fp64. An op with fp64 inputs only stays fp64; with other inputs too, it fails
    // or promotes.
    if (family_ == Family::autocast && std::ranges::find(deciding, DType::fp64) != deciding.end())
        return first(deciding, false);
    return listed == Category::lower ? low : DType::fp32;
}

DType Policy::widest(std::span<const DType> inputs, DType low) const {
    if (inputs.empty()) return DType::unknown;
    DType result = inputs.front();
    for (const DType d : inputs) {
        if (family_ == Family::autocast && is_low_precision(d) && d != low && d != DType::lowp)
            return DType::unknown;
        result = join(result, d);
    }
    // Autocast does not cast fp64 but chooses among the other inputs, so a mixture stays mixed.
    const bool mixed = std::ranges::any_of(inputs, [](DType d) { return d != DType::fp64; });
    if (family_ == Family::autocast && result == DType::fp64 && mixed) return DType::unknown;
    return result;
}

DType Policy::first(std::span<const DType> inputs, bool in_place) const {
    if (inputs.empty()) return DType::unknown;
    if (in_place) return inputs.front();
    const std::vector<DType> deciding = floating(inputs);
    if (deciding.empty()) return inputs.front();
    const bool mixed = std::ranges::any_of(deciding, [&](DType d) { return d != deciding.front(); });
    if (mixed && family_ == Family::autocast) return DType::unknown;
    return deciding.front();
}

}  // namespace mp
