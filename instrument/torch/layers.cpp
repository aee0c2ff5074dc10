#include "instrument/torch/layers.hpp"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <functional>

#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::size_t kLongestName = 4096;
constexpr std::size_t kMostMarks = 1 << 20;

// Finds a name without making a string, because modules are called often.
struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>()(text);
    }
};

struct Mark {
    std::uint64_t first_node = 0;
    LayerId layer = 0;
};

}  // namespace

// Lives as long as the process, because a backward may look up the nodes of a thread that has ended.
struct LayersOfThread {
    std::mutex mutex;
    struct Running {
        LayerId layer = 0;
        bool module = false;
    };
    std::vector<Running> stack;
    std::vector<Mark> marks;    // by first_node
    std::size_t last_step = 0;  // marks before it belong to earlier steps
    bool ran = false;
    std::unordered_map<std::string, LayerId, Hash, std::equal_to<>> known;  // avoids the lock on all names

    void mark(LayerId layer) { mark(layer, at::sequence_number::peek()); }

    void mark(LayerId layer, std::uint64_t next) {
        const std::lock_guard lock(mutex);
        if (!marks.empty() && marks.back().layer == layer) return;
        if (!marks.empty()) next = std::max(next, marks.back().first_node);
        if (!marks.empty() && marks.back().first_node == next)
            marks.back().layer = layer;
        else if (marks.size() < kMostMarks)
            marks.push_back({next, layer});
    }
};

Layers::Layers()
    : loss(intern("(loss)")),
      optimizer(intern("(optimizer)")),
      data(intern("(data)")),
      update(intern("(update)")),
      bucket(intern("(bucket)")) {}

LayerId Layers::intern(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (names_.empty()) names_.emplace_back();
    const auto [it, fresh] = ids_.emplace(std::string(name), static_cast<LayerId>(names_.size()));
    if (fresh) names_.emplace_back(name);
    return it->second;
}

std::string Layers::name(LayerId id) const {
    const std::lock_guard lock(mutex_);
    return id < names_.size() ? names_[id] : std::string();
}

LayersOfThread& Layers::thread() const {
    LayersOfThread*& own = thread_state().layers;
    if (!own) {
        own = new LayersOfThread();
        const std::lock_guard lock(mutex_);
        threads_[at::RecordFunction::currentThreadId()] = own;
    }
    return *own;
}

LayersOfThread* Layers::find_thread(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto it = threads_.find(id);
    return it == threads_.end() ? nullptr : it->second;
}

void Layers::push(std::string_view name) {
    LayersOfThread& t = thread();
    const std::string_view key = name.substr(0, kLongestName);
    auto it = t.known.find(key);
    if (it == t.known.end()) it = t.known.emplace(std::string(key), intern(key)).first;
    const bool module = key.empty() || key.front() != '(';
    t.stack.push_back({it->second, module});
    t.ran |= module;
    t.mark(it->second);
}

LayerId Layers::pop() {
    LayersOfThread& t = thread();
    if (t.stack.empty()) return 0;
    const LayerId top = t.stack.back().layer;
    t.stack.pop_back();
    t.mark(!t.stack.empty() ? t.stack.back().layer : t.ran ? loss : 0);
    return top;
}

void Layers::runs_op(LayerId layer) {
    // Torch makes the node before its op is intercepted.
    const std::uint64_t next = at::sequence_number::peek();
    thread().mark(layer, next > 0 ? next - 1 : 0);
}

LayerId Layers::current() const {
    const LayersOfThread& t = thread();
    return t.stack.empty() ? 0 : t.stack.back().layer;
}

bool Layers::in_module() const {
    const LayersOfThread& t = thread();
    return !t.stack.empty() && t.stack.back().module;
}

std::size_t Layers::depth() const { return thread().stack.size(); }

bool Layers::after_model() const {
    const LayersOfThread& t = thread();
    return t.ran && t.stack.empty();
}

LayerId Layers::of_node(std::uint64_t forward_thread, std::int64_t sequence) {
    LayersOfThread* t = find_thread(forward_thread);
    if (!t || sequence < 0) return 0;
    const std::lock_guard lock(t->mutex);
    const auto after =
        std::upper_bound(t->marks.begin(), t->marks.end(), static_cast<std::uint64_t>(sequence),
                         [](std::uint64_t node, const Mark& mark) { return node < mark.first_node; });
    return after == t->marks.begin() ? 0 : std::prev(after)->layer;
}

void Layers::end_step() {
    LayersOfThread& t = thread();
    t.ran = false;
    if (t.stack.empty()) t.mark(0);
    const std::lock_guard lock(t.mutex);
    t.marks.erase(t.marks.begin(), t.marks.begin() + static_cast<std::ptrdiff_t>(t.last_step));
    t.last_step = t.marks.size();
}

void Layers::set_source(std::string_view layer, std::string_view where) {
    const LayerId id = intern(layer);
    const std::lock_guard lock(mutex_);
    sources_[id] = std::string(where);
}

std::string Layers::source(LayerId id) const {
    const std::lock_guard lock(mutex_);
    const auto it = sources_.find(id);
    return it == sources_.end() ? std::string() : it->second;
}

}  // namespace mp::twin
