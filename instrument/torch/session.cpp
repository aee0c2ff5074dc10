#include "instrument/torch/session.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "instrument/torch/end_summary.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {
namespace {

constexpr std::size_t kCandidates = 64;  // scalar results remembered until a backward() starts at one
constexpr int kFaultsUntilDisarmed = 3;

Session* g_session = nullptr;

std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::int64_t unix_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string program_name() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

// The node that made a tensor, without asking a view to rebuild its own.
std::int64_t sequence_of(const at::Tensor& t) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(t);
    return meta && meta->grad_fn_ ? static_cast<std::int64_t>(meta->grad_fn_->sequence_nr()) : -1;
}

double scalar(const at::Tensor& t) { return t.detach().to(at::kDouble).item<double>(); }

bool lists(const std::vector<trace::RankRange>& ranks, Rank rank) {
    if (ranks.empty()) return true;
    for (const trace::RankRange& r : ranks)
        if (rank.value >= r.first && rank.value <= r.last) return true;
    return false;
}

}  // namespace

Session* session() noexcept { return g_session; }
void set_session(Session* session) noexcept { g_session = session; }

Session::Session(trace::Options options, trace::Identity identity, bool has_python)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      has_python_(has_python),
      ops_by_dtype_(static_cast<std::size_t>(at::ScalarType::NumOptions) + 1) {
    if (!options_.save_twin.empty() || !options_.save_real.empty()) parameters_.keep_until_the_end();
    begin_step();
}

void Session::disarm(std::string_view reason) {
    const std::lock_guard lock(mutex_);
    armed_ = false;
    twin_active_ = false;
    if (recorder_) note(trace::NoteKind::disarmed, reason);
}

// The child of a fork writes nothing: the file, the helper thread and the step are its parent's.
void Session::after_fork_in_child() {
    armed_ = false;
    twin_active_ = false;
    attends_only_ = false;
    if (recorder_) recorder_->abandon_after_fork();
}

// ---- Counts. ----------------------------------------------------------------------------------------

void Session::count_op(at::ScalarType dtype) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.ops;
    ++ops_by_dtype_[static_cast<std::size_t>(dtype)];
}

void Session::count_shadowed(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.shadowed;
    step_.coverage.shadowed_bytes += bytes;
}

void Session::count_unshadowed(std::string_view op, std::string_view why, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.unshadowed;
    step_.coverage.unshadowed_bytes += bytes;
    note(trace::NoteKind::not_observed, std::string(op) + ": " + std::string(why));
}

void Session::count_failed(std::string_view op, std::string_view what, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.failed;
    count_unshadowed(op, "the twin's op failed: " + std::string(what), bytes);
}

void Session::count_seed(std::string_view op, Seed why, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.seeds;
    step_.coverage.seeded_bytes += bytes;
    step_.coverage.stale += why == Seed::stale;
    step_.coverage.external += why == Seed::external;
    if (step_.step.value < 1) return;  // the first steps make every shadow
    const char* reason = why == Seed::stale  ? "the program wrote behind the dispatcher"
                         : why == Seed::lost ? "the twin's history was lost"
                                             : "data from outside the dispatcher";
    note(trace::NoteKind::seed, std::string(op) + ": " + reason);
}

void Session::count_flips(std::uint64_t elements) {
    const std::lock_guard lock(mutex_);
    step_.coverage.flips += elements;
}

void Session::count_leak(std::string_view op, double real, double twin) {
    const std::lock_guard lock(mutex_);
    ++step_.coverage.leaks;
    const double distance = std::fabs(real - twin);
    if (!(distance <= step_.coverage.worst_leak)) step_.coverage.worst_leak = distance;
    note(trace::NoteKind::leak, op);
}

void Session::count_collective(trace::CollectiveRecord record) {
    const std::lock_guard lock(mutex_);
    collective_seen_ = true;
    open_recorder();
    for (trace::CollectiveRecord& known : step_.collectives)
        if (known.op == record.op && known.reduction == record.reduction && known.dtype == record.dtype &&
            known.group == record.group) {
            known.calls += record.calls;
            known.bytes += record.bytes;
            return;
        }
    step_.collectives.push_back(std::move(record));
}

