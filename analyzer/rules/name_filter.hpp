#pragma once

// A question about the name of a call, asked once per name: a program has many calls and few names.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/numerics/symbol.hpp"

namespace mp::lint {

class NameFilter {
public:
    explicit NameFilter(bool (*holds)(std::string_view)) : holds_(holds) {}

    bool operator()(Symbol name) {
        const std::size_t at = name.id();
        if (at >= known_.size()) known_.resize(std::max(at + 1, 2 * known_.size()), Answer::unasked);
        if (known_[at] == Answer::unasked) known_[at] = holds_(name.str()) ? Answer::yes : Answer::no;
        return known_[at] == Answer::yes;
    }

private:
    enum class Answer : std::uint8_t { unasked, no, yes };
    bool (*holds_)(std::string_view);
    std::vector<Answer> known_;  // by the name's id
};

}  // namespace mp::lint
