#pragma once

// The loss-scaling protocol of a program, found once and shared by the rules MP201 to MP213: which
// objects are scalers, what happens in which order on every path, and which orders are defects.

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/protocol_paths.hpp"

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
    std::size_t most_work() const { return paths_->most_work(); }

    // The files of the program that the function belongs to, as far as calls show: the files that call into
    // its file, and those that it calls.
    const std::vector<Symbol>& files_near(const Function&) const;
    // Whether a scaler is made or used in one of these files.
    bool has_scaler_near(const Function&) const;
    // The function's own name for the scaler; empty when it has several or none.
    Symbol scaler_in(const Function&) const;

private:
    void find_scalers();
    void connect_files();
    bool is_made_in_vain(const MadeScaler&) const;
    std::vector<Symbol> find_near(Symbol file) const;
    Enabled enabled(const Function& root, Symbol scaler) const;
    bool are_distinct(Symbol a, Symbol b) const;

    const Program& program_;
    Roles roles_;
    std::vector<MadeScaler> scalers_;
    using Files = std::unordered_map<Symbol, std::vector<Symbol>>;
    Files calls_, called_;  // between files
    std::unordered_set<Symbol> scaling_files_;
    Memo<Symbol, std::vector<Symbol>> near_;
    std::unique_ptr<Paths> paths_;
};

// get_scale(), state_dict(): methods of a scaler that scale nothing.
bool reads_scaler_state(std::string_view method);

// The protocol of the program, found at the first call for a context and kept with it.
const Protocol& protocol_of(const RuleContext&);

// "'scaler'" or "the scaler": as the program names it, without where it comes from.
std::string shown(Symbol key, std::string_view otherwise);

// The violations of one kind, each once.
std::vector<Violation> violations_of(const RuleContext&, Defect);
// A note at a site; nothing for one that is not known.
void add_note(std::vector<Note>&, const Site&, std::string text);

// Inserts `statement` as a line before the statement that contains the call, if the call starts that
// statement. Nothing otherwise, and nothing in C++.
std::vector<Edit> line_before(const Site&, const std::string& statement);

}  // namespace mp::lint