void Session::count_reduction(const trace::CollectiveRecord& like, const Divergence& d) {
    const std::lock_guard lock(mutex_);
    for (trace::CollectiveRecord& known : step_.collectives)
        if (known.op == like.op && known.reduction == like.reduction && known.dtype == like.dtype &&
            known.group == like.group) {
            known.compared += d.compared;
            known.error_squares += d.ee;
            known.sum_squares += d.yy;
            known.made_nonfinite += d.nonfinite_real;
            return;
        }
}

void Session::finish_later(std::function<void()> finish) {
    const std::lock_guard lock(mutex_);
    unfinished_.push_back(std::move(finish));
}

void Session::finish_reductions() {
    const TwinScope scope;
    for (const auto& finish : std::exchange(unfinished_, {})) finish();
}

// A fault of ours: said once, counted, and after three of them this process is left alone.
void Session::internal_fault(std::string_view where, std::string_view what) {
    const std::lock_guard lock(mutex_);
    note(trace::NoteKind::disarmed, std::string(where) + ": " + std::string(what));
    if (++faults_ < kFaultsUntilDisarmed) return;
    if (armed() && !options_.quiet)
        std::fprintf(stderr,
                     "mp-trace: stopped after %d internal faults (%.*s); the program runs on untraced\n",
                     faults_, static_cast<int>(where.size()), where.data());
    attends_only_ = collective_seen_ && twin_active();
    armed_ = false;
    twin_active_ = false;
}

void Session::measuring_fault(std::string_view where, std::string_view what) {
    note(trace::NoteKind::lossy, "not measured: " + std::string(where) + ": " + std::string(what));
}

void Session::note(trace::NoteKind kind, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const std::string key = std::to_string(static_cast<int>(kind)) + std::string(text);
    if (!said_.insert(key).second) return;
    if (open_recorder()) recorder_->note({kind, step_.step, std::string(text), 1});
}

// ---- Losses. ----------------------------------------------------------------------------------------

void Session::candidate(const at::Tensor& t) {
    const std::lock_guard lock(mutex_);
    Candidate fresh{c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr())};
    if (candidates_.size() < kCandidates)
        candidates_.push_back(std::move(fresh));
    else
        candidates_[next_candidate_] = std::move(fresh);
    next_candidate_ = (next_candidate_ + 1) % kCandidates;
}

void Session::scaled_loss(const at::Tensor& root, const at::Tensor& loss) {
    const std::lock_guard lock(mutex_);
    scaled_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(root.getIntrusivePtr()),
                       c10::weak_intrusive_ptr<c10::TensorImpl>(loss.getIntrusivePtr())});
}

void Session::declared_loss(const at::Tensor& loss) {
    const std::lock_guard lock(mutex_);
    declared_loss_ = loss.detach();
}

// Within one backward() nodes run in falling order of their numbers, so a scalar that made its node is
// the root when its number is above that of the node before.
void Session::node_begins(std::int64_t sequence, std::int64_t previous, const at::Tensor& root_gradient) {
    if (previous >= 0 && sequence <= previous) return;
    const std::lock_guard lock(mutex_);
    for (Candidate& candidate : candidates_) {
        auto impl = candidate.tensor.lock();
        if (!impl) continue;
        const at::Tensor root(std::move(impl));
        if (sequence_of(root) != sequence) continue;
        open_recorder();
        if (!has_python_ && !backward_seen_) leaves_at_backward_ = parameters_.leaves_fingerprint();
        backward_seen_ = true;
        backward_ran_ = true;
        if (root_gradient.defined() && root_gradient.numel() == 1) root_gradient_ = scalar(root_gradient);
        record_loss(root);
        if (!forecast_said_ && options_.mode >= trace::Mode::step) say_forecast();
        return;
    }
}

