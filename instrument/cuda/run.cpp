#include "instrument/cuda/run.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/communicators.hpp"
#include "instrument/cuda/kernel_pointers.hpp"
#include "instrument/cuda/nvtx.hpp"
#include "instrument/cuda/samples.hpp"
#include "kernels/cpu/walk.hpp"
#include "runtime/trace/job_directory.hpp"
#include "runtime/trace/note_texts.hpp"
#include "runtime/trace/process.hpp"

namespace mp::raw {
namespace {

constexpr int kFlushMilliseconds = 2000;
constexpr int kWaitMilliseconds = 2000;  // for the device, at the end
constexpr std::chrono::milliseconds kPatience{5}, kPatienceOfSteps{200}, kPatienceAtEnd{2000};
constexpr int kFirstWithBf16 = 80;  // compute capability 8.0
constexpr std::size_t kMostKernels = 4096;
constexpr std::size_t kMostNotes = 4096;
constexpr std::size_t kMostNamed = 1 << 16;  // places of the dtype map

// The variables through which one tool at a time is loaded, and what is missing without them.
constexpr std::pair<const char*, const char*> kPlaces[] = {
    {"NVTX_INJECTION64_PATH", "ranges are not seen"},
    {"CUDA_INJECTION64_PATH", "kernels are not seen"},
    {"NCCL_PROFILER_PLUGIN", "NCCL's algorithms are not seen"}};

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

trace::ProcessRecord describe(const trace::Identity& identity) {
    trace::ProcessRecord process = trace::describe_process(identity);
    process.program = trace::executable();
    process.framework = trace::kRawFramework;
    process.mode = trace::Mode::watch;
    return process;
}

std::string demangled(const std::string& symbol) {
    int status = 0;
    char* const text = ::abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    std::string out = status == 0 && text ? text : symbol;
    std::free(text);
    return out;
}

// The place of a tensor that the program names: "Layer 2/mlp/weight" is in layer "Layer 2/mlp".
trace::DTypePlace place_of(const NamedTensor& tensor) {
    using Role = trace::TensorRole;
    constexpr Role kRoles[] = {Role::parameter, Role::gradient, Role::buffer, Role::optimizer_state,
                               Role::optimizer_state};  // of mptrace.h
    const auto role = static_cast<std::size_t>(tensor.role);
    const std::size_t slash = tensor.name.rfind('/');
    return {role < std::size(kRoles) ? kRoles[role] : Role::buffer,
            slash == std::string::npos ? std::string() : tensor.name.substr(0, slash),
            Phase::unknown,
            tensor.dtype,
            1,
            static_cast<std::uint64_t>(tensor.elements)};
}

// The buffer of a collective that it reads or writes past the end of its allocation, as one whose count is in bytes
// does; null: none.
const void* beyond(const Collective& c) {
    const auto past = [&c](const void* at, std::uint64_t elements) {
        if (!at || elements == 0) return false;
        const Allocation a = Meter::allocation_of(at);
        return a.id != 0 && a.is_whole && !a.holds(at, elements * c.width);
    };
    if (past(c.send, c.sent)) return c.send;
    return past(c.receive, c.received) ? c.receive : nullptr;
}

}  // namespace

Run::Run(trace::Options options, trace::Identity identity)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      log_(EventLog::open()),
      step_began_ns_(now_ns()) {}

Run::Lock Run::lock_soon(std::chrono::milliseconds most) const {
    Lock lock(mutex_, most);
    if (!lock) ++missed_;
    return lock;
}

// ---- Steps. ------------------------------------------------------------------------------------------

const Place& Run::enter(PlaceId parent, std::string_view range) {
    const Place& place = places_.child(parent, range);
    if (log_) log_->place(place, parent, range);
    steps_.saw(place.phase);
    return place;
}

bool Run::begin(std::int64_t number, bool of_thread) {
    if (log_) log_->begin(number);
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock || finished_ || !steps_.begin(number, of_thread)) return false;
    any_step_ = true;
    named_step_ = number;
    return true;
}

bool Run::begin_step(std::int64_t number) { return begin(number, true); }
bool Run::begin_step_apart(std::int64_t number) { return begin(number, false); }

