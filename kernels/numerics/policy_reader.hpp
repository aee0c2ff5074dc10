#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernels/numerics/policy.hpp"

namespace mp {

// Untrusted text, safe for a message: at most 40 bytes, with '?' for control characters and for bytes that
// are not ASCII, so that a file cannot flood or control a terminal.
std::string printable(std::string_view);

// Builds one Policy from lists of names. Contradicting lists, unknown names and lines that are not names
// become problems with file:line, and reading continues.
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
