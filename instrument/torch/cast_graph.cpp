#include "instrument/torch/cast_graph.hpp"

#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <span>
#include <typeinfo>
#include <unordered_map>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

using torch::autograd::Edge;
using Cast = torch::autograd::generated::ToCopyBackward0;

bool is_twin_float(at::ScalarType type) {
    return c10::isFloatingType(type) && twin_dtype(type) == at::kFloat;
}

// Whether an fp32 run has no such node. A copy that keeps its dtype is a node there too.
bool is_cast(const Node& node) {
    if (typeid(node) != typeid(Cast) || node.num_inputs() != 1 || node.num_outputs() != 1) return false;
    const auto& from = static_cast<const Cast&>(node).self_options;
    const auto& to = node.input_metadata(0).options();
    const at::ScalarType before = c10::typeMetaToScalarType(from.dtype());
    const at::ScalarType after = c10::typeMetaToScalarType(to.dtype());
    return before != after && is_twin_float(before) && is_twin_float(after) && from.device() == to.device() &&
           from.layout() == to.layout();
}

// An edge that arrives at a node, seen from that node.
struct Arrival {
    Node* from;
    std::uint32_t output;  // of `from`
    std::uint32_t input;
};

struct Input {
    Node* node;
    std::uint32_t number;
    bool operator==(const Input&) const = default;
};

struct HashInput {
    std::size_t operator()(const Input& input) const noexcept {
        return std::hash<Node*>()(input.node) * 31 + input.number;
    }
};

class CastGraph {
public:
    CastGraph(const std::unordered_set<Node*>& graph, Node* root) : graph_(graph), root_(root) {}

    std::vector<RegroupedSum> find() {
        // A cast at the root has no producer in the graph, so it is one.
        for (Node* const node : graph_)
            if (node != root_ && is_cast(*node)) arrivals_.emplace(node, Arrivals{true, {}});
        if (arrivals_.empty()) return {};
        find_consumers();
        for (Node* const node : graph_) collect_arrivals(*node);
        if (root_ && graph_.count(root_) == 0) collect_arrivals(*root_);
        for (auto& [node, arrivals] : arrivals_) put_in_order(arrivals.edges);
        std::vector<RegroupedSum> found;
        for (const auto& [consumer, cast] : consumers_) check(consumer, cast, found);
        return found;
    }

private:
    struct Arrivals {
        bool is_cast;
        std::vector<Arrival> edges;  // by input, then in the order in which the engine adds them
    };

    // The inputs to which casts lead. A chain of casts is followed from its last cast only.
    void find_consumers() {
        std::vector<std::pair<Input, Node*>> reached;
        for (const auto& [node, arrivals] : arrivals_) {
            const Edge& next = node->next_edge(0);
            if (next.is_valid() && arrivals_.count(next.function.get()) == 0)
                reached.push_back({{next.function.get(), next.input_nr}, node});
        }
        for (const auto& [input, cast] : reached) {
            Node*& first = consumers_.emplace(input, cast).first->second;
            if (cast->sequence_nr() < first->sequence_nr()) first = cast;
            arrivals_.emplace(input.node, Arrivals{false, {}});
        }
    }

    void collect_arrivals(Node& node) {
        const auto& edges = node.next_edges();
        for (std::size_t i = 0; i < edges.size(); ++i) {
            if (!edges[i].is_valid()) continue;
            const auto at = arrivals_.find(edges[i].function.get());
            if (at != arrivals_.end())
                at->second.edges.push_back({&node, static_cast<std::uint32_t>(i), edges[i].input_nr});
        }
    }

    // Nodes run in falling order of their numbers, the root first; a node's outputs are added in their order.
    bool is_before(Node* a, std::uint32_t output_a, Node* b, std::uint32_t output_b) const {
        if (a == b) return output_a < output_b;
        if (a == root_ || b == root_) return a == root_;
        return a->sequence_nr() > b->sequence_nr();
    }

    void put_in_order(std::vector<Arrival>& edges) const {
        std::sort(edges.begin(), edges.end(), [&](const Arrival& a, const Arrival& b) {
            return a.input != b.input ? a.input < b.input : is_before(a.from, a.output, b.from, b.output);
        });
    }

    using Edges = std::span<const Arrival>;

    Edges arrivals_at(const Input& input) const {
        const Edges edges = arrivals_.at(input.node).edges;
        const auto [begin, end] = std::ranges::equal_range(edges, input.number, {}, &Arrival::input);
        return {begin, end};
    }

