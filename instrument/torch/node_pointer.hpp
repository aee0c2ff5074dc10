#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>

namespace mp::twin {

// A pointer that keeps a node of the graph, and one that does not: std's until torch 2.12, c10's since.
using torch::autograd::Node;
using NodePointer = decltype(torch::autograd::Edge::function);
template <class Pointer>
struct WeakPointer {
    using Type = c10::weak_intrusive_ptr<typename Pointer::element_type>;
    static Type of(Node& node) { return Type(Pointer::unsafe_reclaim_from_nonowning(&node)); }
};
template <>
struct WeakPointer<std::shared_ptr<Node>> {
    using Type = std::weak_ptr<Node>;
    static Type of(auto& node) { return node.weak_from_this(); }
};
using WeakNode = WeakPointer<NodePointer>::Type;
inline WeakNode weak(Node& node) { return WeakPointer<NodePointer>::of(node); }

}  // namespace mp::twin
