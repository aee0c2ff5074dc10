#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernels/numerics/policy.hpp"

namespace mp {

// Text of unknown origin, fit for a message: at most 40 bytes, control characters and what is not ASCII
// as '?', so that a junk file cannot fill or steer a terminal.
std::string printable(std::string_view);

// Builds one Policy from lists of names. Lists that contradict each other, names nobody knows and lines
// that are no names become problems with file:line; reading goes on.
class PolicyReader {
public:
    explicit PolicyReader(std::string name);

    // One op name per line.
    void read_names(std::string_view text, std::string_view file, Category);
    // The sectioned format of the built-in lists.
    Status read_sections(std::string_view text, std::string_view file);
    Policy finish() &&;

private:
    struct Line;

    void add(const Line&, Category);
    void problem(const SourceSpan&, std::string message);
    Status set(const Line&);

    Policy policy_;
    std::map<std::string_view, Policy::Entry> entries_;  // by op name: sorted, and finds a conflict
    std::size_t unreported_ = 0;
    SourceSpan first_unreported_;
};

}  // namespace mp
