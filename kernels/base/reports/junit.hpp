#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// JUnit XML as both tools write it. Text is safe to show (base's escape_controls or like it) and becomes XML here; a
// `body` is XML already.

namespace mp::junit {

struct Suite {
    std::string name;
    std::string cases{};
    std::size_t tests = 0;
    std::size_t failures = 0;
    std::size_t errors = 0;
    std::size_t skipped = 0;

    void add(std::string_view classname, std::string_view name, std::string_view body);
};

// <failure message="..." type="...">...</failure>, and so for error and skipped. An empty type is left out; without
// lines the element is empty.
std::string problem(std::string_view element, std::string_view message, std::string_view type,
                    const std::vector<std::string>& lines = {});
// <system-out>: what is said about a case that passed.
std::string system_out(const std::vector<std::string>& lines);

// The whole file. `with_totals`: <testsuites> has the sums of its suites.
std::string document(std::string_view name, const std::vector<Suite>& suites, bool with_totals);

}  // namespace mp::junit
