#pragma once

#include <functional>
#include <memory>

#include "instrument/torch/op_info.hpp"
#include "instrument/torch/session.hpp"
#include "instrument/torch/shadow_map.hpp"

namespace mp::twin {

class Sample;

// One call of an op on its way through the twin.
struct Call {
    Call(const OpInfo& i, const c10::OperatorHandle& o, c10::DispatchKeySet b, Stack* s)
        : info(i), op(o), below(b), stack(s) {}

    const OpInfo& info;
    const c10::OperatorHandle& op;
    c10::DispatchKeySet below;  // where the real op goes on
    Stack* stack;               // the program's: arguments before, results after

    std::vector<IValue> real;    // arguments
    std::vector<IValue> shadow;  // the same for the twin
    enum class Real : std::uint8_t { pending, running, done } state = Real::pending;
    bool possible = true;  // every float argument has a shadow
    bool bytes = false;    // floats travel through 1-byte tensors
    bool local = false;    // the arguments of `shadow` are the real ones, widened
    const char* why_not = "";
    bool target_was_finite = true;  // before the op, of what it changes in place

    struct Pair {
        at::Tensor real, shadow;
        bool apart = false;  // the shadow has memory of its own, not the map's
    };
    std::vector<Pair> written_floats;
    std::vector<Pair> written_integers;  // shadow: a copy that the twin's op writes
};

// Re-runs the program's ops on their shadows.
class Twin {
public:
    explicit Twin(Session& session) : session_(session) {}

    // Runs the real op, and the twin's; the stack then holds the real results. Throws what the real op
    // throws and nothing else.
    void run(const OpInfo&, const c10::OperatorHandle&, c10::DispatchKeySet below, Stack*);

    ShadowMap& shadows() { return shadows_; }
    // The twin's value of a tensor: a copy in fp32; a copy of the real values where there is no shadow.
    at::Tensor value(const at::Tensor& real);

    // ---- Steps of every rule; collectives.cpp uses them too.
    void take_arguments(Call&);
    void prepare(Call&);
    void run_real(Call&);
    // The results of the same op on the shadows; false, with the twin's outputs lost, when it threw.
    bool run_shadow(Call&, Stack& results);
    void bind_results(Call&, const Stack& results);
    void after_writes(Call&);
    void lose_results(Call&);
    std::uint64_t result_bytes(const Call&) const;

private:
    void follow(Call&);
    void generic(Call&);
    void sampler(Call&);
    void random(Call&);
    void dropout(Call&);
    void unscale(Call&);
    void follow_real(Call&);
    void by_index(Call&);
    void no_shadow(Call&);
    void leak(Call&);
    void collective(Call&);
    void not_observed(Call&);

    struct Reduction;
    std::shared_ptr<Reduction> begin_reduction(const Call&);
    static std::function<void()> finisher_of(std::shared_ptr<Reduction>);

    IValue convert(Call&, const Argument&, const IValue&);
    at::Tensor convert_tensor(Call&, const Argument&, const at::Tensor&);
    at::Tensor shadow_of_float(Call&, const Argument&, const at::Tensor&);
    at::Tensor shadow_of_integer(Call&, const Argument&, const at::Tensor&);
    void prepare_blanks(Call&);
    bool prepare_or_blank(Call&);
    bool moves_floats_as_bytes(const Call&);
    void bind_result(Call&, const IValue& real, const IValue& shadow);
    void bind_tensor(Call&, const at::Tensor& real, const at::Tensor& shadow);
    void compare_integers(const at::Tensor& real, const at::Tensor& shadow);
    void measure_local(Call&, const Stack& results);
    void prepare_sample(Call&, Sample&);
    void look_at_targets(Call&) const;
    void measure(Call&, const Stack& results, Sample&);

    Session& session_;
    ShadowMap shadows_;
};

Twin* twin() noexcept;
void set_twin(Twin*) noexcept;

// Whether a tensor's memory is that of an argument.
bool shares_memory(const Call&, const at::Tensor&);

// Every tensor inside an argument or result, lists of lists included.
template <typename Visit>
void for_each_tensor(const IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList()) {
        const c10::List<at::Tensor> list = value.toTensorList();
        for (std::size_t i = 0; i < list.size(); ++i) {
            const at::Tensor t = list.get(i);
            if (t.defined()) visit(t);
        }
    } else if (value.isList()) {
        const c10::List<IValue> list = value.toList();
        for (std::size_t i = 0; i < list.size(); ++i) for_each_tensor(list.get(i), visit);
    }
}

}  // namespace mp::twin
