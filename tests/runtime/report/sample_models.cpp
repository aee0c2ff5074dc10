#include "tests/runtime/report/sample_models.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mp::trace::test {
namespace {

// A number in [0, 1) that looks random and is the same on every machine.
double dice(std::uint64_t a, std::uint64_t b = 0) {
    std::uint64_t x = a * 0x9e3779b97f4a7c15U + b * 0xbf58476d1ce4e5b9U + 1;
    x ^= x >> 31U;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 29U;
    return static_cast<double>(x >> 11U) / 9007199254740992.0;
}

struct Shape {
    std::vector<std::string> layers;
    int steps = 60;
    DType dtype = DType::fp16;
    bool scaler = true;
};

std::vector<std::string> gpt_layers(int blocks) {
    std::vector<std::string> out{"wte"};
    for (int i = 0; i < blocks; ++i) {
        for (const char* part : {"ln1", "attn.qkv", "attn.proj", "ln2", "mlp.up", "mlp.down"})
            out.push_back("blocks." + std::to_string(i) + "." + part);
    }
    out.insert(out.end(), {"ln_f", "lm_head", "(loss)"});
    return out;
}

OpSum op_sum(const std::string& layer, Phase phase, DType dtype, std::uint64_t order, double loc,
             double cum) {
    OpSum sum;
    OpRecord& op = sum.total;
    op.layer = layer;
    op.op = layer == "(loss)"                       ? "aten::add"
            : layer.find("ln") != std::string::npos ? "aten::native_layer_norm"
            : phase == Phase::backward              ? "aten::mm"
                                                    : "aten::addmm";
    op.phase = phase;
    op.dtype = dtype;
    op.first = order;
    op.calls = 120;
    op.source = "train.py:" + std::to_string(40 + order % 90);
    op.elements = op.compared = op.loc_compared = 65'536;
    op.amax = op.twin_amax = 3.5 + dice(order) * 4;
    op.amin = 1e-5;
    op.twin_squares = op.loc_squares = 1e4;
    op.twin_abs = 5e4;
    const double floor = dtype == DType::bf16 ? 0.425 / 256 : 0.425 / 2048;
    op.error_squares = std::pow(cum * floor, 2) * 1e4;
    op.loc_error_squares = std::pow(loc * floor, 2) * 1e4;
    op.prop_error_squares = std::max(0.0, op.error_squares - op.loc_error_squares);
    sum.ranks = 2;
    sum.first_step = Step{0};
    sum.worst_loc = sum.worst_cum = {.rank = Rank{0}, .step = Step{3}};
    sum.worst_loc_phi = loc;
    sum.worst_cum_phi = cum;
    return sum;
}

void put_steps(RunModel& model, const Shape& shape) {
    model.step_count = shape.steps;
    for (int k = 0; k < shape.steps; ++k) {
        StepSummary s;
        s.step = Step{k};
        s.ranks = 2;
        s.has_loss = s.has_twin = true;
        s.twin_loss =
            1.6 + 2.6 * std::exp(-3.0 * k / shape.steps) + 0.03 * dice(static_cast<std::uint64_t>(k));
        s.loss = s.twin_loss + 0.0005 * dice(static_cast<std::uint64_t>(k), 7);
        s.has_loss_scale = shape.scaler;
        s.loss_scale = 65'536;
        s.sampled = k % 2 == 0;
        s.wall_ns = 40'000'000;
        model.steps.push_back(s);
    }
}

void put_ranks(RunModel& model, const Shape& shape) {
    for (int rank = 0; rank < 2; ++rank) {
        RankFacts r;
        r.process.rank = Rank{rank};
        r.process.world_size = 2;
        r.process.pid = 1763 + rank;
        r.process.host = "node1";
        r.process.program = "/usr/bin/python3";
        r.process.framework = "torch 2.11.0";
        r.process.mode = Mode::trajectory;
        r.path = "mp-trace.1763/r" + std::to_string(rank) + ".c0.node1.mpt";
        r.steps = shape.steps;
        r.last_step = Step{shape.steps - 1};
        r.ended = true;
        model.ranks.push_back(r);
    }
}

// A column a step, up to 512 columns.
void put_map(RunModel& model, const Shape& shape) {
    const int columns = std::min(shape.steps, 512);
    model.column_steps = (shape.steps + columns - 1) / columns;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
        const std::size_t n = shape.layers.size();
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = phase == Phase::forward ? i : n - 1 - i;
            LayerSteps row{.layer = shape.layers[at], .phase = phase, .order = i, .cells = {}};
            const double depth = static_cast<double>(phase == Phase::forward ? i : n + i) + 1;
            for (int k = 0; k < columns; ++k) {
                const double noise =
                    0.9 + 0.2 * dice(i + 1, static_cast<std::uint64_t>(k) * 2 + (phase == Phase::backward));
                Cell cell;
                cell.cum_phi = static_cast<float>(noise * std::sqrt(depth) * (0.8 + 0.4 * k / columns));
                if (k % 2 == 0) cell.loc_phi = static_cast<float>(0.97 * noise);
                cell.flush = phase == Phase::backward ? static_cast<float>(1e-4 * noise) : 0;
                row.cells.push_back(cell);
            }
            model.map.push_back(row);
        }
    }
}

