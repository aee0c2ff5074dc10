#pragma once

// The loss-scaling protocol of a program, found once and shared by the rules MP201 to MP213: which
// objects are scalers, what happens in which order on every path, and which orders are defects.

#include <memory>
#include <vector>

#include "analyzer/rules/protocol_paths.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// A scaler where it is made.
struct MadeScaler {
    const Function* function = nullptr;
    const Call* call = nullptr;
    Symbol name;  // it is assigned to
    Enabled enabled;
};

class Protocol {
public:
    explicit Protocol(const Program&);

    const Program& program() const { return program_; }
    const Roles& roles() const { return roles_; }
    const std::vector<MadeScaler>& scalers() const { return scalers_; }
    const std::vector<Violation>& violations() const { return paths_->violations(); }
    EventMask mask(const Function& f) const { return paths_->mask(f); }

    // Whether a scaler is made or used in a file of the function, of what it calls, or of what calls
    // it: the program it is part of, as far as calls tell.
    bool has_scaler_near(const Function&) const;
    // The files of that program, and whether a file is one of them.
    std::vector<Symbol> files_near(const Function&) const;

private:
    void find_scalers();
    void connect_files();
    Enabled enabled(const Function& root, Symbol scaler) const;
    Symbol group(Symbol file) const;

    const Program& program_;
    Roles roles_;
    std::vector<MadeScaler> scalers_;
    mutable std::unordered_map<Symbol, Symbol> groups_;  // union-find over files
    std::unordered_map<Symbol, bool> scaling_groups_;
    std::unique_ptr<Paths> paths_;
};

// The protocol of the program, found at the first call for a context and kept with it.
const Protocol& protocol_of(const RuleContext&);

// "'scaler'" or "the scaler": as the program names it, without where it comes from.
std::string shown(Symbol key, std::string_view otherwise);

// The violations of one kind, each once.
std::vector<Violation> violations_of(const RuleContext&, Defect);
// A note at a site; nothing for one that is not known.
void add_note(std::vector<Note>&, const Site&, std::string text);

// Inserts `statement` as a line of its own before the statement in which the call stands, when the
// call begins that statement. Nothing when it does not, or in C++.
std::vector<Edit> line_before(const Site&, const std::string& statement);

}  // namespace mp::lint