void Session::record_loss(const at::Tensor& root) {
    const TwinScope scope;
    at::Tensor loss = root;
    for (const Scaled& scaled : scaled_) {
        const auto known = scaled.root.lock();
        if (known.get() != root.unsafeGetTensorImpl()) continue;
        if (auto input = scaled.loss.lock()) loss = at::Tensor(std::move(input));
    }
    scaled_.clear();
    if (declared_loss_.defined()) loss = std::exchange(declared_loss_, {});
    trace::LossRecord record;
    record.micro_step = static_cast<std::int32_t>(step_.losses.size());
    record.dtype = dtype_of(loss.scalar_type());
    record.real = scalar(loss);
    if (twin_active() && !local() && twin()) {
        record.has_twin = true;
        record.twin = scalar(twin()->value(loss));
    }
    step_.losses.push_back(record);
}

// ---- The step clock. --------------------------------------------------------------------------------

void Session::begin_step() {
    step_ = {};
    step_.step = Step{next_step_};
    std::fill(ops_by_dtype_.begin(), ops_by_dtype_.end(), 0);
    gradients_.clear();
    ordinal_ = 0;
    backward_ran_ = false;
    const bool twin_mode = options_.mode == trace::Mode::trajectory || options_.mode == trace::Mode::local ||
                           (options_.mode == trace::Mode::step && options_.steps.contains(step_.step));
    if (options_.mode == trace::Mode::step && twin()) twin()->shadows().clear();
    twin_active_ = armed() && twin_mode;
    ledger_.begin_step(armed() && is_sampled_step());
    layers().end_step();
}

// Whether parameters and gradients of this step are compared with the twin's.
bool Session::measures() const {
    return twin_active() && !local() && twin() && options_.steps.contains(step_.step);
}

// Everything is measured in steps 0, 1, 2, 4, 8, 16, 32 and every 32nd from there; a twin of one step is always.
bool Session::is_sampled_step() const {
    if (rule_disabled("measure") || !options_.steps.contains(step_.step)) return false;
    if (options_.mode == trace::Mode::local || options_.mode == trace::Mode::step) return true;
    const std::int64_t k = step_.step.value;
    return k % 32 == 0 || (k < 32 && (k & (k - 1)) == 0);
}

bool Session::looks_at_tensors() const {
    return !rule_disabled("measure") && (measures() || (!local() && ledger_.sampled()));
}

void Session::before_step(std::int64_t) {
    const std::lock_guard lock(mutex_);
    if (!armed()) return;
    open_recorder();
    finish_reductions();
    in_optimizer_ = true;
    if (!looks_at_tensors()) return;
    ShadowMap* const shadows = measures() ? &twin()->shadows() : nullptr;
    gradients_ = parameters_.measure(shadows, trace::TensorKind::gradient, false);
    if (ledger_.sampled()) parameters_.keep_values(shadows);
}

void Session::after_step(std::int64_t optimizer, bool skipped, double scale) {
    const std::lock_guard lock(mutex_);
    in_optimizer_ = false;
    if (!armed()) return;
    // In watch mode gradients are looked at when they cost the step.
    if (skipped && gradients_.empty() && !local())
        gradients_ = parameters_.measure(nullptr, trace::TensorKind::gradient, false);
    if (optimizer == 0 || !step_.losses.empty()) end_step(optimizer, skipped, scale);
}

void Session::declared_step(bool skipped, double scale) {
    const std::lock_guard lock(mutex_);
    if (!armed()) return;
    declares_steps_ = true;
    open_recorder();
    if (looks_at_tensors() && gradients_.empty())
        gradients_ = parameters_.measure(measures() ? &twin()->shadows() : nullptr,
                                         trace::TensorKind::gradient, false);
    end_step(0, skipped, scale);
    backward_seen_ = parameter_written_ = gradient_cleared_ = false;
}