    // The edges into the cast from which this edge comes; none if it comes from another node.
    Edges through(const Arrival& edge) const {
        const auto cast = arrivals_.find(edge.from);
        return cast != arrivals_.end() && cast->second.is_cast ? Edges(cast->second.edges) : Edges();
    }

    void check(const Input& input, Node* cast, std::vector<RegroupedSum>& found) const {
        RegroupedSum sum{input.node, input.number, cast, {}, nullptr};
        Edges direct = arrivals_at(input);
        // If all gradients enter one cast, the sum is complete there, and hooks on the cast may read it.
        while (direct.size() == 1 && through(direct.front()).size() > 0) {
            sum.consumer = sum.cast = direct.front().from;
            sum.input = 0;
            direct = through(direct.front());
        }
        std::vector<std::pair<Node*, Edges>> todo{{sum.consumer, direct}};
        while (!todo.empty()) {
            const auto [node, edges] = todo.back();
            todo.pop_back();
            if (node != sum.consumer && has_hooks(*node))
                sum.unfollowed = "a hook reads the gradient of a cast";
            for (const Arrival& edge : edges) {
                const Edges behind = through(edge);
                if (behind.empty())
                    sum.addends.push_back({edge.from, edge.output, node, edge.input});
                else
                    todo.emplace_back(edge.from, behind);
            }
        }
        if (sum.addends.size() < 3) return;
        std::ranges::sort(sum.addends, [&](const Addend& a, const Addend& b) {
            return is_before(a.producer, a.output, b.producer, b.output);
        });
        if (adds_in_order(direct, sum.addends)) return;
        if (!sum.unfollowed) sum.unfollowed = obstacle(sum);
        found.push_back(std::move(sum));
    }

    // A cast that one gradient enters groups nothing.
    Arrival unwrapped(Arrival edge) const {
        for (Edges behind = through(edge); behind.size() == 1; behind = through(edge)) edge = behind.front();
        return edge;
    }

    // Whether the engine's sum of these edges is ((a1 + a2) + a3) + ..., up to the order of the operands of each +.
    bool adds_in_order(Edges edges, const std::vector<Addend>& addends) const {
        for (std::size_t left = addends.size(); left > 2; --left) {
            const auto is_last = [&](const Arrival& e) {
                return e.from == addends[left - 1].producer && e.output == addends[left - 1].output;
            };
            while (edges.size() == 1) edges = through(edges.front());  // all of them enter one cast
            const Arrival end = unwrapped(edges.back());
            if (is_last(end)) {
                edges = edges.first(edges.size() - 1);
            } else {
                if (edges.size() != 2 || !is_last(unwrapped(edges.front()))) return false;
                edges = through(end);
            }
        }
        return true;
    }

    static bool has_hooks(Node& cast) {
        bool hooks = !cast.pre_hooks().empty() || !cast.post_hooks().empty();
#if MP_TORCH_AT_LEAST(2, 0)
        hooks |= !cast.tensor_pre_hooks().empty();
#endif
        return hooks;
    }

    // A sum has no lock and no event: its hooks must run on one thread and one stream.
    const char* obstacle(const RegroupedSum& sum) const {
        const Addend& last = sum.addends.back();
        std::size_t from_root = 0;
        for (const Addend& addend : sum.addends) {
            if (addend.producer == root_) {
                ++from_root;
                continue;
            }
            if (addend.producer->thread_id() != last.producer->thread_id())
                return "forwards of several threads meet";
            if (!run_together(*addend.producer, *sum.consumer))
                return "gradients of several devices or streams meet";
        }
        return from_root > 1 ? "the root of the backward adds several of them" : nullptr;
    }

    static bool run_together(Node& a, Node& b) {
        const auto stream_of = [](auto& node) {
            if constexpr (requires { node.stream(); })
                return node.stream();
            else
                return node.stream(c10::DeviceType::CUDA);
        };
        return device_of(a) == device_of(b) && stream_of(a) == stream_of(b);
    }

    // The device whose thread runs the node.
    static at::Device device_of(const Node& node) {
        for (std::uint32_t i = 0; i < node.num_inputs(); ++i)
            if (const at::Device device = node.input_metadata(i).device(); !device.is_cpu()) return device;
        return at::kCPU;
    }

    const std::unordered_set<Node*>& graph_;
    Node* const root_;
    std::unordered_map<Node*, Arrivals> arrivals_;  // of casts and consumers
    std::unordered_map<Input, Node*, HashInput> consumers_;
};

}  // namespace

std::vector<RegroupedSum> regrouped_sums(const std::unordered_set<Node*>& graph, Node* root) {
    return CastGraph(graph, root).find();
}

}  // namespace mp::twin
