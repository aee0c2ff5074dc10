#include "analyzer/analyses/half_adapters.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

class Adapters {
public:
    explicit Adapters(const RuleContext& context) : context_(context), modules_(context) {}

    std::vector<HalfAdapter> found() && { return std::move(found_); }

    void look_at(const Function& f, const Call& call) {
        if (!is_python(f) || call.kind != CallKind::method || call.args.empty()) return;
        if (code_kind(context_, f.span.file) == CodeKind::test) return;
        if (leaf(call.name.str()) == "add_adapter")
            added(f, call);
        else if (is_low_precision(call.result.dtype) && is_of_adapter(f, call))
            found_.push_back({&f,
                              call.span,
                              "adapter layers are cast to " + named(call.result.dtype),
                              call.result.dtype,
                              {}});
    }

private:
    // unet.to(device, dtype=weight_dtype); unet.add_adapter(...): the adapter takes the dtype of the weights.
    void added(const Function& f, const Call& adds) {
        const Call* cast = nullptr;
        for (const Call& call : f.calls) {
            if (&call == &adds) break;
            const bool same = !call.args.empty() && same_value(call.args.front(), adds.args.front());
            if (same && call.kind == CallKind::method && is_cast(call)) cast = &call;
        }
        if (!cast) return added_to_loaded(f, adds);
        if (is_wide(cast->result.dtype) || !trains(f)) return;
        if (const Call* upcast = upcast_after(f, adds)) return added_in_bf16(f, adds, *cast, *upcast);
        const DType dtype = cast->result.dtype;
        const bool known = is_low_precision(dtype);
        found_.push_back(
            {&f,
             adds.span,
             "the adapter is made in " +
                 (known ? named(dtype) : std::string("the dtype that a setting gives the module")),
             known ? dtype : DType::lowp,
             {{cast->span, "the module is cast here"}}});
    }

    // if args.mixed_precision == "fp16": cast_training_params(unet), where "bf16" casts the module too
    void added_in_bf16(const Function& f, const Call& adds, const Call& cast, const Call& upcast) {
        const auto may_be_bf16 = [](const Operand& o) {
            const auto chosen = dtype_from_name(leaf(o.alternative.str()));
            return chosen == DType::bf16 || chosen == DType::lowp;
        };
        const std::string_view option = asked_for_fp16(f, upcast.block);
        if (option.empty() || std::ranges::none_of(cast.args, may_be_bf16)) return;
        const std::string wanted = std::string(leaf(option)) + "=bf16";
        found_.push_back({&f,
                          adds.span,
                          "the adapter is made in bf16 where a setting casts the module to it",
                          DType::bf16,
                          {{cast.span, "the module is cast here"},
                           {upcast.span, "what is trained is cast to fp32 for fp16 alone"}},
                          !context_.project.is_given || !context_.project.is_given(wanted)});
    }

    // "args.mixed_precision" where control comes to the block only with args.mixed_precision == "fp16".
    static std::string_view asked_for_fp16(const Function& f, std::uint32_t at) {
        constexpr std::string_view kEquals = " == \"fp16\"";
        for (const Block& block : f.flow)
            for (const Edge& edge : block.to) {
                const std::string_view condition = edge.condition.str();
                if (edge.when && condition.ends_with(kEquals) && runs_only_if(f, at, edge.condition, true))
                    return condition.substr(0, condition.size() - kEquals.size());
            }
        return {};
    }

    // def adapt(model): model.add_adapter(LoraConfig(...)), where what is passed was loaded or cast in half.
    void added_to_loaded(const Function& f, const Call& adds) {
        const Call* settings = adds.args.size() == 2 ? call_of(f, adds.args[1]) : nullptr;
        if (!settings || !is_within(settings->name.str(), "peft")) return;
        ModuleDType found = modules_.of_module(f, adds.args.front(), adds);
        if (!is_low_precision(found.dtype) || !is_run_in_training(context_.program, f)) return;
        if (upcast_after(f, adds) || callers_upcast(f, kFarthest)) return;
        found_.push_back({&f, adds.span, "the adapter is made in " + named(found.dtype), found.dtype,
                          std::move(found.chain)});
    }

    static constexpr int kFarthest = 4;  // callers between the adapter and the training

    bool callers_upcast(const Function& f, int left) const {
        return left > 0 && std::ranges::any_of(context_.program.callers(f.usr), [&](const Call* call) {
                   const Function* caller = context_.program.owner(*call);
                   return caller && caller != &f &&
                          (std::ranges::any_of(caller->calls, upcasts) || callers_upcast(*caller, left - 1));
               });
    }

    static bool is_cast(const Call& call) {
        if (is_float(call.result.dtype)) return true;
        return leaf(call.name.str()) == "to" && std::ranges::any_of(call.args, [](const Operand& o) {
                   return o.shape == Shape::dtype || o.keyword.str() == "dtype";
               });
    }

    static bool trains(const Function& f) {
        return std::ranges::any_of(f.calls,
                                   [](const Call& call) { return leaf(call.name.str()) == "backward"; });
    }

    // cast_training_params(unet); param.data = param.to(torch.float32)
    static bool upcasts(const Call& call) {
        if (leaf(call.name.str()).find("cast_training_params") != std::string_view::npos) return true;
        return is_wide(call.result.dtype) && call.result.name.str().ends_with(".data");
    }

    // ... or unet.float(), before the training
    static const Call* upcast_after(const Function& f, const Call& adds) {
        const Call* const end = f.calls.data() + f.calls.size();
        const Call* const training =
            std::find_if(&adds, end, [](const Call& call) { return leaf(call.name.str()) == "backward"; });
        const Call* const found = std::find_if(&adds, training, [&](const Call& call) {
            return upcasts(call) || (is_wide(call.result.dtype) && call.kind == CallKind::method &&
                                     !call.args.empty() && same_value(call.args.front(), adds.args.front()));
        });
        return found == training ? nullptr : found;
    }

    // Behind `if isinstance(module, LoraLayer)`, on the side where it holds.
    static bool is_of_adapter(const Function& f, const Call& cast) {
        constexpr std::array<std::string_view, 2> kLayers{"BaseTunerLayer", "LoraLayer"};
        return std::ranges::any_of(f.calls, [&](const Call& test) {
            if (test.name.str() != "isinstance" || test.args.size() != 2 || test.block >= f.flow.size())
                return false;
            if (!same_value(test.args[0], cast.args.front())) return false;
            if (!any_of(leaf(test.args[1].constant.str()), kLayers)) return false;
            bool holds = false, fails = false;
            for (const Edge& edge : f.flow[test.block].to)
                if (!edge.raises) (edge.when ? holds : fails) |= reaches(f, edge.to, cast.block, test.block);
            return holds && !fails;
        });
    }

    static std::string named(DType dtype) { return std::string(label(dtype)); }

    const RuleContext& context_;
    ModuleDTypes modules_;
    std::vector<HalfAdapter> found_;
};

}  // namespace

std::vector<HalfAdapter> half_adapters(const RuleContext& context) {
    constexpr std::array<std::string_view, 4> kMayMatter{"add_adapter", "to", "half", "bfloat16"};
    Adapters adapters(context);
    for_each_call(context.program, last_part_in(kMayMatter),
                  [&](const Function& f, const Call& call) { adapters.look_at(f, call); });
    return std::move(adapters).found();
}

}  // namespace mp::lint
