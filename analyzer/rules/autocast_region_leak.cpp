// MP110 autocast-region-leak
//
// What   An autocast region is opened and stays open on some way out of the function: an early
//        return, an exception, a flag that closes it under another condition; or it is "restored"
//        to false although it may have been enabled before.
// Why    The state belongs to the thread: everything that runs later on it, backward and optimizer
//        included, computes in half.
// Fix    An RAII guard that restores the previous state in its destructor.
// Silent Guards; pairs under the same condition; helpers whose callers all close what they open. A
//        main that switches autocast on for the whole process is a note.
// Tests  testdata/lint/MP110.md, tests/analyzer/rules/autocast_region_leak_test.cpp

#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

Severity severity_of(const RegionLeak& leak) {
    if (leak.process_wide) return Severity::note;
    return leak.restored_to_constant ? Severity::warning : Severity::error;
}

std::string message_of(const RegionLeak& leak) {
    if (leak.process_wide)
        return "autocast is on from here to the end of the process: backward runs under it too";
    if (leak.restored_to_constant)
        return "autocast is set back to false and not to what it was: an enclosing region ends "
               "here";
    return "the autocast region opened here stays open after the function: what this thread "
           "computes later runs in "
           "half";
}

void check(const RuleContext& context, Findings& out) {
    for (const RegionLeak& leak : context.program.leaks()) {
        if (!leak.function || !leak.opened) continue;
        // A wrong restoration is the closing call's fault, and `leaves` is that call.
        const bool at_close = leak.restored_to_constant && leak.leaves.known();
        std::vector<Note> notes;
        if (at_close)
            notes.push_back({leak.opened->span, "the region opens here"});
        else if (leak.leaves.known())
            notes.push_back({leak.leaves, "the function is left here with the region open"});
        notes.insert(notes.end(), leak.path.begin(), leak.path.end());
        emit(context, *leak.function,
             {.rule = "MP110",
              .severity = severity_of(leak),
              .span = at_close ? leak.leaves : leak.opened->span,
              .message = message_of(leak),
              .fix = "use an RAII guard that restores the previous state in its destructor",
              .notes = std::move(notes),
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kAutocastRegionLeak{.id = "MP110",
                                                .name = "autocast-region-leak",
                                                .severity = Severity::error,
                                                .on_by_default = true,
                                                .confirmed_by = "MPT060",
                                                .triggers = {kRegions, kEngines},
                                                .check = check};

}  // namespace mp::lint
