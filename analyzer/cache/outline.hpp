#pragma once

// The part of a Python file's facts that decides which other files are in the slice. It is stored beside the facts, so
// that the slice of a large tree is found without reading facts.

#include <cstdint>
#include <vector>

#include "analyzer/facts/fields.hpp"

namespace mp::lint {

struct Outline {
    // A top-level function or class, with the qualified names that it calls or derives from, each once.
    struct Part {
        Symbol name;
        std::vector<Symbol> calls;
        friend bool operator==(const Part&, const Part&) = default;
    };
    struct Alias {
        Symbol name;
        Symbol stands_for;
        friend bool operator==(const Alias&, const Alias&) = default;
    };
    // A function whose result has a low dtype, or a context manager. `name` is the hash of its name.
    struct Export {
        std::uint64_t name = 0;
        bool low = false;
        friend bool operator==(const Export&, const Export&) = default;
    };
    std::vector<Part> parts;
    std::vector<Alias> aliases;
    std::vector<Symbol> stars;  // modules whose names the file re-exports with `*`
    std::vector<Export> exports;

    friend bool operator==(const Outline&, const Outline&) = default;
};

template <class V, Of<Outline::Part> F>
void fields(V& v, F& f) {
    v.title(f.name);
    v("calls", f.calls);
}

template <class V, Of<Outline::Alias> F>
void fields(V& v, F& f) {
    v.title(f.name);
    v("of", f.stands_for);
}

template <class V, Of<Outline::Export> F>
void fields(V& v, F& f) {
    v("name", f.name);
    v("low", f.low);
}

template <class V, Of<Outline> F>
void fields(V& v, F& f) {
    v("parts", f.parts);
    v("aliases", f.aliases);
    v("stars", f.stars);
    v("exports", f.exports);
}

}  // namespace mp::lint
