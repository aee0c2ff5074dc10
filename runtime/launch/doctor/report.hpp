#pragma once

#include <string>
#include <vector>

namespace mp::launch::doctor {

enum class Verdict {
    ok,
    note,  // neither an advantage nor a problem here
    warn,  // works, but differently than expected
    no,    // does not work here
};

// One fact per line. `hint`: how to enable it, or what to do.
struct Line {
    std::string key{};
    Verdict verdict = Verdict::note;
    std::string value{};
    std::string hint{};
    bool needed = false;  // required for tracing any torch program
};

struct Section {
    std::string name{};
    std::vector<Line> lines{};
};

struct DoctorReport {
    std::vector<Section> sections{};
};

// True when no needed line has the verdict `no`.
bool traceable(const DoctorReport&);

// Deterministic: the same report gives the same bytes. Control characters from other programs are escaped.
std::string to_text(const DoctorReport&);
// {"version": 1, "traceable": bool, "sections": [{"name", "lines": [{"key", "verdict", "value", "hint",
// "needed"}]}]}, keys in this order.
std::string to_json(const DoctorReport&);

}  // namespace mp::launch::doctor
