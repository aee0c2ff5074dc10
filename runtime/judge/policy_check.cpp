#include "runtime/judge/policy_check.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/policy_text.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
namespace {

using Kind = DeclaredPolicy::Kind;
using Counts = std::map<DType, std::uint64_t>;

int precision_of(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? format->mantissa_bits : -1;
}

// Whether `found` has fewer bits than the policy requires. fp16 in place of bf16 has more bits but less range.
bool is_below(DType found, DType wanted) {
    if (!format_of(found) || !format_of(wanted) || found == wanted) return false;
    return precision_of(found) < precision_of(wanted) || (is_half(found) && is_half(wanted));
}

bool reduces(const CollectiveRecord& r) {
    return !r.reduction.empty() || r.op.starts_with("all_reduce") || r.op.starts_with("reduce");
}

std::string text_of(const RunModel& model, const Counts& counts, std::string_view unit) {
    std::string out;
    for (const auto& [dtype, n] : counts)
        out += (out.empty() ? "" : ", ") + std::string(name_of(dtype)) + " " + counted(n, unit);
    const std::uint64_t ranks = ranks_of(model);  // each of them may hold the same elements
    return out.empty() || ranks < 2 ? out : out + ", summed over " + counted(ranks, "rank");
}

// --- checked sentences ---

// The answer is yes if all of `counts` are in fp32 or wider. Nothing counted: not observed.
void answer(Case& c, std::string sentence, const Counts& counts, std::string_view unit) {
    Check check;
    check.sentence = std::move(sentence);
    check.evidence = text_of(c.model, counts, unit);
    if (!counts.empty()) {
        const bool all = std::ranges::all_of(
            counts, [](const auto& e) { return e.first == DType::fp32 || e.first == DType::fp64; });
        check.answer = all ? Check::Answer::yes : Check::Answer::no;
    }
    c.out.checks.push_back(std::move(check));
}

Counts elements_of(const RunModel& model, TensorRole role) {
    Counts out;
    for (const PlaceTotal& p : model.places) {
        if (p.place.role == role && is_float(p.place.dtype)) out[p.place.dtype] += p.place.elements;
    }
    return out;
}

// Optimizer state is fp32 only if no part of it is in 8 bits, whether integers or floats. Step counters are omitted.
Counts state_of(const RunModel& model) {
    Counts out;
    for (const PlaceTotal& p : model.places) {
        const DTypePlace& place = p.place;
        if (place.role == TensorRole::optimizer_state && place.elements > place.tensors)
            out[place.dtype] += place.elements;
    }
    return out;
}

// A state that is stored in fp32, but was rounded to fewer bits on its way, is not.
void answer_state(Case& c) {
    answer(c, "optimizer state is fp32", state_of(c.model), "element");
    Check& check = c.out.checks.back();
    const auto flushed = flushed_state(c.model);
    if (check.answer != Check::Answer::yes || !flushed) return;
    check.answer = Check::Answer::no;
    check.evidence += "; " + shown(flushed->state->name) + " passes through " + flushed->format;
}

Counts reductions_of(const RunModel& model) {
    Counts out;
    for (const CollectiveTotal& t : model.collectives) {
        if (reduces(t.total) && is_float(t.total.dtype)) out[t.total.dtype] += t.total.calls;
    }
    return out;
}

Counts calls_of(const RunModel& model, const std::function<bool(const OpRecord&)>& chosen) {
    Counts out;
    for (const OpSum& s : model.ops) {
        if (s.total.phase == Phase::forward && is_float(s.total.dtype) && chosen(s.total))
            out[s.total.dtype] += s.total.calls;
    }
    return out;
}

// Answers for the matrix products of programs without torch.
void answer_split_sums(Case& c) {
    std::uint64_t calls = 0, split = 0, loose = 0;
    for (const OpSum& s : c.model.ops) {
        if (!is_low_precision(s.total.dtype)) continue;
        calls += s.total.calls;
        split += s.total.split_sums;
    }
    for (const RunModel::Note& note : c.model.notes)
        if (note.text == kLooseSums) loose += note.count;
    if (!is_raw(c.model) || calls == 0) return;
    Check check;
    check.sentence = "parts of a product's sums are added in fp32";
    const std::string of = " of " + counted(calls, "call");
    if (split > 0) {
        check.answer = Check::Answer::no;
        check.evidence = std::to_string(split) + of + " add them in 16 bits";
    } else if (loose > 0) {
        check.evidence = std::to_string(loose) + of + " leave it to cuBLAS";
    } else {
        check.answer = Check::Answer::yes;
        check.evidence = counted(calls, "call");
    }
    c.out.checks.push_back(std::move(check));
}

void answer_sentences(Case& c) {
    const RunModel& m = c.model;
    answer(c, "parameters are stored in fp32", elements_of(m, TensorRole::parameter), "element");
    answer(c, "buffers are stored in fp32", elements_of(m, TensorRole::buffer), "element");
    answer(c, "gradients are stored in fp32", elements_of(m, TensorRole::gradient), "element");
    answer_state(c);
    answer(c, "checkpoints are fp32", elements_of(m, TensorRole::checkpoint), "element");
    answer(c, "the reduction runs in fp32", reductions_of(m), "call");
    answer_split_sums(c);
    answer(c, "BatchNorm and LayerNorm run in fp32",
           calls_of(m, [](const OpRecord& o) { return is_norm(o.op); }), "call");
    answer(c, "softmax runs in fp32",
           calls_of(m, [](const OpRecord& o) { return base_name(o.op).ends_with("softmax"); }), "call");
    answer(
        c, "losses are computed in fp32",
        calls_of(m, [](const OpRecord& o) { return o.layer == "(loss)" || o.op.find("_loss") != o.op.npos; }),
        "call");
}

// --- MPT060 ---

Finding off_policy(Severity severity, const DeclaredPolicy& p) {
    Finding f = finding("MPT060", severity);
    f.importance = p.declared ? importance::kOffDeclaredPolicy() : importance::kOffFoundPolicy();
    return f;
}

// Whether cuDNN's switch decides the op: convolutions and RNNs. That of cuBLAS decides the other products.
bool is_of_cudnn(std::string_view op) { return op.find("conv") != op.npos || op.find("cudnn") != op.npos; }

// Products of fp32, of cuDNN or of cuBLAS, that rounded their inputs although the policy forbids it. `check` is the
// answer about them.
void judge_tf32(Case& c, const DeclaredPolicy& p, bool of_cudnn, Check& check) {
    const OpSum* first = nullptr;
    std::uint64_t calls = 0, others = 0;
    for (const OpSum& s : c.model.ops) {
        if (s.total.tf32 == 0 || is_of_cudnn(s.total.op) != of_cudnn) continue;
        calls += s.total.tf32;
        if (first) ++others;
        if (!first || s.total.first < first->total.first) first = &s;
    }
    if (!first) return;
    check.answer = Check::Answer::no;
    check.violated = true;
    check.evidence = counted(calls, "call") + " round fp32 to TF32 or 16 bits; " + check.evidence;
    Finding f = off_policy(Severity::error, p);
    f.layer = first->total.layer;
    f.op = first->total.op;
    f.phase = first->total.phase;
    f.step = first->first_step;
    f.value = static_cast<double>(calls);
    f.unit = "calls";
    f.message = place_text(first->total) +
                " rounds its fp32 inputs to TF32 or 16 bits, the policy says fp32 (" + shown(p.text) + ")";
    if (others > 0) f.message += "; so do " + counted(others, "other op");
    f.advice =
        of_cudnn
            ? "set torch.backends.cudnn.allow_tf32 = False or the convolution's math type CUDNN_FMA_MATH, "
              "set NVIDIA_TF32_OVERRIDE=0, or correct the policy"
            : "compute with CUBLAS_COMPUTE_32F and CUBLAS_DEFAULT_MATH, set NVIDIA_TF32_OVERRIDE=0, or "
              "correct the policy";
    c.out.findings.push_back(std::move(f));
}

void answer_tf32(Case& c, const DeclaredPolicy& p) {
    const auto answer = [&](const std::string& what, bool on) {
        return Check{.answer = on ? Check::Answer::no : Check::Answer::yes,
                     .sentence = "fp32 " + what + " may not use TF32",
                     .evidence = shown(p.text)};
    };
    const auto judged = [&](const std::string& what, bool on, bool of_cudnn) {
        Check check = answer(what, on);
        if (!on) judge_tf32(c, p, of_cudnn, check);
        c.out.checks.push_back(std::move(check));
    };
    judged("matrix products", p.tf32_matmul, false);
    judged("convolutions", p.tf32_cudnn, true);
}

void declared_check(Case& c, const DeclaredPolicy& p, std::string sentence, const Counts& counts,
                    DType wanted, std::string_view unit) {
    Check check;
    check.sentence = std::move(sentence);
    check.evidence = text_of(c.model, counts, unit);
    if (!counts.empty()) {
        const bool good =
            std::ranges::none_of(counts, [&](const auto& e) { return is_below(e.first, wanted); });
        check.answer = good ? Check::Answer::yes : Check::Answer::no;
        check.violated = !good;
    }
    check.evidence += (check.evidence.empty() ? "" : "; ") + shown(p.text);
    c.out.checks.push_back(std::move(check));
}

void judge_reduce(Case& c, const DeclaredPolicy& p) {
    const DType wanted = p.reduce != DType::unknown ? p.reduce : p.param;
    if (wanted == DType::unknown) return;
    declared_check(c, p, "gradients are reduced in " + std::string(name_of(wanted)), reductions_of(c.model),
                   wanted, "call");
    for (const CollectiveTotal& t : c.model.collectives) {
        if (!reduces(t.total) || !is_below(t.total.dtype, wanted)) continue;
        Finding f = off_policy(Severity::error, p);
        f.op = t.total.op;
        f.value = static_cast<double>(t.total.calls);
        f.unit = "calls";
        f.message = shown(t.total.op) + " in " + std::string(name_of(t.total.dtype)) + ", the policy says " +
                    std::string(name_of(wanted)) + " (" + shown(p.text) + "), " +
                    counted(t.total.calls, "call");
        f.advice = "set reduce_dtype to " + std::string(name_of(wanted)) + ", or correct the policy";
        c.out.findings.push_back(std::move(f));
    }
}

bool covers(const DeclaredPolicy& p, const std::string& layer) {
    return p.layer.empty() || layer == p.layer || layer.starts_with(p.layer + ".");
}

void judge_role(Case& c, const DeclaredPolicy& p, TensorRole role, DType wanted, const std::string& noun) {
    if (wanted == DType::unknown) return;
    const PlaceTotal* worst = nullptr;
    std::uint64_t layers = 0;
    for (const PlaceTotal& t : c.model.places) {
        if (t.place.role != role || !covers(p, t.place.layer) || !is_below(t.place.dtype, wanted)) continue;
        ++layers;
        if (!worst || t.place.elements > worst->place.elements) worst = &t;
    }
    declared_check(c, p, noun + " are " + std::string(name_of(wanted)), elements_of(c.model, role), wanted,
                   "element");
    if (!worst) return;
    Finding f = off_policy(Severity::error, p);
    f.layer = worst->place.layer;
    f.step = worst->first_step;
    f.value = static_cast<double>(worst->place.elements);
    f.unit = "elements";
    f.message = noun + " of " + shown(f.layer) + " are " + std::string(name_of(worst->place.dtype)) +
                ", the policy says " + std::string(name_of(wanted)) + " (" + shown(p.text) + ")";
    if (layers > 1) f.message += "; so in " + counted(layers - 1, "other layer");
    f.advice = "keep them in " + std::string(name_of(wanted)) + ", or correct the policy";
    c.out.findings.push_back(std::move(f));
}

// The dtype in which the list runs `op`, if the op breaks the list; else unknown. An op of the low list that ran in
// fp32 does not break it: fp32 is more precise, and the program may have switched autocast off on purpose.
DType broken_wish(const DeclaredPolicy& p, const OpRecord& op) {
    if (op.phase != Phase::forward || !is_low_precision(op.dtype)) return DType::unknown;
    if (is_in_place_name(op.op) || is_backward_op(op.op)) return DType::unknown;
    const Category category = p.list->category(op_from_name(base_name(op.op)));
    if (category == Category::fp32 || category == Category::fp32_set_opt_dtype) return DType::fp32;
    if (category == Category::lower && p.low != DType::unknown && is_half(op.dtype) && op.dtype != p.low)
        return p.low;
    return DType::unknown;
}

// Whether the call may have named the dtype, inside a region too. So does cross_entropy: for log_softmax it names that
// of its logits.
bool may_name_its_dtype(const DeclaredPolicy& p, const OpRecord& op) {
    return p.list->category(op_from_name(base_name(op.op))) == Category::fp32_set_opt_dtype;
}

void judge_list(Case& c, const DeclaredPolicy& p, const std::vector<DeclaredPolicy>& all) {
    const OpSum* first = nullptr;
    std::uint64_t others = 0;
    const auto is_before = [&p](const OpRecord& a, const OpRecord& b) {
        const bool open = may_name_its_dtype(p, a);
        return open != may_name_its_dtype(p, b) ? !open : a.first < b.first;
    };
    for (const OpSum& s : c.model.ops) {
        const DType wanted = broken_wish(p, s.total);
        if (wanted == DType::unknown || !covers(p, s.total.layer)) continue;
        // The op may have run in any of the autocast regions, so the policy of one region is enough.
        const bool allowed = std::ranges::any_of(all, [&](const DeclaredPolicy& q) {
            return q.list && broken_wish(q, s.total) == DType::unknown;
        });
        if (allowed) continue;
        if (first) ++others;
        if (!first || is_before(s.total, first->total)) first = &s;
    }
    if (!first) return;
    const DType wanted = broken_wish(p, first->total);
    const bool certain = p.declared || is_half(wanted), open = may_name_its_dtype(p, first->total);
    Finding f = off_policy(certain ? Severity::error : open ? Severity::note : Severity::warning, p);
    f.layer = first->total.layer;
    f.op = first->total.op;
    f.phase = first->total.phase;
    f.source = first->total.source;
    f.step = first->first_step;
    f.value = static_cast<double>(first->total.calls);
    f.unit = "calls";
    f.message = place_text(first->total) + ": the policy says " + std::string(name_of(wanted)) + " (" +
                shown(p.text) + ")";
    if (others > 0) f.message += "; the same holds for " + counted(others, "other op");
    f.advice =
        is_half(wanted) ? "convert its inputs to " + std::string(name_of(wanted)) + ", or correct the policy"
        : open ? "convert its inputs to fp32: cross_entropy(logits.float(), ...) where it is a part of that"
               : "call it inside the autocast region, or convert its inputs to fp32";
    c.out.findings.push_back(std::move(f));
}

// --- MPT043 ---

// The dtype in which the program declared to compute; unknown if it declared none below fp32.
DType declared_low(const DeclaredPolicy& p) {
    if (p.kind == Kind::autocast && is_low_precision(p.low)) return p.low;
    if (p.kind == Kind::fsdp && is_low_precision(p.param)) return p.param;
    return DType::unknown;
}

// What compiled regions and lost ops compute in is not known.
bool saw_all_ops(const RunModel& m) {
    const bool hidden = std::ranges::any_of(m.notes, [](const RunModel::Note& n) {
        return n.kind == NoteKind::not_observed || n.kind == NoteKind::disarmed || n.kind == NoteKind::lossy;
    });
    return m.step_count > 0 && !hidden && !m.ops_by_dtype.empty();
}

void judge_declaration(Case& c, const std::vector<DeclaredPolicy>& policies) {
    if (!saw_all_ops(c.model)) return;
    if (std::ranges::any_of(c.model.ops_by_dtype, [](const auto& e) { return is_low_precision(e.first); }))
        return;
    std::string text;
    for (const DeclaredPolicy& p : policies)
        if (text.empty() && declared_low(p) != DType::unknown) text = p.text;
    for (const std::string& p : c.model.policies)
        if (text.empty() && p.starts_with("grad_scaler:")) text = p;
    if (text.empty()) return;
    Finding f = finding("MPT043", Severity::warning);
    f.importance = importance::kOffDeclaredPolicy();
    f.message = "nothing ran below fp32 although mixed precision is declared (" + shown(text) + ")";
    f.advice = "run the forward inside the autocast region of its device, or remove the declaration";
    c.out.findings.push_back(std::move(f));
}

std::vector<DeclaredPolicy> all_policies(Case& c, const std::vector<std::string>& declared) {
    std::vector<DeclaredPolicy> out;
    const std::string version = torch_version_of(c.model);
    auto add = [&](const std::string& text, bool by_user) {
        Result<DeclaredPolicy> p = parse_policy(text, version);
        if (!p) {
            // A policy found in a note may come from a newer adapter, so only the user's own policies give an error.
            if (by_user) c.out.inconclusive.push_back(p.error().message);
            return;
        }
        p->declared = by_user;
        out.push_back(std::move(*p));
    };
    for (const std::string& text : declared) add(text, true);
    for (const std::string& text : c.model.policies) {
        // A note may name any file. Only files that the command line names are read.
        if (std::ranges::find(declared, text) == declared.end() && !text.starts_with("hmp:") &&
            text.substr(0, text.find('@')).find('/') == text.npos && !text.ends_with(".txt"))
            add(text, false);
    }
    return out;
}

}  // namespace

