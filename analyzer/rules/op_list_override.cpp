// MP109 op-list-override
//
// What   A custom op list puts an op that needs fp32 on the low-precision list: HMP and HPU list
//        files, Gaudi configurations, apex's register_half_function, Paddle's custom_white_list,
//        TensorFlow's ALLOWLIST_ADD.
// Why    Nothing checks such lists. softmax, div or a loss in bf16 trains worse and fails nowhere.
// Fix    Leave the op off the list; the vendor's default keeps it in fp32.
// Silent Ops that the vendor's own list lowers. An op on both lists, and default fp32 ops that a
//        custom list leaves out, are notes.
// Tests  testdata/lint/MP109.md, tests/analyzer/rules/op_list_override_test.cpp

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// Ops that need range or a long sum, although no vendor's list may name them.
bool needs_fp32(Op op) {
    // A saturated sigmoid is 1, and log(1 - p) of it is -inf.
    constexpr std::array<std::string_view, 3> kOthers{"erfinv", "scatter_add", "sigmoid"};
    const Traits traits = traits_of(op);
    return traits.has(Trait::needs_fp32) || traits.has(Trait::fp32_inside) || any_of(op.name(), kOthers);
}

bool is_wide_list(Category category) { return casts_to_fp32(category) || category == Category::banned; }

struct Entry {
    const Function* function = nullptr;
    SourceSpan at;
    std::string_view name;
};

class Lists {
public:
    Lists(const RuleContext& context, Findings& out) : context_(context), out_(out) {
        if (Result<Policy> own = Policy::built_in("hmp")) hmp_ = *std::move(own);
        vendor_ = reads_hpu_lists() ? context.policy("hpu") : &hmp_;
    }

    void run() {
        for (const Function* f : context_.program.functions()) {
            if (f->kind != FunctionKind::python) continue;
            for (const Setting& setting : f->settings) add(*f, setting);
        }
        for_each_call(context_.program, may_list, [&](const Function& f, const Call& call) {
            if (f.kind == FunctionKind::python) add(f, call);
        });
        for (const Entry& entry : low_) check_vendor(entry);
        for (const Entry& entry : others_) check_low(entry, false);
        check_both();
        check_missing();
    }

private:
    bool reads_hpu_lists() const {
        return std::ranges::any_of(context_.program.functions(), [](const Function* f) {
            return std::ranges::any_of(f->settings, [](const Setting& setting) {
                return mentions(setting.key.str(), "PT_HPU_AUTOCAST_");
            });
        });
    }

    void add(const Function& f, const Setting& setting) {
        const std::string_view key = setting.key.str();
        const Entry entry{&f, setting.span, spelled(setting.value)};
        if (key == "bf16_ops")
            low_.push_back(entry);
        else if (key == "fp32_ops")
            wide_.push_back(entry);
        else if (mentions(key, "AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD"))
            add_each(f, setting);
    }

    // "Softmax,Exp"
    void add_each(const Function& f, const Setting& setting) {
        std::string_view rest = spelled(setting.value);
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            others_.push_back({&f, setting.span, rest.substr(0, comma)});
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }

    static bool is_apex(std::string_view name) {
        return name == "apex.amp.register_half_function" || name == "apex.amp.half_function";
    }

    static bool is_paddle(std::string_view name) {
        return is_within(name, "paddle") && leaf(name) == "auto_cast";
    }

    static bool may_list(std::string_view name) { return is_apex(name) || is_paddle(name); }

    void add(const Function& f, const Call& call) {
        if (is_apex(call.name.str())) {
            if (const Operand* op = argument(call, 1, "name"))
                if (!op->constant.empty()) others_.push_back({&f, call.span, spelled(*op)});
            return;
        }
        const Operand* list = keyword_argument(call, "custom_white_list");
        const Call* display = list ? call_of(f, *list) : nullptr;
        if (!display) return;
        for (const Operand& op : display->args)
            if (!op.constant.empty()) others_.push_back({&f, call.span, spelled(op)});
    }

    static Op op_of(const Entry& entry) {
        std::string lower(entry.name);
        for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return op_from_name(lower);
    }

    void check_vendor(const Entry& entry) {
        if (vendor_ && vendor_->category(op_of(entry)) == Category::lower) return;
        check_low(entry, vendor_ && is_wide_list(vendor_->category(op_of(entry))));
    }

    void check_low(const Entry& entry, bool vendor_keeps) {
        const Op op = op_of(entry);
        if (!op.known()) return;
        const bool torch_keeps = is_wide_list(context_.policy("cuda")->category(op));
        if (!vendor_keeps && !torch_keeps && !needs_fp32(op)) return;
        report(entry, Severity::warning,
               std::string(op.name()) + " is put on the low-precision list, " +
                   (vendor_keeps  ? "and the default list keeps it in fp32"
                    : torch_keeps ? "and autocast keeps it in fp32 on CUDA"
                                  : "and needs the range or the digits of fp32"),
               "leave " + std::string(op.name()) + " off the list, or put it on the fp32 list");
    }

    void check_both() {
        for (const Entry& entry : wide_) {
            const auto low = std::ranges::find(low_, entry.name, &Entry::name);
            if (low == low_.end() || low->function->span.file == entry.at.file) continue;
            report(entry, Severity::note,
                   std::string(entry.name) + " is on both lists: the low-precision one wins",
                   "keep it on one list", {{low->at, "on the low-precision list here"}});
        }
    }

    // A custom fp32 list replaces the default one: one note for what it leaves out.
    void check_missing() {
        if (!vendor_) return;
        std::map<Symbol, std::vector<Entry>> by_file;
        for (const Entry& entry : wide_) by_file[entry.at.file].push_back(entry);
        for (const auto& [file, entries] : by_file) {
            std::string missing;
            for (const Policy::Entry& entry : vendor_->entries())
                if (entry.category == Category::fp32 && !names(entries, entry.op))
                    missing += (missing.empty() ? "" : ", ") + std::string(entry.op.name());
            if (missing.empty()) continue;
            report(entries.front(), Severity::note,
                   "this fp32 list replaces the default one and leaves out " + missing,
                   "add them, or check that they run on fp32 inputs");
        }
    }

    static bool names(const std::vector<Entry>& entries, Op op) {
        return std::ranges::any_of(entries, [&](const Entry& entry) { return op_of(entry) == op; });
    }

    void report(const Entry& entry, Severity severity, std::string message, std::string fix,
                std::vector<Note> notes = {}) {
        emit(context_, *entry.function,
             {.rule = "MP109",
              .severity = severity,
              .span = entry.at,
              .message = std::move(message),
              .fix = std::move(fix),
              .notes = std::move(notes),
              .function = {}},
             out_);
    }

    const RuleContext& context_;
    Findings& out_;
    Policy hmp_;  // HMP's own, whatever lists the configuration names
    const Policy* vendor_ = nullptr;
    std::vector<Entry> low_, wide_, others_;  // others: lists of other frameworks than Habana's
};

void check(const RuleContext& context, Findings& out) { Lists(context, out).run(); }

// Paddle, and what TensorFlow reads from the environment; the engines bring apex and HMP.
constexpr std::array<std::string_view, 2> kOwnTriggers{".amp", "ALLOWLIST_ADD"};

}  // namespace

extern constinit const Rule kOpListOverride{.id = "MP109",
                                            .name = "op-list-override",
                                            .severity = Severity::warning,
                                            .on_by_default = true,
                                            .confirmed_by = "MPT060",
                                            .triggers = {kEngines, kConfigurationFiles, kOwnTriggers},
                                            .check = check};

}  // namespace mp::lint