void Run::end_step() {
    if (log_) log_->end();
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock || finished_) return;
    for (const OpenSteps::Ended& ended : steps_.end_of_thread()) end_step_locked(ended, true);
    drain();
}

void Run::end_step_apart(std::int64_t number) {
    if (log_) log_->end();
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock || finished_) return;
    for (const OpenSteps::Ended& ended : steps_.end(number)) end_step_locked(ended, true);
    drain();
}

// The number that the calling thread's step will have, as far as that is known before it ends.
std::uint64_t Run::number_of_step() const {
    const std::int64_t next = last_step_ + 1;
    return static_cast<std::uint64_t>(steps_.are_several() ? std::max(next, steps_.own()) : next);
}

// A step has the number in the name of its range, unless the numbers do not rise.
void Run::end_step_locked(const OpenSteps::Ended& of, bool ended) {
    StepTally& s = *of.tally;
    trace::StepRecord& record = s.record;
    last_step_ = std::max(last_step_ + 1, ended ? of.number : 0);
    record.step = mp::Step{last_step_};
    record.optimizer = ended ? 0 : trace::kNoOptimizer;
    const std::int64_t now = now_ns();
    record.wall_ns = now - std::exchange(step_began_ns_, now);
    add_launches(record);
    leave_weights(of.tally);
    if (devices_.size() < 2) s.leave_out_devices();
    record.times = activity::take(places_);
    s.name_forward();
    s.name_forward_times();
    const unsigned phases = of.phases;
    // A step that the end of the program cut off may have been on its way to its update.
    s.trained = ended && (phases >> static_cast<unsigned>(Phase::backward) & 1) != 0;
    s.updated = (phases >> static_cast<unsigned>(Phase::optimizer) & 1) != 0;
    skips_.ended(s);
    close_batch();
    ended_.push_back(of.tally);
}

void Run::add_launches(trace::StepRecord& record) {
    const std::lock_guard lock(launch_mutex_);
    record.coverage.by_name = std::exchange(launches_, 0);
    record.coverage.ops += record.coverage.by_name;
}

void Run::step_done(bool skipped, double loss_scale) {
    if (log_) log_->done(skipped, loss_scale);
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock) return;
    if (finished_) return;
    any_step_ = true;
    named_step_ = last_step_ + 1;
    OpenSteps::Ended ended = steps_.end_now();
    ended.number = named_step_;
    ended.tally->told = true;
    trace::StepRecord& record = ended.tally->record;
    record.skipped = skipped;
    record.has_loss_scale = loss_scale >= 0;
    record.loss_scale = std::max(loss_scale, 0.0);
    end_step_locked(ended, true);
    drain();
}

void Run::name_tensor(NamedTensor tensor) {
    if (log_) log_->tensor(tensor);
    const Lock lock = lock_soon(kPatience);
    if (!lock) return;
    if (finished_) return;
    names_.set(tensor.data, static_cast<std::uint64_t>(tensor.elements) * cpu::width_of(tensor.dtype),
               tensor.name);
    if (named_.size() < kMostNamed) named_[tensor.data] = place_of(tensor);
    weights_.name(std::move(tensor));
}

std::string Run::memory_of(const void* at, std::uint64_t allocation) const {
    std::string name = names_.of(at);
    if (!name.empty() || !at || allocation == 0) return name;
    const Allocation a = Meter::allocation_of(at);
    if (a.id != allocation) return "memory that was freed since";
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - a.begin;
    return "allocation " + std::to_string(a.id) + " of " + std::to_string(a.bytes) + " bytes" +
           (a.is_pooled ? " of a pool" : "") + (offset > 0 ? ", byte " + std::to_string(offset) : "");
}