std::string torch_version_of(const RunModel& model) {
    for (const RankFacts& r : model.ranks) {
        const std::string& framework = r.process.framework;
        if (framework.starts_with("torch ")) return framework.substr(6);
    }
    return {};
}

void judge_policies(Case& c, const std::vector<std::string>& declared) {
    const std::vector<DeclaredPolicy> policies = all_policies(c, declared);
    if (!c.model.places.empty() || !c.model.ops.empty()) answer_sentences(c);
    judge_declaration(c, policies);
    if (policies.empty()) c.out.not_run.push_back({"MPT060", "no precision policy was declared or found"});
    bool reduction_judged = false;
    std::vector<std::string> lists;
    for (const DeclaredPolicy& p : policies) {
        if (p.kind == Kind::tf32) answer_tf32(c, p);
        if (p.kind == Kind::fsdp) {
            // There is one policy per layer, but reductions are recorded without their layer. The first policy judges
            // them all.
            if (!reduction_judged) judge_reduce(c, p);
            reduction_judged = true;
            judge_role(c, p, TensorRole::buffer, p.buffer, "buffers");
            judge_role(c, p, TensorRole::parameter, p.param, "parameters");
        }
        const std::string key = p.list ? std::string(p.list->name()) + std::string(name_of(p.low)) : "";
        if (!p.list || std::ranges::find(lists, key) != lists.end()) continue;
        if (p.layer.empty()) lists.push_back(key);
        judge_list(c, p, policies);
    }
}

}  // namespace mp::trace
