#pragma once

// A question about the name of a call, asked once per name: a program has many calls and few names.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/numerics/symbol.hpp"

namespace mp::lint {

class NameFilter {
public:
    explicit NameFilter(std::function<bool(std::string_view)> holds) : holds_(std::move(holds)) {}

    bool operator()(Symbol name) {
        const std::size_t at = name.id();
        if (at >= known_.size()) known_.resize(std::max(at + 1, 2 * known_.size()), Answer::unasked);
        if (known_[at] == Answer::unasked) known_[at] = holds_(name.str()) ? Answer::yes : Answer::no;
        return known_[at] == Answer::yes;
    }

private:
    enum class Answer : std::uint8_t { unasked, no, yes };
    std::function<bool(std::string_view)> holds_;
    std::vector<Answer> known_;  // by the name's id
};

}  // namespace mp::lint