// The first product of a step on a device reads weights, so it has a stream on which they are not being written: all
// updates of the step before have come there, and none of this step.
void Run::look_at_weights(abi::Stream stream, int device) {
    if (const std::shared_ptr<StepTally> before = std::exchange(weighed_[device], nullptr)) {
        Batch batch;
        if (!free_.empty()) {
            batch.slots = std::move(free_.back());
            free_.pop_back();
        } else {
            batch.slots = meter_.slots();
        }
        if (batch.slots) batch.weights = weights_.compare(meter_, stream, *batch.slots, device);
        if (!batch.weights.empty()) {
            batch.step = before;
            batch.fence = meter_.fence();
            waiting_.push_back(std::move(batch));
        } else {
            --before->open;
            if (batch.slots) free_.push_back(std::move(batch.slots));
        }
        drain();
    }
    if (!is_sampled() || !weights_.any() || !weights_.copy(meter_, stream, device)) return;
    weighed_[device] = steps_.work();
    ++steps_.work()->open;
}

// A step waits for its weights only until the end of the next one.
void Run::leave_weights(const std::shared_ptr<StepTally>& ended) {
    for (auto& [device, step] : weighed_)
        if (step && step != ended && step->is_ended) --std::exchange(step, nullptr)->open;
    ended->is_ended = true;
}

// ---- Calls. ------------------------------------------------------------------------------------------

// The steps whose weights are compared, and in which the first product of each place is computed again in part.
bool Run::is_sampled() const {
    const std::uint64_t next = number_of_step();
    return next % 32 == 0 || (next < 32 && std::has_single_bit(next));
}

Run::Ticket Run::before(PlaceId place, const Product& product) {
    if (log_) log_->product(place, product);
    const Lock lock = lock_soon(kPatience);
    if (!lock) return {};
    if (finished_) return {};
    const int device = Meter::device();
    if (device >= 0) devices_.insert(device);
    Call call;
    call.step = steps_.work();
    StepTally& s = *call.step;
    if (s.devices.insert(device).second) look_at_weights(product.stream, device);
    const auto [record, ordinal] = s.count(places_, place, device, product);
    call.record = record;
    call.ordinal = ordinal;
    loose_sums_ += product.loose_sums;
    const bool bf16 = product.inputs[0].dtype == DType::bf16;
    s.record.ops[record].emulated += bf16 && meter_.is_below_capability(kFirstWithBf16);
    if (!is_measurable(product.result)) return {};
    cpu::TensorView views[Product::kMost];
    for (int i = 0; i < product.count; ++i) {
        if (!is_measurable(product.inputs[i])) return {};
        views[i] = view_of(product.inputs[i]);
    }
    call.inputs = product.count;
    const Ticket ticket = measure(call, product.stream, views);
    const bool is_first = s.record.ops[record].calls == 1;
    if (ticket.batch != 0 && is_first) expect(ticket, batch_.calls.back(), product);
    return ticket;
}

void Run::after(Ticket ticket, const Product& product, bool succeeded) {
    if (ticket.batch == 0) return;
    const Lock lock = lock_soon(kPatience);
    if (!lock) return;
    measure_result(ticket, product.stream, view_of(product.result), succeeded);
    if (ticket.batch != 0 && ticket == sampled_) compare(ticket, product.stream, succeeded);
}

Run::Ticket Run::before(const Collective& c) {
    if (log_) log_->collective("collective", c);
    const Lock lock = lock_soon(kPatience);
    if (!lock) return {};
    if (finished_) return {};
    Call call;
    call.product = false;
    if (c.device >= 0) devices_.insert(c.device);
    call.step = steps_.work();
    StepTally& s = *call.step;
    const auto [record, ordinal] = s.count(c);
    call.record = record;
    call.ordinal = ordinal;
    if (const void* const at = is_sampled() ? beyond(c) : nullptr) {
        trace::CollectiveRecord& collective = s.record.collectives[record];
        if (collective.beyond++ == 0) collective.memory = memory_of(at, Meter::allocation_id_of(at));
    }
    // What is moved and not added up keeps its values.
    if (!*c.reduction || c.dtype == DType::unknown || !c.send || c.sent == 0) return {};
    if (is_of_other_device(c)) {
        ++unmeasured_;
        return {};
    }
    const cpu::TensorView view = cpu::contiguous(c.send, c.dtype, static_cast<std::int64_t>(c.sent));
    call.inputs = 1;
    const Ticket ticket = measure(call, c.stream, &view);
    if (ticket.batch != 0) sketch(ticket, c);
    return ticket;
}