// Parameters every step, their state and buffers in sampled ones.
void Session::measure_tensors() {
    if (!looks_at_tensors()) return;
    using Kind = trace::TensorKind;
    ShadowMap* const shadows = measures() ? &twin()->shadows() : nullptr;
    const bool sampled = ledger_.sampled();
    for (const Kind kind : {Kind::parameter, Kind::optimizer_state, Kind::buffer}) {
        if (kind == Kind::optimizer_state && !sampled) continue;
        auto records = parameters_.measure(shadows, kind, sampled);
        step_.tensors.insert(step_.tensors.end(), std::make_move_iterator(records.begin()),
                             std::make_move_iterator(records.end()));
    }
    parameters_.forget_values();
    if (sampled && shadows) parameters_.keep_untrained(*shadows);
}

void Session::place(trace::DTypePlace place) {
    const std::lock_guard lock(mutex_);
    checkpoints_.push_back(std::move(place));
}

// What lives in which dtype, when it is not what it was.
void Session::put_places() {
    if (ledger_.sampled() || !checkpoints_.empty()) {
        std::vector<trace::DTypePlace> places = parameters_.places();
        for (const trace::OpRecord& op : step_.ops)
            if (op.phase == Phase::forward || op.phase == Phase::backward)
                places.push_back(
                    {trace::TensorRole::activation, op.layer, op.phase, op.dtype, op.calls, op.elements});
        for (const trace::CollectiveRecord& c : step_.collectives)
            places.push_back({trace::TensorRole::collective, c.op, Phase::unknown, c.dtype, c.calls, 0});
        places.insert(places.end(), checkpoints_.begin(), checkpoints_.end());
        checkpoints_.clear();
        std::string key;
        for (const trace::DTypePlace& p : places)
            key += p.layer + '\n' + static_cast<char>(p.role) + static_cast<char>(p.phase) +
                   static_cast<char>(p.dtype);
        if (key == last_places_) return;
        last_places_ = std::move(key);
        step_.places = std::move(places);
    }
}

void Session::end_step(std::int64_t optimizer, bool skipped, double scale) {
    finish_reductions();
    step_.optimizer = static_cast<std::int32_t>(optimizer);
    step_.skipped = skipped;
    step_.has_loss_scale = scale >= 0;
    step_.loss_scale = scale >= 0 ? scale : 0;
    const std::int64_t now = monotonic_ns();
    step_.wall_ns = last_record_ns_ ? now - last_record_ns_ : 0;
    last_record_ns_ = now;
    for (std::size_t type = 0; type < ops_by_dtype_.size(); ++type)
        if (ops_by_dtype_[type])
            step_.dtypes.push_back({dtype_of(static_cast<at::ScalarType>(type)), ops_by_dtype_[type]});
    measure_tensors();
    step_.tensors.insert(step_.tensors.end(), std::make_move_iterator(gradients_.begin()),
                         std::make_move_iterator(gradients_.end()));
    step_.sampled = ledger_.sampled();
    step_.ops = ledger_.take();
    put_places();
    if (open_recorder()) {
        recorder_->step(step_);
        ++steps_recorded_;
    }
    if (optimizer == 0) ++next_step_;
    begin_step();
}

// Without Python there is no hook on optimizers. A step is over when a forward op that records gradients
// follows a backward(), and between them parameters were written or gradients cleared; neither means
// another micro-step. A step after which every weight is what it was counts as skipped.
void Session::forward_op(const Stack& arguments, std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (!declares_steps_ && backward_seen_ && (parameter_written_ || gradient_cleared_)) {
        const bool scaled = root_gradient_ != 1;
        if (measures())
            gradients_ = parameters_.measure(&twin()->shadows(), trace::TensorKind::gradient, false);
        const bool moved = parameter_written_ && parameters_.leaves_fingerprint() != leaves_at_backward_;
        end_step(0, !moved, scaled ? root_gradient_ : -1);
        backward_seen_ = parameter_written_ = gradient_cleared_ = false;
        root_gradient_ = 1;
    }
    for (std::size_t i = arguments.size() - count; i < arguments.size(); ++i)
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (t.requires_grad() && t.is_leaf()) parameters_.add_leaf(t);
        });
}

