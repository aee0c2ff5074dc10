#include "kernels/numerics/symbol.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace mp {
namespace {

// Views of the texts are stored in chunks that double in size and never move, so str() needs no lock,
// and a Symbol only exists after its view does. The texts themselves lie one behind the other in
// blocks: half a million of them are read in every order by every rule, so each costs one look at the
// view and one at the text.
constexpr std::size_t kFirstChunk = 1024;
constexpr std::size_t kChunks = 22;  // 1024 * (2^22 - 1) texts
constexpr std::size_t kBlock = std::size_t{1} << 16;

// FNV-like over eight bytes at a time; the table is ours alone, nobody chooses the texts against it.
std::uint64_t hash_of(std::string_view text) {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15U;
    std::uint64_t hash = text.size() * kMultiplier;
    while (!text.empty()) {
        std::uint64_t word = 0;
        const std::size_t size = text.size() < sizeof word ? text.size() : sizeof word;
        std::memcpy(&word, text.data(), size);
        hash = (std::rotl(hash, 29) ^ word) * kMultiplier;
        text.remove_prefix(size);
    }
    return hash ^ (hash >> 32);
}

class Table {
public:
    Table() : slots_(kFirstChunk * 4) { add(""); }

    std::uint32_t intern(std::string_view text) {
        const std::uint64_t hash = hash_of(text);
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        const std::scoped_lock lock(mutex_);
        std::size_t at = hash & (slots_.size() - 1);
        for (; slots_[at].id != 0; at = (at + 1) & (slots_.size() - 1))
            if (slots_[at].tag == tag && view(slots_[at].id) == text) return slots_[at].id;
        slots_[at] = {.tag = tag, .id = add(text)};
        const std::uint32_t id = slots_[at].id;
        if (size_ * 2 > slots_.size()) grow();
        return id;
    }

    std::string_view view(std::uint32_t id) const {
        const auto [chunk, offset] = place(id);
        return chunks_[chunk].load(std::memory_order_acquire)[offset];
    }

private:
    struct Slot {
        std::uint32_t tag = 0;
        std::uint32_t id = 0;  // 0: free, as the empty text is never looked for
    };

    // Chunk k holds the ids from 1024 * (2^k - 1) on.
    static std::pair<std::size_t, std::size_t> place(std::size_t id) {
        const auto chunk = static_cast<std::size_t>(std::bit_width(id / kFirstChunk + 1)) - 1;
        return {chunk, id - kFirstChunk * ((std::size_t{1} << chunk) - 1)};
    }

    std::uint32_t add(std::string_view text) {
        const auto [chunk, offset] = place(size_);
        if (!chunks_[chunk].load(std::memory_order_relaxed))
            chunks_[chunk].store(new std::string_view[kFirstChunk << chunk],
                                 std::memory_order_release);
        chunks_[chunk].load(std::memory_order_relaxed)[offset] = keep(text);
        return size_++;
    }

    std::string_view keep(std::string_view text) {
        if (text.size() > left_) {
            left_ = text.size() > kBlock ? text.size() : kBlock;
            blocks_.push_back(std::make_unique<char[]>(left_));
            next_ = blocks_.back().get();
        }
        if (!text.empty()) std::memcpy(next_, text.data(), text.size());
        const std::string_view kept(next_, text.size());
        next_ += text.size();
        left_ -= text.size();
        return kept;
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.id == 0) continue;
            std::size_t at = hash_of(view(slot.id)) & (slots_.size() - 1);
            while (slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }

    std::mutex mutex_;
    std::vector<Slot> slots_;
    std::array<std::atomic<std::string_view*>, kChunks> chunks_{};
    std::vector<std::unique_ptr<char[]>> blocks_;
    char* next_ = nullptr;
    std::size_t left_ = 0;
    std::uint32_t size_ = 0;
};

// Never destroyed: Symbols may be read by other static objects' destructors.
Table& table() {
    static Table* const it = new Table;
    return *it;
}

}  // namespace

Symbol::Symbol(std::string_view text) {
    if (!text.empty()) id_ = table().intern(text);
}

std::string_view Symbol::str() const { return id_ == 0 ? std::string_view{} : table().view(id_); }

}  // namespace mp
