#pragma once

#include <array>
#include <string_view>

namespace mp {

// Characters that no output of either tool may hold as they are, one or more of each kind.
inline constexpr std::array<std::string_view, 33> kUnsafeCharacters{
    "\x01",       "\x1b",       "\x7f",                  // C0, DEL
    "\xc2\x85",   "\xc2\x9b",                            // C1
    "\u00ad",                                            // soft hyphen
    "\u061c",     "\u200e",     "\u200f",                // bidirectional marks
    "\u202a",     "\u202c",     "\u202e",                // embeddings, overrides
    "\u2066",     "\u2069",     "\u206a",                // isolates, deprecated format characters
    "\u2028",     "\u2029",                              // line and paragraph separators
    "\u200b",     "\u200c",     "\u200d",                // zero width
    "\u180e",     "\u2060",     "\u2064",     "\u2065",  // invisible
    "\ufeff",                                            // byte order mark
    "\ufff9",     "\ufffb",                              // interlinear annotation
    "\u115f",     "\u3164",                              // fillers
    "\U000e0001", "\U000e0041", "\U000e007f",            // tags
    "\U000e0002"};                                       // reserved beside them

// Characters that both tools show as they are.
inline constexpr std::array<std::string_view, 7> kSafeCharacters{"a",  "é",       "数",    "e\u0301",
                                                                 "😀", "⚠\ufe0f", "\u0600"};

}  // namespace mp
