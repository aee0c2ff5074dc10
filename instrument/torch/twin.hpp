#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "instrument/torch/call.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/shadow_arguments.hpp"

namespace mp::twin {

class Sample;

// Re-runs the program's ops on their shadows. Its only state between calls is in the parts. Safe from any thread.
class Twin {
public:
    explicit Twin(Parts& parts)
        : parts_(parts), arguments_(parts.control, parts.now, parts.coverage, parts.shadows) {}

    // Runs the real op and the twin's op. The stack then holds the real results. Throws only exceptions of the real
    // op.
    void run(const OpInfo&, const c10::OperatorHandle&, c10::DispatchKeySet below, Stack*);
    // Runs the real op only. Its results and the arguments it writes are no longer followed, now and later.
    void leave(const OpInfo&, const c10::OperatorHandle&, c10::DispatchKeySet below, Stack*);

private:
    // ---- Steps of every rule.
    void take_arguments(Call&);
    // Throws GivenUp where the program has needed the twin's memory.
    void run_real(Call&);
    struct GivenUp : std::exception {};
    // Sets the results of the same op on the shadows. If the op threw, returns false and the results have no shadow.
    bool run_shadow(Call&, Stack& results);
    void bind_results(Call&, const Stack& results);
    void after_writes(Call&);
    template <typename Visit>
    void for_each_result(const Call&, const Visit&);
    void lose_results(Call&);
    std::uint64_t result_bytes(const Call&) const;

    // ---- Rules.
    void follow(Call&);
    void generic(Call&);
    void sampler(Call&);
    void random(Call&);
    void dropout(Call&);
    void unscale(Call&);
    void follow_real(Call&);
    void by_index(Call&);
    at::Tensor picked(const Call&);
    void no_shadow(Call&);
    void leak(Call&);
    void collective(Call&);
    void not_observed(Call&);
    void foreign(Call&);

    struct Reduction;
    std::shared_ptr<Reduction> begin_reduction(const Call&);
    void measure_reduction(const trace::CollectiveRecord& like, const at::Tensor& real,
                           const at::Tensor& exact);
    std::function<void()> finisher_of(std::shared_ptr<Reduction>);

    bool prepare_or_blank(Call&);
    void bind_result(Call&, const IValue& real, const IValue& shadow);
    void bind_tensor(Call&, const at::Tensor& real, const at::Tensor& shadow);
    bool count_flips(const at::Tensor& real, const at::Tensor& twin);
    void remember_cast(const Call&);
    void report_sorted_norms();
    void keep_integers(const Call&, const at::Tensor& real, const at::Tensor& twin);
    void measure_local(Call&, const Stack& results);
    void prepare_sample(Call&, Sample&);
    void look_at_targets(Call&) const;
    void measure(Call&, const Stack& results, Sample&);

    Parts& parts_;
    ShadowArguments arguments_;
};

}  // namespace mp::twin
