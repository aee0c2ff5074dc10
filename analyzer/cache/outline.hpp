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
    };
    struct Alias {
        Symbol name;
        Symbol stands_for;
    };
    // A function whose result has a low dtype, or a context manager. `name` is the hash of its name.
    struct Export {
        std::uint64_t name = 0;
        bool low = false;
    };
    std::vector<Part> parts;
    std::vector<Alias> aliases;
    std::vector<Symbol> stars;  // modules whose names the file re-exports with `*`
    std::vector<Export> exports;
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

template <class Coder, Of<Outline> F>
void body_fields(Coder& coder, F& outline) {
    coder.value(outline.parts);
    coder.value(outline.aliases);
    coder.value(outline.stars);
    coder.value(outline.exports);
}

}  // namespace mp::lint
