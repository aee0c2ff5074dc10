#pragma once

#include <array>
#include <string>
#include <string_view>

namespace mp::lint {

enum class Format : unsigned char { text, json, sarif, github, gitlab, rdjson, junit, markdown };
inline constexpr std::array<std::string_view, 8> kFormatNames{"text",   "json",   "sarif", "github",
                                                              "gitlab", "rdjson", "junit", "markdown"};

// One --output: FORMAT or FORMAT=FILE ("-" is standard output).
struct Output {
    Format format = Format::text;
    std::string file;  // empty: standard output
};

// Whether programs read it: it has every note, whatever --notes says.
bool keeps_notes(Format);

}  // namespace mp::lint
