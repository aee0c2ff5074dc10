#pragma once

// Whether an edit changed what a file says, or only where it says it: a comment, a docstring, a blank
// line, a constant that no rule asks for. Findings then hold as they are, on other lines.

#include <cstdint>
#include <map>
#include <optional>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/facts/model.hpp"

namespace mp::lint {

// The lines of a file that facts speak of, before and after an edit, in the same order.
class LineMap {
public:
    // False when the line is another one already, or the order is no longer the same.
    bool add(std::uint32_t before, std::uint32_t after);
    // Nothing when no fact speaks of the line.
    std::optional<std::uint32_t> of(std::uint32_t before) const;

private:
    std::map<std::uint32_t, std::uint32_t> lines_;
};

// Nothing when the units differ in more than the lines of their own file. How much was analysed and
// what was read for it (Coverage, dependencies) are not compared: no rule looks at them.
std::optional<LineMap> moved_lines(Unit before, Unit after);

// The same finding after the edit of `file`; false when it speaks of a place that is not in the map.
bool move_finding(const LineMap&, Symbol file, Finding&);

}  // namespace mp::lint
