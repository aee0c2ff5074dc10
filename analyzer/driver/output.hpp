#pragma once

#include <string>
#include <string_view>

#include "kernels/base/result.hpp"

namespace mp::lint {

enum class Format : unsigned char { text, json, sarif, github, gitlab, rdjson, junit, markdown };

// One --output: FORMAT or FORMAT=FILE ("-" is standard output).
struct Output {
    Format format = Format::text;
    std::string file;  // empty: standard output
};

// Whether programs read it: it has every note, whatever --notes says.
bool keeps_notes(Format);

Result<Output> parse_output(std::string_view text);

}  // namespace mp::lint
