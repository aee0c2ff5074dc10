#include "kernels/base/symbol.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace mp {
namespace {

// Texts lie one behind the other in blocks: half a million of them are read in every order by every
// rule, so each costs one look at the view and one at the text.
constexpr std::size_t kBlock = std::size_t{1} << 16;

// Threads that read facts intern at the same time; the texts are spread over parts with a lock each.
constexpr std::size_t kParts = 16;
constexpr int kPartShift = 28;
constexpr std::size_t kFirstSlots = 256;

std::uint64_t word_at(const char* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// Up to eight bytes as one number.
std::uint64_t short_word(std::string_view text) {
    std::uint64_t word = 0;
    for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
    return word;
}

// FNV-like over eight bytes at a time, the last ones again where the text ends between; the table is
// ours alone, nobody chooses the texts against it.
std::uint32_t hash_of(std::string_view text) {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15U;
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    std::uint64_t hash = text.size() * kMultiplier;
    const auto add = [&hash](std::uint64_t word) { hash = (std::rotl(hash, 29) ^ word) * kMultiplier; };
    if (text.size() < kWord) {
        add(short_word(text));
    } else {
        const char* const last = text.data() + text.size() - kWord;
        for (const char* at = text.data(); at < last; at += kWord) add(word_at(at));
        add(word_at(last));
    }
    // A multiplication carries upwards only, and the last letters are what names differ in.
    add(hash >> 32);
    return static_cast<std::uint32_t>(hash >> 32);
}

// What it guards takes fewer instructions than a mutex does, and threads rarely want the same part.
class Hold {
public:
    explicit Hold(std::atomic_flag& taken) : taken_(taken) {
        for (int tries = 0; taken_.test_and_set(std::memory_order_acquire); ++tries)
            if (tries >= kTries) std::this_thread::yield();
    }
    ~Hold() { taken_.clear(std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

private:
    // It is held for less time than the system takes to run another thread.
    static constexpr int kTries = 100;

    std::atomic_flag& taken_;
};

}  // namespace

class SymbolTable {
public:
    // There before any code runs, so that str() need not ask.
    static constinit inline std::string_view first_views[Symbol::kFirstChunk];

    std::uint32_t intern(std::string_view text) { return intern(text, hash_of(text)); }

    // Asks for the memory in which the text will be looked for.
    void prefetch(std::uint32_t hash) const {
        const Part& part = parts_[hash >> kPartShift];
        const std::size_t mask = part.mask.load(std::memory_order_relaxed);
        __builtin_prefetch(part.first.load(std::memory_order_relaxed) + (hash & mask));
    }

    std::uint32_t intern(std::string_view text, std::uint32_t hash) {
        Part& part = parts_[hash >> kPartShift];
        const Hold hold(part.taken);
        const std::size_t mask = part.slots.size() - 1;
        std::size_t at = hash & mask;
        for (; part.slots[at].id != 0; at = (at + 1) & mask)
            if (part.slots[at].hash == hash && view(part.slots[at].id) == text) return part.slots[at].id;
        const std::uint32_t id = size_.fetch_add(1, std::memory_order_relaxed);
        view(id) = part.keep(text);
        part.slots[at] = {.hash = hash, .id = id};
        if (++part.size * 2 > part.slots.size()) part.grow();
        return id;
    }

    std::uint32_t size() const { return size_.load(std::memory_order_relaxed); }

private:
    struct Slot {
        std::uint32_t hash = 0;
        std::uint32_t id = 0;  // 0: free, as the empty text is never looked for
    };

    struct alignas(64) Part {
        std::string_view keep(std::string_view text) {
            if (text.size() > left) {
                left = text.size() > kBlock ? text.size() : kBlock;
                blocks.push_back(std::make_unique_for_overwrite<char[]>(left));
                next = blocks.back().get();
            }
            std::memcpy(next, text.data(), text.size());
            const std::string_view kept(next, text.size());
            next += text.size();
            left -= text.size();
            return kept;
        }

        void grow() {
            std::vector<Slot> old(slots.size() * 2);
            old.swap(slots);
            for (const Slot& slot : old) {
                if (slot.id == 0) continue;
                std::size_t at = slot.hash & (slots.size() - 1);
                while (slots[at].id != 0) at = (at + 1) & (slots.size() - 1);
                slots[at] = slot;
            }
            first.store(slots.data(), std::memory_order_relaxed);
            mask.store(slots.size() - 1, std::memory_order_relaxed);
        }

        std::atomic_flag taken;
        std::vector<Slot> slots = std::vector<Slot>(kFirstSlots);
        // Copies of `slots.data()` and of its mask for prefetching without the lock. They may be stale and are never
        // dereferenced.
        std::atomic<const Slot*> first{slots.data()};
        std::atomic<std::size_t> mask{kFirstSlots - 1};
        std::size_t size = 0;
        std::vector<std::unique_ptr<char[]>> blocks;
        char* next = nullptr;
        std::size_t left = 0;
    };

    // Where the view of an id stands; whoever comes first to a chunk makes it.
    static std::string_view& view(std::uint32_t id) {
        const auto [chunk, offset] = Symbol::place(id);
        std::string_view* views = Symbol::views_[chunk].load(std::memory_order_acquire);
        if (!views) views = make_chunk(chunk);
        return views[offset];
    }

    static std::string_view* make_chunk(std::size_t chunk) {
        auto made = std::make_unique<std::string_view[]>(std::size_t{Symbol::kFirstChunk} << chunk);
        std::string_view* there = nullptr;
        if (!Symbol::views_[chunk].compare_exchange_strong(there, made.get())) return there;
        return made.release();
    }

    std::array<Part, kParts> parts_;
    std::atomic<std::uint32_t> size_{1};  // the empty text is there
};

namespace {

// Never destroyed: Symbols may be read by other static objects' destructors.
SymbolTable& table() {
    static SymbolTable* const it = new SymbolTable;
    return *it;
}

}  // namespace

constinit std::array<std::atomic<std::string_view*>, Symbol::kChunks> Symbol::views_{
    {{SymbolTable::first_views}}};

Symbol::Symbol(std::string_view text) {
    if (!text.empty()) id_ = table().intern(text);
}

void Symbol::intern(std::span<const std::string_view> texts, std::span<Symbol> out) {
    constexpr std::size_t kAhead = 16;
    std::array<std::uint32_t, kAhead> hashes{};
    for (std::size_t begin = 0; begin < texts.size(); begin += kAhead) {
        const std::size_t count = std::min(kAhead, texts.size() - begin);
        for (std::size_t i = 0; i < count; ++i) {
            hashes[i] = hash_of(texts[begin + i]);
            table().prefetch(hashes[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::string_view text = texts[begin + i];
            out[begin + i].id_ = text.empty() ? 0 : table().intern(text, hashes[i]);
        }
    }
}

std::uint32_t Symbol::count() { return table().size(); }

}  // namespace mp
