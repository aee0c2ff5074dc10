#include "instrument/torch/gradient_sums.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "instrument/torch/cast_graph.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

using torch::autograd::FunctionPostHook;
using torch::autograd::FunctionPreHook;
using torch::autograd::GraphTask;
using torch::autograd::variable_list;

// Two gradients give the same sum in either order.
constexpr unsigned kFewestRegrouped = 3;

Node* starting_node() {
#if MP_TORCH_AT_LEAST(2, 1)
    return torch::autograd::get_current_node().get();
#else
    return nullptr;
#endif
}

// Hooks on a tensor run before the node's own. The list of a leaf is that of its tensor.
std::vector<std::unique_ptr<FunctionPreHook>>& first_hooks(Node& node) {
#if MP_TORCH_AT_LEAST(2, 0)
    return node.tensor_pre_hooks();
#else
    return node.pre_hooks();
#endif
}

// autograd.grad() and backward(inputs=...) run a part of the graph.
bool executes(Node* node) {
    const auto* const info = torch::autograd::get_current_graph_task_exec_info();
    if (!info || info->empty()) return true;
    const auto found = info->find(node);
    return found != info->end() && found->second.should_execute();
}

// The task whose member this is. Torch gives access to few of its members.
GraphTask& task_of(const std::unordered_set<Node*>& graph) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
    constexpr std::size_t offset = offsetof(GraphTask, nodes_in_graph_);
#pragma GCC diagnostic pop
    auto* const bytes = reinterpret_cast<char*>(const_cast<std::unordered_set<Node*>*>(&graph));
    return *reinterpret_cast<GraphTask*>(bytes - offset);
}

// One sum that is followed.
struct Total {
    Node* consumer;
    std::uint32_t input;
    LayerId layer;
    Addend root{};       // the addend of the root, until it is added
    at::Tensor value{};  // of the shadows so far
    unsigned added = 0;
    bool lost = false;
};

// An output of a producer, or an input of a consumer, and its sum.
struct Slot {
    std::uint32_t number;
    std::size_t total;
};

// The root runs already when the hooks are placed, so its output is read where the engine has put it: no other producer
// has run yet, and a cast on the way may have. Undefined if the cast waits for its turn.
at::Tensor output_of_root(const Total& total, GraphTask& task) {
    const std::lock_guard lock(task.mutex_);
    Node* node = total.root.enters;
    for (std::uint32_t input = total.root.input;;) {
        const auto buffer = task.not_ready_.find(node);
        if (buffer != task.not_ready_.end() && buffer->second[input].defined()) return buffer->second[input];
        if (node == total.consumer) return {};
        const auto& next = node->next_edge(0);
        node = next.function.get();
        input = next.input_nr;
    }
}

}  // namespace

// A backward that runs. Its owner is the engine's task.
class GradientSums::Backward {
public:
    Backward(GradientSums& all, const Graph& of) : graph(of), root(starting_node()), all_(all) {}
    ~Backward() { all_.end(*this); }
    Backward(const Backward&) = delete;
    Backward& operator=(const Backward&) = delete;

    void add(const variable_list& outputs, const std::vector<Slot>& slots) noexcept;
    void bind(const variable_list& gradients, const std::vector<Slot>& slots) noexcept;

    const Graph& graph;
    Node* const root;
    std::vector<Placed> placed;
    std::vector<Total> totals;

private:
    // A hook may run in another backward of the same graph.
    bool runs_here() const { return torch::autograd::get_current_graph_task_nodes_in_graph() == &graph; }
    bool can_follow(const at::Tensor& t) const {
        const Parts& parts = all_.parts_;
        return parts.control.twin_active() && !all_.parts_.late.captures() && has_plain_memory(t) &&
               carries_floats(t);
    }
    void add(Total&, const at::Tensor& output);
    void bind(Total&, const at::Tensor& gradient);
    template <typename Work>
    void guarded(Total&, const Work&) noexcept;

    GradientSums& all_;
};