void Run::after(Ticket ticket, const Collective& c, bool succeeded) {
    if (ticket.batch == 0) return;
    const Lock lock = lock_soon(kPatience);
    if (!lock) return;
    // A rank that is not the root of a reduction receives nothing.
    const auto count = static_cast<std::int64_t>(c.received);
    measure_result(ticket, c.stream, cpu::contiguous(c.receive, c.dtype, count),
                   succeeded && c.receive && count > 0);
    sketch_result(ticket, c.stream, succeeded);
}

// NCCL uses the default stream of the rank's device, which is ours only while that device is current.
bool Run::is_of_other_device(const Collective& c) const {
    if (!abi::is_default(c.stream) || c.device < 0) return false;
    const int here = Meter::device();
    return here >= 0 && here != c.device;
}

void Run::chose(const Collective& c, const std::string& algorithm) {
    if (log_) log_->collective("chose", c, algorithm);
    const Lock lock = lock_soon(kPatience);
    if (!lock || finished_) return;
    StepTally& s = *steps_.work();
    if (const auto collective = s.find(c)) s.add_algorithm(*collective, algorithm);
}

void Run::told(const Collective& c, const std::string& algorithm) {
    if (log_) log_->collective("told", c, algorithm);
    const Lock lock = lock_soon(kPatience);
    if (!lock || finished_) return;
    StepTally& s = *steps_.work();
    s.add_algorithm(s.count(c).record, algorithm);
}

// ---- Kernels by name, notes, the file. -----------------------------------------------------------------

void Run::launched(const char* symbol) {
    if (log_) log_->launch(symbol);
    const std::lock_guard lock(launch_mutex_);
    ++launches_;
    const auto found = kernels_.find(symbol);
    if (found != kernels_.end()) {
        ++found->second;
    } else if (kernels_.size() < kMostKernels) {
        kernels_.emplace(symbol, 1);
    }
}

bool Run::has_launched() const {
    const std::lock_guard lock(launch_mutex_);
    return launches_ > 0;
}

void Run::learn_rank(int rank, int ranks) {
    if (log_) log_->rank(rank, ranks);
    const Lock lock = lock_soon(kPatience);
    if (!lock) return;
    if (identity_.rank.known() || rank < 0 || recorder_) return;
    identity_.launcher = "NCCL";
    identity_.rank = Rank{rank};
    identity_.world_size = ranks;
}

void Run::note(trace::NoteKind kind, std::string_view text, std::uint64_t count) {
    const Lock lock = lock_soon(kPatience);
    if (!lock) return;
    note_locked(kind, text, count);
}

void Run::note_locked(trace::NoteKind kind, std::string_view text, std::uint64_t count) {
    if (finished_ || notes_.size() >= kMostNotes) return;
    auto& [total, since] = notes_.try_emplace({kind, std::string(text)}, 0, last_step_ + 1).first->second;
    total += count;
}

bool Run::open() {
    if (recorder_) return true;
    if (std::exchange(tried_, true)) return false;
    const auto lists = [this](const trace::RankRange& r) {
        return identity_.rank.value >= r.first && identity_.rank.value <= r.last;
    };
    if (!options_.ranks.empty() && std::none_of(options_.ranks.begin(), options_.ranks.end(), lists))
        return false;
    directory_ = trace::job_directory(options_.run_dir, identity_);
    auto opened = trace::Recorder::open(directory_, trace::recording_name(identity_),
                                        {.file_bytes = options_.budget, .queue_bytes = 16u << 20});
    if (!opened) {
        if (!options_.quiet)
            std::fprintf(stderr, "mp-trace: nothing is recorded: %s\n", opened.error().message.c_str());
        return false;
    }
    recorder_ = std::move(*opened);
    trace::ProcessRecord process = describe(identity_);
    const Members here = members();
    process.local_ranks = here.count;
    process.members = here.text;
    process.nvtx_domains = nvtx::domains();
    recorder_->process(process);
    return true;
}