void Session::wrote(const at::Tensor& target, bool zeroed) {
    const std::lock_guard lock(mutex_);
    if (!backward_seen_ || !target.has_storage()) return;
    const c10::StorageImpl* storage = target.storage().unsafeGetStorageImpl();
    if (parameters_.is_leaf_storage(storage)) parameter_written_ = true;
    if (!zeroed || gradient_cleared_) return;
    parameters_.refresh_gradient_storages();
    gradient_cleared_ = parameters_.is_gradient_storage(storage);
}

// ---- The file. --------------------------------------------------------------------------------------

bool Session::open_recorder() {
    if (recorder_) return true;
    if (recording_tried_ || !armed()) return false;
    recording_tried_ = true;
    if (!lists(options_.ranks, identity_.rank)) return false;
    auto opened = trace::Recorder::open(options_.run_dir, trace::recording_name(identity_),
                                        {.file_bytes = options_.budget, .queue_bytes = 16u << 20});
    if (!opened) {
        if (!options_.quiet)
            std::fprintf(stderr, "mp-trace: nothing is recorded: %s\n", opened.error().message.c_str());
        return false;
    }
    recorder_ = std::move(*opened);
    trace::ProcessRecord process;
    process.rank = identity_.rank;
    process.local_rank = identity_.local_rank;
    process.world_size = identity_.world_size;
    process.restart = identity_.restart;
    process.pid = identity_.pid;
    process.started_unix_ns = unix_ns();
    process.host = identity_.host;
    process.job = identity_.job;
    process.launcher = identity_.launcher;
    process.program = program_name();
    process.framework = "torch " TORCH_VERSION;
    process.adapter = "mp-trace 0.1.0";
    process.mode = options_.mode;
    recorder_->process(process);
    return true;
}

// A twin keeps fp32 copies of parameters, gradients and two optimizer moments.
void Session::say_forecast() {
    forecast_said_ = true;
    const std::uint64_t now = twin() ? twin()->shadows().bytes() : 0;
    char text[256];
    std::snprintf(
        text, sizeof text,
        "twin: %.1f MB held at the first backward; expect 16 B per parameter and 4 B per live activation "
        "element more than without",
        static_cast<double>(now) / 1e6);
    note(trace::NoteKind::memory, text);
    if (!options_.quiet && (identity_.rank.value <= 0)) std::fprintf(stderr, "mp-trace: %s\n", text);
}

void Session::save(const std::string& pattern, bool twin_values) {
    if (pattern.empty() || !twin()) return;
    const auto path = trace::expand_pattern(
        pattern, identity_, [](const char* name) { return std::getenv(name); }, unix_ns() / 1'000'000'000);
    std::string error =
        path ? parameters_.save(*path, twin()->shadows(), twin_values, {}) : path.error().message;
    if (error.empty()) return;
    note(trace::NoteKind::lossy, error);
    if (!options_.quiet) std::fprintf(stderr, "mp-trace: not saved: %s\n", error.c_str());
}

void Session::finish() {
    const std::lock_guard lock(mutex_);
    if (finished_ || !armed()) return;
    finished_ = true;
    const bool step_under_way = !step_.losses.empty() && backward_seen_ && !has_python_ && !declares_steps_;
    if (step_under_way)
        end_step(0, parameters_.leaves_fingerprint() == leaves_at_backward_,
                 root_gradient_ != 1 ? root_gradient_ : -1);
    if (!recorder_) return;
    const std::uint64_t parameters = parameters_.elements();
    if (twin() && options_.mode == trace::Mode::trajectory && parameters > 0) {
        char text[160];
        const auto held = static_cast<double>(twin()->shadows().bytes());
        std::snprintf(text, sizeof text, "twin: %.1f MB held at the end, %.1f B per parameter", held / 1e6,
                      held / static_cast<double>(parameters));
        note(trace::NoteKind::memory, text);
    }
    save(options_.save_twin, true);
    save(options_.save_real, false);
    recorder_->note({trace::NoteKind::end, step_.step, "", static_cast<std::uint64_t>(steps_recorded_)});
    recorder_->flush(2000);
    if (!options_.quiet && steps_recorded_ > 0 && identity_.rank.value <= 0)
        print_summary(options_.tool, options_.run_dir);
}

}  // namespace mp::twin