// A bell around 2^-3, or around 2^-17 for gradients: what reaches below fp16's normal values is to be seen.
LayerExponents exponents_of(const std::string& layer, Phase phase, DType dtype) {
    LayerExponents e{.layer = layer, .phase = phase, .dtype = dtype, .exponents = {}};
    std::vector<std::uint64_t> counts;
    for (int k = -11; k <= 5; ++k)
        counts.push_back(static_cast<std::uint64_t>(1e6 * std::exp(-0.12 * k * k)));
    e.exponents.add(phase == Phase::backward ? 110 - 11 : 124 - 11, counts);
    return e;
}

void put_ops(Judged& run, const Shape& shape) {
    std::uint64_t order = 0;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
        std::vector<std::string> layers = shape.layers;
        if (phase == Phase::backward) std::reverse(layers.begin(), layers.end());
        for (const std::string& layer : layers) {
            const double loc = 0.95 + 0.1 * dice(order),
                         cum = loc * std::sqrt(static_cast<double>(order) + 1);
            const OpSum sum = op_sum(layer, phase, shape.dtype, order++, loc, cum);
            run.model.ops.push_back(sum);
            run.model.exponents.push_back(exponents_of(layer, phase, shape.dtype));
            run.judgement.ladder.push_back({.layer = layer,
                                            .op = sum.total.op,
                                            .phase = phase,
                                            .dtype = shape.dtype,
                                            .introduced = loc,
                                            .inherited = std::sqrt(std::max(0.0, cum * cum - loc * loc)),
                                            .total = cum,
                                            .order = order});
        }
    }
}