class GradientSums::AddToTotals final : public FunctionPostHook {
public:
    AddToTotals(std::weak_ptr<Backward> backward, std::vector<Slot> slots)
        : backward_(std::move(backward)), slots_(std::move(slots)) {}
    variable_list operator()(const variable_list& outputs, const variable_list&) override {
        if (const auto backward = backward_.lock()) backward->add(outputs, slots_);
        return outputs;
    }

private:
    const std::weak_ptr<Backward> backward_;
    const std::vector<Slot> slots_;
};

class GradientSums::BindTotals final : public FunctionPreHook {
public:
    BindTotals(std::weak_ptr<Backward> backward, std::vector<Slot> slots)
        : backward_(std::move(backward)), slots_(std::move(slots)) {}
    variable_list operator()(const variable_list& gradients) override {
        if (const auto backward = backward_.lock()) backward->bind(gradients, slots_);
        return gradients;
    }

private:
    const std::weak_ptr<Backward> backward_;
    const std::vector<Slot> slots_;
};

// ---- Totals. ----------------------------------------------------------------------------------------

template <typename Work>
void GradientSums::Backward::guarded(Total& total, const Work& work) noexcept {
    try {
        const TwinScope scope;
        work();
    } catch (const std::exception& e) {
        total.lost = true;
        all_.parts_.faults.measuring("sum of gradients", e.what());
    }
}

void GradientSums::Backward::add(const variable_list& outputs, const std::vector<Slot>& slots) noexcept {
    if (!runs_here()) return;
    for (const Slot& slot : slots) {
        Total& total = totals[slot.total];
        const at::Tensor& output = outputs[slot.number];
        if (!output.defined() || total.lost) continue;
        guarded(total, [&] {
            if (total.root.producer) {
                const at::Tensor first = output_of_root(total, task_of(graph));
                total.root.producer = nullptr;
                add(total, first);
            }
            add(total, output);
        });
    }
}

void GradientSums::Backward::add(Total& total, const at::Tensor& output) {
    total.lost |= !output.defined() || !can_follow(output) ||
                  (total.value.defined() && total.value.sizes() != output.sizes());
    if (total.lost) return;
    ShadowMap& shadows = all_.parts_.shadows;
    if (!total.value.defined()) {
        total.value = shadows.value(output);  // a copy, because the engine may add to the output in place
    } else {
        const at::Tensor shadow = shadows.find(output).shadow;
        total.value.add_(shadow.defined() ? shadow : shadows.value(output));
    }
    ++total.added;
}

void GradientSums::Backward::bind(const variable_list& gradients, const std::vector<Slot>& slots) noexcept {
    if (!runs_here()) return;
    for (const Slot& slot : slots)
        guarded(totals[slot.total], [&] { bind(totals[slot.total], gradients[slot.number]); });
}

void GradientSums::Backward::bind(Total& total, const at::Tensor& gradient) {
    at::Tensor value = std::move(total.value);
    if (!gradient.defined() || (!total.lost && total.added < kFewestRegrouped)) return;
    if (total.lost || !can_follow(gradient) || gradient.sizes() != value.sizes())
        return all_.parts_.coverage.regrouped(all_.parts_.layers.name(total.layer),
                                              "an addend has no shadow");
    all_.parts_.shadows.bind(gradient, value);
}

// ---- Backwards. -------------------------------------------------------------------------------------

// The first node of a backward runs alone, so only one thread sees a new task.
void GradientSums::node_begins(ThreadState& state) {
    const Graph* const graph = torch::autograd::get_current_graph_task_nodes_in_graph();
    if (!graph) return;  // the program calls the node itself
    // A task has the address of an ended one, but not the number of ended backwards.
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    if (state.backward == graph && state.backwards_ended == ended) return;
    state.backward = graph;
    state.backwards_ended = ended;
    bool alone = false;
    {
        const std::lock_guard lock(mutex_);
        if (std::ranges::any_of(running_, [&](const Backward* b) { return &b->graph == graph; })) return;
        alone = running_.empty();
    }
    if (alone) parts_.collectives.finish_chained();
    begin(*graph);
}

