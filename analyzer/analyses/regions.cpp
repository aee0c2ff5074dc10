#include "analyzer/analyses/regions.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "analyzer/analyses/autograd_classes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {
namespace {

bool calls_any(const Function& f, std::span<const std::string_view> names) {
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        // A constructor is named by its class or by class and constructor.
        return any_of(leaf(c.name.str()), names) || any_of(c.name.str(), names);
    });
}

}  // namespace

const Policy* policy_of(const RuleContext& context, const Context& region) {
    const std::string_view device = region.device.str();
    if (!device.empty()) return context.policy(device);
    // The region has no device: take the one the user named, else CUDA, as the older interface does.
    return context.policy(context.device.empty() ? "cuda" : context.device);
}

Category category_in(const Policy& policy, Op op) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMadeOf{
        {{"cross_entropy", "log_softmax"},
         {"cross_entropy_loss", "log_softmax"},
         {"softmin", "softmax"},
         {"normalize", "linalg_vector_norm"}}};
    const Category own = policy.category(op);
    const auto* found =
        std::ranges::find(kMadeOf, op.name(), &std::pair<std::string_view, std::string_view>::first);
    return own != Category::unlisted || found == kMadeOf.end() ? own : policy.category(Op(found->second));
}

namespace {

// Whether torch.einsum makes matrix products of it: some index of two operands is summed over.
bool contracts(std::string_view equation) {
    const std::size_t arrow = equation.find("->");
    const std::string_view inputs = equation.substr(0, arrow);
    const std::string_view output = arrow == equation.npos ? std::string_view() : equation.substr(arrow + 2);
    for (char index = 'A'; index <= 'z'; ++index) {
        if (std::isalpha(static_cast<unsigned char>(index)) == 0 || output.find(index) != output.npos)
            continue;
        const std::size_t first = inputs.find(index);
        const std::size_t comma = first == inputs.npos ? inputs.npos : inputs.find(',', first);
        if (comma != inputs.npos && inputs.find(index, comma) != inputs.npos) return true;
    }
    return false;
}

}  // namespace

Category category_of(const Policy& policy, const Call& call) {
    const Category own = category_in(policy, call.op);
    if (own != Category::lower || call.op.name() != "einsum" || call.args.empty()) return own;
    const std::string_view equation = call.args.front().constant.str();
    return equation.empty() || contracts(unquoted(equation)) ? own : Category::promote;
}

bool casts_to_fp32(Category category) {
    return category == Category::fp32 || category == Category::fp32_set_opt_dtype ||
           category == Category::fp32_append_dtype;
}

bool is_opened_by_a_trial(const RuleContext& context, const Context& region) {
    if (!region.opened.known()) return false;
    const CodeKind kind = code_kind(context, region.opened.file);
    return kind == CodeKind::test || kind == CodeKind::benchmark;
}

std::string describe(const Context& region) {
    std::string text;
    if (region.dtype != DType::unknown) text += std::string(label(region.dtype)) + " ";
    if (!region.device.empty()) text += std::string(region.device.str()) + " ";
    return text + "autocast";
}

std::vector<Note> notes_of(const Context& region) {
    std::vector<Note> notes;
    const bool chain_opens = !region.chain.empty() && region.chain.front().span == region.opened;
    if (region.opened.known() && !chain_opens) {
        std::string text = "the region opens here";
        if (!region.opener.empty()) text += ", by " + std::string(region.opener.str());
        if (!region.condition.empty()) text += ", when " + std::string(region.condition.str());
        notes.push_back({region.opened, std::move(text)});
    }
    notes.insert(notes.end(), region.chain.begin(), region.chain.end());
    for (Note& note : notes) note.of_region = true;
    return notes;
}

const Context* lowering_region(const RuleContext& context, const Function& f, const Call& product) {
    const Context* region = is_python(f) ? context.program.enabled_context(f, product) : nullptr;
    const Policy* policy = region ? policy_of(context, *region) : nullptr;
    const bool lowers = policy && category_of(*policy, product) == Category::lower;
    return lowers && is_low_precision(region->dtype) ? region : nullptr;
}

bool reads_autocast_state(const Function& f) {
    constexpr std::array<std::string_view, 7> kReads{"is_autocast_enabled",      "get_autocast_dtype",
                                                     "get_autocast_gpu_dtype",   "get_autocast_cpu_dtype",
                                                     "at::autocast::is_enabled", "is_autocast_cpu_enabled",
                                                     "is_autocast_xla_enabled"};
    return calls_any(f, kReads);
}

bool handles_autocast(const Function& f) {
    return reads_autocast_state(f) || has_decorator(f, "custom_fwd") || has_decorator(f, "custom_bwd");
}

bool is_inference(const Function& f) {
    constexpr std::array<std::string_view, 4> kGuards{"NoGradGuard", "InferenceMode", "no_grad",
                                                      "inference_mode"};
    return calls_any(f, kGuards);
}

}  // namespace mp::lint
