#pragma once

// Programs for tests, written as facts.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analyzer/facts/text.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

inline std::vector<Unit> units_of(const std::vector<std::string>& texts) {
    std::vector<Unit> units;
    for (const std::string& text : texts) {
        auto unit = parse_facts(text);
        if (unit)
            units.push_back(*std::move(unit));
        else
            ADD_FAILURE() << unit.error().message << "\nin:\n" << text;
    }
    return units;
}

inline Program linked(const std::vector<std::string>& texts, const RegionConfig& config = {}) {
    return Program::link(units_of(texts), config);
}

inline const Function& function_named(const Program& program, std::string_view name) {
    for (const Function* f : program.functions())
        if (f->name.str() == name) return *f;
    ADD_FAILURE() << "no function " << name;
    static const Function nothing;
    return nothing;
}

// The states of a call, one word each: "off", "on:bf16", "on:fp16?" when not proven, "unknown".
inline std::string states(const Program& program, std::string_view function, std::size_t call) {
    const Function& f = function_named(program, function);
    std::string text;
    for (const Context& c : program.contexts(f, f.calls.at(call))) {
        if (!text.empty()) text += ' ';
        if (c.enabled == Switch::off) text += "off";
        if (c.enabled == Switch::unknown) text += "unknown";
        if (c.enabled == Switch::on) text += "on:" + std::string(name_of(c.dtype)) + (c.proven ? "" : "?");
        if (c.enabled != Switch::off && c.device.str() != "cuda") text += "/" + std::string(c.device.str());
    }
    return text;
}

inline std::vector<std::string> chain_of(const Context& context) {
    std::vector<std::string> texts;
    for (const Note& note : context.chain) texts.push_back(to_string(note.span) + " " + note.text);
    return texts;
}

// The leaks as "function line", with a mark for the two special kinds.
inline std::vector<std::string> leaks(const Program& program) {
    std::vector<std::string> texts;
    for (const RegionLeak& leak : program.leaks()) {
        texts.push_back(std::string(leak.function->name.str()) + " " +
                        std::to_string(leak.opened->span.line));
        if (leak.restored_to_constant) texts.back() += " constant";
        if (leak.process_wide) texts.back() += " process";
    }
    return texts;
}

}  // namespace mp::lint