void put_places(Judged& run, const Shape& shape) {
    const auto put = [&](TensorRole role, Phase phase, const std::string& layer, DType dtype,
                         std::uint64_t elements) {
        PlaceTotal place;
        place.place = {
            .role = role, .layer = layer, .phase = phase, .dtype = dtype, .tensors = 2, .elements = elements};
        place.first_step = Step{0};
        run.model.places.push_back(place);
    };
    for (const std::string& layer : shape.layers) {
        const bool norm = layer.find("ln") != std::string::npos;
        put(TensorRole::parameter, Phase::forward, layer, DType::fp32, 65'536);
        put(TensorRole::activation, Phase::forward, layer, norm ? DType::fp32 : shape.dtype, 1 << 20);
        put(TensorRole::gradient, Phase::backward, layer, shape.dtype, 65'536);
        put(TensorRole::optimizer_state, Phase::optimizer, layer, DType::fp32, 131'072);
    }
    put(TensorRole::collective, Phase::backward, "", shape.dtype, 1 << 20);
    run.judgement.checks = {{.answer = Check::Answer::yes,
                             .sentence = "LayerNorm runs in fp32",
                             .evidence = "native_layer_norm in fp32, 1,080 calls"},
                            {.answer = Check::Answer::not_observed,
                             .sentence = "checkpoints are fp32",
                             .evidence = "nothing was saved"}};
    run.model.policies = {"autocast:cpu=" + std::string(name_of(shape.dtype)), "ddp"};
}

Judged healthy(const Shape& shape) {
    Judged run;
    run.model.directory = "mp-trace.1763";
    run.model.mode = Mode::trajectory;
    put_steps(run.model, shape);
    put_ranks(run.model, shape);
    put_map(run.model, shape);
    put_ops(run, shape);
    put_places(run, shape);
    run.model.coverage = {.ops = 120'000, .shadowed = 118'900, .unshadowed = 1'000};
    run.model.ops_by_dtype = {{shape.dtype, 90'000}, {DType::fp32, 30'000}};
    run.model.notes = {{.kind = NoteKind::not_observed,
                        .text = "custom_rope: writes without the dispatcher",
                        .count = 1000,
                        .processes = 2,
                        .first = Step{0}},
                       {.kind = NoteKind::end, .text = "", .count = 60, .processes = 2, .first = Step{59}}};
    CollectiveTotal reduce;
    // clang-format off: a table
    reduce.total = {.op = "all_reduce", .reduction = "avg", .dtype = shape.dtype, .group = "0", .calls = 240,
                    .bytes = 1'200'000'000, .compared = 1'000'000, .error_squares = 1e-4, .sum_squares = 1e3,
                    .made_nonfinite = 0};
    // clang-format on
    reduce.worst_phi = 1.4;
    reduce.worst_at = {.rank = Rank{0}, .step = Step{12}};
    run.model.collectives = {reduce};
    return run;
}

OpSum& op_called(RunModel& model, const std::string& layer, Phase phase) {
    for (OpSum& op : model.ops) {
        if (op.total.layer == layer && op.total.phase == phase) return op;
    }
    return model.ops.front();
}

// From `step` on the layer introduces `phi`, and all behind it inherit that.
void spoil(Judged& run, const std::string& layer, int step, double phi) {
    bool behind = false;
    for (LayerSteps& row : run.model.map) {
        const bool it = row.layer == layer && row.phase == Phase::forward;
        behind |= it;
        for (std::size_t k = 0; behind && k < row.cells.size(); ++k) {
            if (static_cast<int>(k) < step) continue;
            if (it && k % 2 == 0) row.cells[k].loc_phi = static_cast<float>(phi);
            row.cells[k].cum_phi += static_cast<float>(it ? phi : phi / 2);
        }
    }
    behind = false;
    for (Rung& r : run.judgement.ladder) {
        const bool it = r.layer == layer && r.phase == Phase::forward;
        behind |= it;
        if (it) r.introduced = phi;
        if (behind)
            r.total = std::hypot(r.total, phi), r.inherited = it ? r.inherited : std::hypot(r.inherited, phi);
    }
    OpSum& op = op_called(run.model, layer, Phase::forward);
    op.worst_loc_phi = phi;
    op.worst_cum_phi = std::hypot(op.worst_cum_phi, phi);
}

}  // namespace

Judged clean_run() {
    Judged run = healthy({.layers = gpt_layers(4), .dtype = DType::bf16, .scaler = false});
    for (LayerSteps& row : run.model.map) {
        for (std::size_t k = 44; k < 48; ++k) row.cells[k] = {};  // not measured
    }
    return run;
}

Judged overflow_run() {
    Judged run = healthy({.layers = gpt_layers(4)});
    const std::string layer = "blocks.2.mlp.up";
    spoil(run, layer, 0, 7.9);
    const std::vector<int> skipped{17, 34, 35, 36};
    run.model.skipped_steps = 4;
    run.judgement.samples_lost = 4.0 / 60;
    for (const int k : skipped) {
        run.model.steps[static_cast<std::size_t>(k)].skipped = 2;
        run.judgement.skips.push_back(
            {.step = Step{k},
             .cause = SkipCause::forward_overflow,
             .parameter = layer + ".weight",
             .layer = layer,
             .op = "aten::addmm",
             .rank = Rank{1},
             .loss_scale = 65'536,
             .ranks_disagree = false,
             .why = "12 of 65,536 values of the forward left fp16; the twin has 71,304, "
                    "above 65,504, so a lower loss scale does not help"});
        for (std::size_t i = static_cast<std::size_t>(k) + 1; i < run.model.steps.size(); ++i)
            run.model.steps[i].loss_scale /= 2;
        for (LayerSteps& row : run.model.map) {
            if (row.layer == layer && row.phase == Phase::forward)
                row.cells[static_cast<std::size_t>(k)].nonfinite = 12;
        }
    }
    for (std::size_t k = 17; k < run.model.steps.size(); ++k)
        run.model.steps[k].loss += 0.185 * (1 - std::exp(-(static_cast<double>(k) - 16) / 20));
    OpSum& op = op_called(run.model, layer, Phase::forward);
    op.first_origin = {.rank = Rank{1}, .step = Step{17}};
    op.at_origin = op.total;
    op.at_origin.pos_inf = 12;
    op.at_origin.amax = 65'408;
    op.at_origin.twin_amax = 71'304;
    op.at_origin.input_amax = 212;
    // clang-format off: a table
    run.judgement.first_overflow = {.found = true, .layer = layer, .op = "aten::addmm", .source = "train.py:88",
                                    .phase = Phase::forward, .dtype = DType::fp16, .rank = Rank{1}, .step = Step{17},
                                    .nonfinite = 12, .elements = 65'536, .input_amax = 212, .twin_amax = 71'304};
    // clang-format on
    // clang-format off: a table
    run.judgement.findings = {
        {.rule = "MPT001", .name = "nonfinite-value", .severity = Severity::error, .layer = layer, .op = "aten::addmm",
         .phase = Phase::forward, .rank = Rank{1}, .step = Step{17}, .source = "train.py:88",
         .message = "blocks.2.mlp.up overflows fp16 in forward from step 17: 12 of 65,536 values, the twin has 71,304",
         .advice = "run blocks.2.mlp.up in fp32 or bf16; lowering the loss scale does not help, the forward value "
                   "itself is above 65,504",
         .value = 12, .limit = 0, .unit = "values", .importance = 0.81,
         .confirmed_by = {"MP101 manual-cast-in-autocast train.py:88"}},
        {.rule = "MPT004", .name = "skip-not-by-scale", .severity = Severity::error, .layer = layer, .op = "",
         .phase = Phase::forward, .rank = Rank{}, .step = Step{17}, .source = "",
         .message = "4 of 60 steps were skipped for a reason that the loss scale cannot remove",
         .advice = "see the first finding", .value = 4, .limit = 0, .unit = "steps", .importance = 0.07,
         .confirmed_by = {}},
        {.rule = "MPT060", .name = "off-policy", .severity = Severity::warning, .layer = "", .op = "all_reduce",
         .phase = Phase::backward, .rank = Rank{}, .step = Step{0}, .source = "",
         .message = "gradients are reduced in fp16, the policy says fp32", .advice = "reduce in fp32", .value = 240,
         .limit = 0, .unit = "calls", .importance = 0.05, .confirmed_by = {}}};
    // clang-format on
    run.judgement.checks.push_back({.answer = Check::Answer::no,
                                    .sentence = "gradients are reduced in fp32",
                                    .evidence = "all_reduce in fp16, 240 calls",
                                    .violated = true});
    return run;
}

Judged stagnating_run() {
    Judged run = healthy({.layers = gpt_layers(4), .dtype = DType::bf16, .scaler = false});
    for (std::size_t k = 8; k < run.model.steps.size(); ++k)
        run.model.steps[k].loss += 0.55 * (1 - std::exp(-(static_cast<double>(k) - 8) / 25));
    for (const char* name : {"blocks.1.attn.qkv.weight", "blocks.0.mlp.up.weight", "wte.weight"}) {
        TensorSum t;
        t.name = name;
        t.meant_to_move = 1'000'000;
        t.unmoved = 940'000 - run.model.tensors.size() * 20'000;
        run.model.tensors.push_back(t);
    }
    // clang-format off: a table
    run.judgement.findings = {
        {.rule = "MPT040", .name = "stagnation", .severity = Severity::error, .layer = "blocks.1.attn.qkv", .op = "",
         .phase = Phase::optimizer, .rank = Rank{}, .step = Step{8}, .source = "",
         .message = "94 % of the weights of blocks.1.attn.qkv.weight do not move although their update is not 0: it is "
                    "below half a bf16 ulp; so do 23 other parameters",
         .advice = "keep a master copy of the weights in fp32 and let the optimizer update that",
         .value = 0.94, .limit = 0.7, .unit = "share", .importance = 0.94, .confirmed_by = {}}};
    // clang-format on
    return run;
}

Judged running_sum_run() {
    Judged run = healthy({.layers = gpt_layers(4), .dtype = DType::bf16, .scaler = false});
    spoil(run, "(loss)", 0, 312);
    for (StepSummary& s : run.model.steps) s.loss *= 0.71;
    op_called(run.model, "(loss)", Phase::forward).total.added = 1'000'000;
    op_called(run.model, "(loss)", Phase::forward).total.absorbed = 463'000;
    // clang-format off: a table
    run.judgement.findings = {
        {.rule = "MPT012", .name = "swallowed-addends", .severity = Severity::error, .layer = "(loss)",
         .op = "aten::add", .phase = Phase::forward, .rank = Rank{}, .step = Step{0}, .source = "loss.py:31",
         .message = "a running sum in bf16 swallows 46 % of its addends: the loss is 29 % too small",
         .advice = "add up in fp32 and convert the result once", .value = 0.46, .limit = 0.1, .unit = "share",
         .importance = 0.97, .confirmed_by = {"MP401 half-accumulator loss.py:31"}}};
    // clang-format on
    return run;
}

Judged watched_run() {
    Judged run = healthy({.layers = gpt_layers(1), .scaler = false});
    run.model.mode = Mode::watch;
    run.model.map.clear();
    run.model.coverage = {.ops = 4000};
    run.judgement.ladder.clear();
    for (StepSummary& s : run.model.steps) s.has_twin = false;
    run.model.missing = {Rank{2}, Rank{3}};
    run.model.ranks[1].ended = false;
    run.model.ranks[1].problems = 1;
    run.model.ranks[1].first_problems = {"damaged bytes at 4,096"};
    run.judgement.inconclusive = {"ranks 2-3 left no recording"};
    return run;
}

Judged hostile_run() {
    const std::vector<std::string> names{"</script><script>document.title='owned'</script>",
                                         "<img src=x onerror=\"document.title='owned'\">",
                                         "\x1b]0;owned\x07\x1b[2J",
                                         "\xe2\x80\xae"
                                         "gpj.exe",
                                         std::string(4096, 'A') + "<b>",
                                         "a\xff\xfe\xc3(",
                                         "'\"&<>`${alert(1)}",
                                         std::string("nul\0nul", 7),
                                         "javascript:alert(1)",
                                         "\xe2\x80\xa8\xe2\x80\xa9",
                                         "",
                                         "__proto__",
                                         "constructor"};
    Judged run = healthy({.layers = names, .steps = 12});
    run.model.directory = names[0] + names[2];
    for (const std::string& name : names) {
        Finding f{.rule = name,
                  .name = name,
                  .severity = Severity::error,
                  .layer = name,
                  .op = name,
                  .phase = Phase::forward,
                  .rank = Rank{1},
                  .step = Step{3},
                  .source = name,
                  .message = name,
                  .advice = name,
                  .value = std::nan(""),
                  .limit = HUGE_VAL,
                  .unit = name,
                  .importance = HUGE_VAL,
                  .confirmed_by = {name}};
        run.judgement.findings.push_back(f);
        run.judgement.skips.push_back({.step = Step{3},
                                       .cause = SkipCause::unknown,
                                       .parameter = name,
                                       .layer = name,
                                       .op = name,
                                       .rank = Rank{},
                                       .loss_scale = std::nan(""),
                                       .ranks_disagree = true,
                                       .why = name});
        run.judgement.checks.push_back({.answer = Check::Answer::no, .sentence = name, .evidence = name});
        run.judgement.inconclusive.push_back(name);
        run.model.policies.push_back(name);
        run.model.notes.push_back(
            {.kind = NoteKind::leak, .text = name, .count = 1, .processes = 1, .first = Step{0}});
        run.model.unreadable.push_back({name, name});
        RankFacts rank;
        rank.process.host = rank.process.program = rank.process.framework = name;
        rank.first_problems = {name};
        run.model.ranks.push_back(rank);
        PlaceTotal place;
        place.place.role = TensorRole::checkpoint;
        place.place.layer = name;
        run.model.places.push_back(place);
        CollectiveTotal c;
        c.total.op = c.total.reduction = c.total.group = name;
        c.total.compared = 1;
        c.worst_phi = HUGE_VAL;
        run.model.collectives.push_back(c);
    }
    constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), 1e308};
    for (std::size_t i = 0; i < 4; ++i) {
        StepSummary& s = run.model.steps[i];
        s.loss = s.twin_loss = s.loss_scale = kBad[i];
        run.model.map[i].cells[1].cum_phi = static_cast<float>(kBad[i]);
        OpRecord& op = run.model.ops[i].total;
        op.amax = op.amin = op.error_squares = op.loc_squares = kBad[i];
        run.judgement.ladder[i].introduced = run.judgement.ladder[i].total = kBad[i];
    }
    run.model.coverage.worst_leak = HUGE_VAL;
    FirstOverflow& first = run.judgement.first_overflow;
    first.found = true;
    first.layer = names[0];
    first.op = names[1];
    first.source = names[2];
    first.input_amax = HUGE_VAL;
    first.twin_amax = std::nan("");
    return run;
}

Judged large_run(int layers, int steps) {
    Shape shape{.layers = {}, .steps = steps, .dtype = DType::fp16};
    for (int i = 0; i < layers; ++i)
        shape.layers.push_back("model.layers." + std::to_string(i) + ".self_attn.q_proj");
    Judged run = healthy(shape);
    for (int k = 100; k < steps; k += 100) {
        run.model.steps[static_cast<std::size_t>(k)].skipped = 2;
        run.judgement.skips.push_back({.step = Step{k},
                                       .cause = SkipCause::scale_too_high,
                                       .parameter = shape.layers[0],
                                       .layer = shape.layers[0],
                                       .op = "aten::mm",
                                       .rank = Rank{0},
                                       .loss_scale = 65'536,
                                       .ranks_disagree = false,
                                       .why = "the gradient is finite at half the loss scale"});
    }
    run.model.skipped_steps = static_cast<std::int64_t>(run.judgement.skips.size());
    return run;
}

}  // namespace mp::trace::test
