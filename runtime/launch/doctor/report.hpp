#pragma once

#include <string>
#include <vector>

namespace mp::launch::doctor {

enum class Verdict {
    ok,
    note,  // a fact that neither helps nor hinders here
    warn,  // works, but not as one would think
    no,    // does not work here
};

// One fact, one line. `hint` says what would turn it on, or what to do.
struct Line {
    std::string key{};
    Verdict verdict = Verdict::note;
    std::string value{};
    std::string hint{};
    bool needed = false;  // without it no torch program can be traced
};

struct Section {
    std::string name{};
    std::vector<Line> lines{};
};

struct DoctorReport {
    std::vector<Section> sections{};
};

// No needed line says no.
bool traceable(const DoctorReport&);

// Pure: the same report gives the same bytes. Control characters of foreign texts come out escaped.
std::string to_text(const DoctorReport&);
// {"version": 1, "traceable": bool, "sections": [{"name", "lines": [{"key", "verdict", "value", "hint",
// "needed"}]}]}, keys in this order.
std::string to_json(const DoctorReport&);

}  // namespace mp::launch::doctor