void Run::write_notes() {
    if (!any_step_)
        note_locked(trace::NoteKind::not_observed,
                    "no NVTX range names a step, so the whole run is one (--step-range 'Train step *')", 1);
    if (unmeasured_ > 0)
        note_locked(trace::NoteKind::not_observed,
                    "calls of libraries whose tensors were not measured" +
                        (meter_.refusal().empty() ? std::string() : ": " + meter_.refusal()),
                    unmeasured_);
    if (loose_sums_ > 0) note_locked(trace::NoteKind::not_observed, trace::kLooseSums, loose_sums_);
    if (missed_ > 0)
        note_locked(trace::NoteKind::not_observed,
                    "calls of libraries while another thread waited for the device", missed_);
    if (activity::dropped() > 0)
        note_locked(trace::NoteKind::not_observed, "kernels whose times CUPTI dropped", activity::dropped());
    if (places_.dropped() > 0)
        note_locked(trace::NoteKind::not_observed, "NVTX ranges with too many different names",
                    places_.dropped());
    if (weights_.too_large() > 0)
        note_locked(trace::NoteKind::not_observed,
                    "named weights beyond 256 MiB, whose updates were not compared", weights_.too_large());
    if (weights_.gone() > 0)
        note_locked(trace::NoteKind::not_observed,
                    "named weights that were not compared, because their memory was freed or is smaller",
                    weights_.gone());
    for (const auto& [variable, what] : kPlaces) {
        const char* const value = std::getenv(variable);
        if (value && *value && !std::strstr(value, "libmptrace_cuda"))
            note_locked(
                trace::NoteKind::not_observed,
                std::string(variable) + " names another tool's library, which keeps its place: " + what, 1);
    }
    for (const auto& [symbol, launches] : kernels_) {
        const std::string name = demangled(symbol), pointers = pointers_of(name);
        note_locked(trace::NoteKind::not_observed,
                    trace::kSeenByName + name + (pointers.empty() ? "" : " " + pointers), launches);
    }
    for (const auto& [key, value] : notes_)
        recorder_->note({key.first, mp::Step{value.second}, key.second, value.first});
}

void Run::finish(int status) noexcept {
    activity::flush();
    try {
        const Lock lock = lock_soon(kPatienceAtEnd);
        if (!lock) return;
        if (finished_) return;
        if (log_) log_->flush();
        // Without ranges that name steps the run is one step. Else the rest belongs to the step that did not end.
        std::vector<OpenSteps::Ended> rest = steps_.end_all();
        // A program whose kernels are all its own makes no call of a library.
        if (rest.empty() && last_step_ < 0 && has_launched()) rest.push_back(steps_.end_now());
        for (const OpenSteps::Ended& step : rest) end_step_locked(step, !any_step_);
        if (!ended_.empty())
            for (trace::TimeRecord& time : activity::take(places_))
                ended_.back()->record.times.push_back(std::move(time));
        if (!ended_.empty()) ended_.back()->name_forward_times();
        closing_ = true;
        const timespec millisecond{0, 1'000'000};
        drain();
        for (int waited = 0; !waiting_.empty() && waited < kWaitMilliseconds; ++waited) {
            ::nanosleep(&millisecond, nullptr);
            drain();
        }
        for (const Batch& batch : waiting_) unmeasured_ += batch.calls.size();
        for (const std::shared_ptr<StepTally>& step : ended_) step->open = 0;
        write_ready();
        if (recorder_) {
            write_notes();
            recorder_->note({trace::NoteKind::end, mp::Step{last_step_}, trace::end_by(status),
                             static_cast<std::uint64_t>(written_)});
            recorder_->flush(kFlushMilliseconds);
        }
        finished_ = true;
        // NOLINTNEXTLINE(bugprone-empty-catch): the program ends; what is written is readable
    } catch (const std::exception&) {
    }
}

void Run::abandon_after_fork() noexcept {
    if (recorder_) recorder_->abandon_after_fork();
}

void Run::abandon() noexcept {
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock) return;
    finished_ = true;
}

std::int32_t Run::rank() const {
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock) return -1;
    return identity_.rank.value;
}

std::string Run::directory() const {
    const Lock lock = lock_soon(kPatienceOfSteps);
    if (!lock) return {};
    return recorder_ ? directory_ : std::string();
}

}  // namespace mp::raw
