#pragma once

#include <cmath>

#include "runtime/fold/run_model.hpp"
#include "runtime/trace/reader.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace::test {

// Two of three ranks, three steps each; a NaN, an infinity, a lossy note and a problem among them.
inline mp::trace::Run sample_run() {
    mp::trace::Run run;
    run.directory = "/runs/x";
    for (int rank = 0; rank < 2; ++rank) {
        Recording r;
        r.path = "/runs/x/r" + std::to_string(rank) + ".mpt";
        r.bytes = 1000;
        r.has_process = true;
        r.process = sample_process(rank);
        r.process.world_size = 3;
        for (int k = 0; k < 3; ++k) r.steps.push_back(sample_step(k, 3));
        r.notes = {sample_note(), {.kind = NoteKind::end, .step = Step{2}, .text = "", .count = 3}};
        run.recordings.push_back(r);
    }
    Recording& second = run.recordings[1];
    second.steps[2].losses.pop_back();
    second.steps[2].losses[0].real = std::nan("");
    second.steps[2].tensors[0].twin_squares = 0;
    second.notes = {sample_note(), sample_note()};
    second.notes.push_back({.kind = NoteKind::lossy, .step = Step{1}, .text = "full", .count = 4});
    second.notes[1].count = 11;
    second.problems = {{.offset = 10, .bytes_lost = 20, .why = "damaged bytes"}};
    run.missing = {Rank{2}};
    run.unreadable = {{"/runs/x/bad.mpt: not a recording of mp-trace", ""}};
    return run;
}
inline RunModel sample_model() { return fold(sample_run(), {.tables = true}); }

}  // namespace mp::trace::test
