#include "analyzer/analyses/sum_variants.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostFunctions = 64;  // from a helper up to what calls it

enum class Width : std::uint8_t { half, wide };

struct DTypeWord {
    std::string_view text;
    Width width;
};
// Longer words first: "bf16" holds "f16".
constexpr std::array<DTypeWord, 9> kWords{{{"bfloat16", Width::half},
                                           {"float16", Width::half},
                                           {"float", Width::wide},
                                           {"bf16", Width::half},
                                           {"fp16", Width::half},
                                           {"half", Width::half},
                                           {"fp32", Width::wide},
                                           {"f16", Width::half},
                                           {"f32", Width::wide}}};

// "dot_f16x8_f32_kernel": "dot_?x8_?_kernel", half and wide.
struct SplitName {
    std::string pattern;
    std::vector<Width> widths;
};

SplitName split(std::string_view name) {
    SplitName out;
    while (!name.empty()) {
        const auto word =
            std::ranges::find_if(kWords, [&](const DTypeWord& w) { return name.starts_with(w.text); });
        if (word == kWords.end()) {
            out.pattern += name.front();
            name.remove_prefix(1);
            continue;
        }
        out.pattern += '?';
        out.widths.push_back(word->width);
        name.remove_prefix(word->text.size());
    }
    return out;
}

// Half in one word or more where the other is wide, and nowhere the other way round.
template <typename Values, typename IsHalf, typename IsWide>
bool is_narrower(const Values& a, const Values& b, IsHalf is_half, IsWide is_wide_value) {
    bool narrower = false;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
        if (is_wide_value(a[i]) && is_half(b[i])) return false;
        narrower = narrower || (is_half(a[i]) && is_wide_value(b[i]));
    }
    return narrower && a.size() == b.size();
}

bool has_same_params(const Function& a, const Function& b) {
    return std::ranges::equal(a.params, b.params, [](const Parameter& x, const Parameter& y) {
        return x.dtype == y.dtype && x.shape == y.shape;
    });
}

bool takes_half(const Parameter& p) { return p.shape == Shape::pointer && is_low_precision(p.dtype); }

// reduce<half, half> and reduce<half, float>: both read half.
bool is_wide_instantiation(const Function& f, const Function& other) {
    const bool same_input = std::ranges::any_of(f.params, [&](const Parameter& p) {
        const auto index = static_cast<std::size_t>(&p - f.params.data());
        return takes_half(p) && index < other.params.size() && takes_half(other.params[index]);
    });
    return same_input && is_narrower(
                             f.template_args, other.template_args,
                             [](const TemplateArgument& a) { return is_low_precision(a.dtype); },
                             [](const TemplateArgument& a) { return is_wide(a.dtype); });
}

bool is_wide_namesake(const Function& f, const Function& other) {
    return has_same_params(f, other) &&
           is_narrower(
               split(leaf(f.name.str())).widths, split(leaf(other.name.str())).widths,
               [](Width w) { return w == Width::half; }, [](Width w) { return w == Width::wide; });
}

}  // namespace

bool adds_in_half(const Accumulation& a) {
    const bool adds =
        a.op == AccumulateOp::add || a.op == AccumulateOp::fma || a.op == AccumulateOp::subtract;
    return adds && is_low_precision(a.dtype);
}

class SumVariants {
public:
    explicit SumVariants(const Program& program) : program_(program) {
        for (const Function* f : program.functions())
            if (!is_python(*f)) by_pattern_[split(leaf(f->name.str())).pattern].push_back(f);
    }

    const Function* wide_variant(const Function& f) const {
        const auto named = by_pattern_.find(split(leaf(f.name.str())).pattern);
        if (named == by_pattern_.end()) return nullptr;
        const auto found = std::ranges::find_if(named->second, [&](const Function* other) {
            if (std::ranges::any_of(other->accumulations, adds_in_half)) return false;
            return f.name == other->name ? is_wide_instantiation(f, *other) : is_wide_namesake(f, *other);
        });
        return found == named->second.end() ? nullptr : *found;
    }

    // Upwards from a helper, until each way has come to a variant.
    const Function* wide_variant_of_callers(const Function& f) const {
        std::vector<const Function*> open{&f};
        const Function* wide = nullptr;
        for (std::size_t next = 0; next < open.size(); ++next) {
            if (const Function* found = wide_variant(*open[next])) {
                wide = found;
                continue;
            }
            const auto callers = program_.callers(written_in(*open[next]));
            if (callers.empty() || open.size() > kMostFunctions) return nullptr;
            for (const Call* call : callers) {
                const Function* caller = program_.owner(*call);
                if (!caller) return nullptr;
                if (std::ranges::find(open, caller) == open.end()) open.push_back(caller);
            }
        }
        return wide;
    }

private:
    const Program& program_;
    std::unordered_map<std::string, std::vector<const Function*>> by_pattern_;
};

const Function* wide_sum_variant(const RuleContext& context, const Function& f) {
    if (is_python(f)) return nullptr;
    const SumVariants& variants =
        context.sum_variants.get([&] { return std::make_shared<const SumVariants>(context.program); });
    return variants.wide_variant_of_callers(f);
}

}  // namespace mp::lint
