// Which files are worth parsing, besides those with a trigger word of a rule, which the driver knows: files that
// others lead to. All words are looked for in one pass over every third pair of
// neighbouring bytes: a word of four bytes or more has three pairs side by side, one of which is
// looked at. A table says which words a pair belongs to; only there the words are compared.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "analyzer/python/extract.hpp"

#include "kernels/base/paths.hpp"

namespace mp::lint::python {
namespace {

// Words of the front end's own: a file that other files call, or whose names they use, has facts that matter when it
// contains one of these. They are libraries, dtypes, casts and what a helper without imports does to tensors. A rule
// adds nothing here: its words are its triggers (analyzer/rules/triggers.hpp).
constexpr std::array<std::string_view, 37> kWords{
    "torch",    " jax",     "optax",     "paddle",       "tensorflow", "lightning", "accelerat", "deepspeed",
    "megatron", "apex",     " hmp",      ".hmp",         "dtype",      "float16",   "fp16",      "bf16",
    "half",     ".float()", "float32",   "autocast",     "caler",      "precision", "backward",  "optimizer",
    "softmax",  "mp-lint",  "ensor",     "add_argument", ".to(",       ".mean(",    ".norm(",    ".sum(",
    ".exp(",    "yaml.",    "json.load", "OmegaConf",    "arameters("};

constexpr std::size_t kStride = 3;

struct Candidate {
    std::uint16_t pair;
    std::uint8_t word;
    std::uint8_t offset;  // of the pair in the word
};

std::uint16_t pair_at(const char* p) {
    std::uint16_t pair = 0;
    std::memcpy(&pair, p, sizeof pair);
    return pair;
}

class Words {
public:
    Words() {
        for (std::size_t w = 0; w < kWords.size(); ++w)
            for (std::size_t offset = 0; offset < kStride; ++offset)
                candidates_.push_back({pair_at(kWords[w].data() + offset), static_cast<std::uint8_t>(w),
                                       static_cast<std::uint8_t>(offset)});
        std::ranges::sort(candidates_, {}, &Candidate::pair);
        for (std::size_t i = candidates_.size(); i-- > 0;)
            first_[candidates_[i].pair] = static_cast<std::uint8_t>(i + 1);
    }

    bool any_in(std::string_view text) const {
        for (std::size_t at = 0; at + 1 < text.size(); at += kStride)
            if (const std::uint8_t first = first_[pair_at(text.data() + at)]; first != 0)
                if (matches(text, at, first - 1u)) return true;
        return false;
    }

private:
    bool matches(std::string_view text, std::size_t at, std::size_t i) const {
        for (const std::uint16_t pair = candidates_[i].pair;
             i < candidates_.size() && candidates_[i].pair == pair; ++i) {
            const Candidate& candidate = candidates_[i];
            const std::string_view word = kWords[candidate.word];
            if (candidate.offset > at) continue;
            if (text.substr(at - candidate.offset, word.size()) == word) return true;
        }
        return false;
    }

    std::array<std::uint8_t, 65536> first_{};  // one more than the index of a pair's first candidate
    std::vector<Candidate> candidates_;
};

static_assert(kWords.size() * kStride < 255);
static_assert(std::ranges::all_of(kWords, [](std::string_view w) { return w.size() > kStride; }));

bool defines_nothing(std::string_view text) {
    return text.find("\ndef ") == std::string_view::npos && text.find("\nclass ") == std::string_view::npos &&
           !text.starts_with("def ") && !text.starts_with("class ");
}

bool is_package_file(std::string_view path) { return file_name(path) == "__init__.py"; }

// Constants and options that other files read: a short file that computes nothing.
bool holds_values(std::string_view text) {
    constexpr std::size_t kLongest = 64 * 1024;
    return text.size() <= kLongest && text.find("def ") == std::string_view::npos &&
           text.find(" = ") != std::string_view::npos;
}

// A file that only hands on names, and the __init__.py that does so beside what it defines: others need
// to know what they stand for.
bool hands_names_on(std::string_view path, std::string_view text) {
    return text.find("import") != std::string_view::npos && (is_package_file(path) || defines_nothing(text));
}

}  // namespace

bool is_relevant(std::string_view path, std::string_view text) {
    static const Words words;
    return words.any_in(text) || hands_names_on(path, text) || holds_values(text);
}

}  // namespace mp::lint::python
