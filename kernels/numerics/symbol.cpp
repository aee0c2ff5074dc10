#include "kernels/numerics/symbol.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace mp {
namespace {

// Texts are stored in chunks that double in size and never move, so str() needs no lock:
// chunk k holds ids [2^k - 1 + ..., ...) of the table, and a Symbol only exists after its text does.
constexpr std::size_t kFirstChunk = 1024;
constexpr std::size_t kChunks = 22;  // 1024 * (2^22 - 1) texts

struct Table {
    std::mutex mutex;
    std::unordered_map<std::string_view, std::uint32_t> ids;
    std::array<std::atomic<std::string*>, kChunks> chunks{};
    std::uint32_t size = 0;

    Table() { add(""); }

    static std::pair<std::size_t, std::size_t> place(std::size_t id) {
        std::size_t chunk = 0, length = kFirstChunk;
        while (id >= length) id -= length, length *= 2, ++chunk;
        return {chunk, id};
    }

    std::uint32_t add(std::string_view text) {
        const auto [chunk, offset] = place(size);
        if (!chunks[chunk].load(std::memory_order_relaxed))
            chunks[chunk].store(new std::string[kFirstChunk << chunk], std::memory_order_release);
        std::string& kept = chunks[chunk].load(std::memory_order_relaxed)[offset];
        kept = text;
        ids.emplace(kept, size);
        return size++;
    }
};

// Never destroyed: Symbols may be read by other static objects' destructors.
Table& table() {
    static Table* const it = new Table;
    return *it;
}

}  // namespace

Symbol::Symbol(std::string_view text) {
    if (text.empty()) return;
    Table& t = table();
    const std::scoped_lock lock(t.mutex);
    const auto found = t.ids.find(text);
    id_ = found != t.ids.end() ? found->second : t.add(text);
}

std::string_view Symbol::str() const {
    if (id_ == 0) return {};
    const auto [chunk, offset] = Table::place(id_);
    return table().chunks[chunk].load(std::memory_order_acquire)[offset];
}

}  // namespace mp