void GradientSums::begin(const Graph& graph) {
    const auto backward = std::make_shared<Backward>(*this, graph);
    // Torch destroys the callbacks with the task, whether it succeeds or not.
    torch::autograd::Engine::get_default_engine().queue_callback([backward] {});
    std::vector<std::pair<LayerId, const char*>> unfollowed;
    {
        const std::lock_guard lock(mutex_);
        running_.push_back(backward.get());
        if (!parts_.control.twin_active() || parts_.late.captures() || rule_disabled("regrouped")) return;
        unfollowed = place_hooks(backward);
    }
    for (const auto& [layer, why] : unfollowed) parts_.coverage.regrouped(parts_.layers.name(layer), why);
}

// Returns the sums that get no hooks.
std::vector<std::pair<LayerId, const char*>> GradientSums::place_hooks(
    const std::shared_ptr<Backward>& backward) {
    std::vector<std::pair<LayerId, const char*>> unfollowed;
    std::map<Node*, std::vector<Slot>> producers, consumers;
    for (const RegroupedSum& sum : regrouped_sums(backward->graph, backward->root)) {
        if (!executes(sum.consumer)) continue;
        const LayerId layer =
            parts_.layers.of_node(sum.cast->thread_id(), static_cast<std::int64_t>(sum.cast->sequence_nr()));
        if (const char* const why = obstacle(sum, *backward)) {
            unfollowed.emplace_back(layer, why);
            continue;
        }
        const std::size_t index = backward->totals.size();
        Total& total = backward->totals.emplace_back(Total{sum.consumer, sum.input, layer});
        consumers[sum.consumer].push_back({sum.input, index});
        for (const Addend& addend : sum.addends) {
            if (addend.producer != backward->root)
                producers[addend.producer].push_back({addend.output, index});
            else if (executes(addend.enters))
                total.root = addend;
        }
    }
    for (auto& [node, slots] : producers) {
        std::ranges::stable_sort(slots, {}, &Slot::number);
        auto& hooks = node->post_hooks();
        hooks.push_back(std::make_unique<AddToTotals>(backward, std::move(slots)));
        backward->placed.push_back({weak(*node), hooks.back().get()});
    }
    for (auto& [node, slots] : consumers) {
        auto& hooks = first_hooks(*node);
        hooks.insert(hooks.begin(), std::make_unique<BindTotals>(backward, std::move(slots)));
        backward->placed.push_back({weak(*node), hooks.front().get()});
    }
    return unfollowed;
}

const char* GradientSums::obstacle(const RegroupedSum& sum, const Backward& backward) const {
    if (sum.unfollowed) return sum.unfollowed;
    if (!backward.root) return "this torch does not tell where a backward starts";
    const bool shared = runs_elsewhere(sum.consumer, &backward) ||
                        std::ranges::any_of(sum.addends, [&](const Addend& addend) {
                            return runs_elsewhere(addend.producer, &backward);
                        });
    return shared ? "another backward runs the same nodes" : nullptr;
}

bool GradientSums::runs_elsewhere(Node* node, const Backward* except) const {
    return std::ranges::any_of(running_, [&](const Backward* b) {
        return b != except && (b->root == node || b->graph.count(node) != 0);
    });
}

void GradientSums::end(const Backward& backward) noexcept {
    try {
        std::vector<NodePointer> alive;  // freed after the lock: freeing a node may run Python
        {
            const std::lock_guard lock(mutex_);
            std::erase(running_, &backward);
            leftover_.insert(leftover_.end(), backward.placed.begin(), backward.placed.end());
            std::erase_if(leftover_, [&](const Placed& hook) {
                alive.push_back(hook.node.lock());
                Node* const node = alive.back().get();
                if (node && runs_elsewhere(node, nullptr)) return false;
                if (node) {
                    const auto is_it = [&](const auto& h) { return h.get() == hook.hook; };
                    std::erase_if(node->post_hooks(), is_it);
                    std::erase_if(first_hooks(*node), is_it);
                }
                return true;
            });
        }
    } catch (const std::exception& e) {
        parts_.faults.measuring("sum of gradients", e.what());
    }
    ended_.fetch_add(1, std::memory_order_release);
}

}  // namespace mp::twin
