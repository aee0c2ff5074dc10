// MP212 fsdp-fp16-without-sharded-scaler
//
// What   FSDP computes or reduces gradients in fp16, and the training loop has no ShardedGradScaler
//        (FSDP), no scaler at all (fully_shard), or a plain GradScaler under FSDP.
// Why    Gradients below 6e-8 are zero. A plain GradScaler sees the infinities of its own shard
//        only: ranks disagree about which steps to skip, and their weights drift apart.
// Fix    torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler, or bf16.
// Silent Policies that nothing takes, bf16, loops that are not there. A note where another choice of policy is
//        possible, or a setting decides whether there is one.
// Tests  testdata/lint/MP212.md, tests/analyzer/rules/fsdp_fp16_without_sharded_scaler_test.cpp

#include <algorithm>

#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The directory above the one of a file: policies are often kept in a package beside the loop.
std::string_view project_of(const Function& f) {
    std::string_view path = f.span.file.str();
    for (int up = 0; up < 2; ++up) path = path.substr(0, std::min(path.rfind('/'), path.size()));
    return path;
}

// How far a function is from the policy: smaller is nearer.
constexpr int kConnected = 0, kSameFolder = 1, kSameProject = 2, kFar = 3;

struct Training {
    const Function* function = nullptr;
    const Call* backward = nullptr;
    int distance = kFar;  // of the backward
    int plain_scaler = kFar;
    int sharded_scaler = kFar;
};

// What trains with this policy: in the files that calls connect with it, beside it, or elsewhere in
// its project.
Training training_near(const RuleContext& context, const Engine& engine) {
    const Protocol& protocol = protocol_of(context);
    const std::vector<Symbol>& files = protocol.files_near(*engine.function);
    const std::string project = std::string(project_of(*engine.function)) + "/";
    const auto distance = [&](const Function& f) {
        if (std::ranges::find(files, f.span.file) != files.end()) return kConnected;
        if (!f.span.file.str().starts_with(project)) return kFar;
        return folder_of(f.span.file) == folder_of(engine.function->span.file) ? kSameFolder : kSameProject;
    };
    Training found;
    for (const Function* f : context.program.functions()) {
        const EventMask mask = protocol.mask(*f);
        const EventMask steps = mask_of(EventKind::optimizer_step) | mask_of(EventKind::scaler_step);
        if (!(mask & mask_of(EventKind::backward)) || !(mask & steps)) continue;
        const int far = distance(*f);
        if (far >= found.distance) continue;
        for (const Call& c : f->calls)
            if (protocol.roles().event(*f, c).kind == EventKind::backward)
                found.function = f, found.backward = &c, found.distance = far;
    }
    for (const MadeScaler& s : protocol.scalers()) {
        if (s.enabled.always == Switch::off) continue;
        int& nearest = mentions(s.call->name.str(), "sharded") ? found.sharded_scaler : found.plain_scaler;
        nearest = std::min(nearest, distance(*s.function));
    }
    return found;
}

bool is_fp16(const Engine& e) { return e.dtype == DType::fp16 || e.reduce == DType::fp16; }

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    for (const Engine& e : engines_of(context)) {
        const bool fsdp1 = e.kind == EngineKind::fsdp1;
        if ((!fsdp1 && e.kind != EngineKind::fsdp2) || !is_fp16(e) || !e.call || e.used == Switch::off)
            continue;
        const Training training = training_near(context, e);
        if (!training.backward || training.sharded_scaler != kFar) continue;
        if (!fsdp1 && training.plain_scaler != kFar) continue;
        const bool has_plain = training.plain_scaler <= training.distance;
        // A package may offer the policy to one program and the training loop to another, and a setting may choose.
        const bool sure = e.used == Switch::on && training.distance == kConnected &&
                          !is_conditional(*e.function, e.call->block);
        const std::string what = e.dtype == DType::fp16 ? "computes in fp16" : "reduces gradients in fp16";
        emit(context, *e.function,
             {.rule = "MP212",
              .severity = sure ? Severity::error : Severity::note,
              .span = e.call->span,
              .message = "this policy " + what +
                         (has_plain ? ", and a plain GradScaler lets ranks disagree about skipped steps"
                                    : ", and no scaler keeps small gradients from becoming zero"),
              .fix = fsdp1 ? "use ShardedGradScaler, or torch.bfloat16" : "use GradScaler, or torch.bfloat16",
              .notes = {{training.backward->span, "the backward of the training loop"}},
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kFsdpFp16WithoutShardedScaler{
    .id = "MP212",
    .name = "fsdp-fp16-without-sharded-scaler",
    .severity = Severity::error,
    .on_by_default = true,
    .confirmed_by = "",
    .triggers = {kLossScaling, kLowDtypes, kRegions, kEngines},
    .check = check};

}  // namespace mp::lint
