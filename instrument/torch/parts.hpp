#pragma once

#include <utility>

#include "instrument/torch/blanks.hpp"
#include "instrument/torch/call_path.hpp"
#include "instrument/torch/collective_records.hpp"
#include "instrument/torch/control.hpp"
#include "instrument/torch/counters.hpp"
#include "instrument/torch/coverage_counters.hpp"
#include "instrument/torch/current_step.hpp"
#include "instrument/torch/devices.hpp"
#include "instrument/torch/faults.hpp"
#include "instrument/torch/kept_casts.hpp"
#include "instrument/torch/late.hpp"
#include "instrument/torch/layers.hpp"
#include "instrument/torch/ledger.hpp"
#include "instrument/torch/losses.hpp"
#include "instrument/torch/masters.hpp"
#include "instrument/torch/notes.hpp"
#include "instrument/torch/parameters.hpp"
#include "instrument/torch/pool.hpp"
#include "instrument/torch/recording.hpp"
#include "instrument/torch/running_totals.hpp"
#include "instrument/torch/shadow_map.hpp"
#include "instrument/torch/shortage.hpp"
#include "instrument/torch/sources.hpp"
#include "instrument/torch/standing_updates.hpp"

namespace mp::twin {

// The state of the adapter of a process, one object per kind of data. A part refers only to parts above it, and each
// is safe from any thread by itself. The locks of the parts are leaves: no part calls another one under its own lock,
// with three exceptions, all downwards. Parameters ask the shadow map and Masters, the shadow map takes blocks from the
// pool, and CallPaths interns names of layers.
struct Parts {
    Parts(trace::Options options, trace::Identity identity, bool has_python)
        : control(std::move(options), std::move(identity), has_python) {}

    Control control;
    Pool pool;
    CurrentStep now;
    Recording recording{control};
    Notes notes{recording, now};
    CollectiveRecords collectives;
    Faults faults{control, notes, collectives};
    CoverageCounters coverage{control, notes, now};
    Layers layers;
    Sources sources{layers};
    CallPaths call_paths{layers};
    Ledger ledger{layers, sources};
    Late late{make_device()};
    Blanks blanks{late};
    ShadowMap shadows{coverage};
    Losses losses{control, shadows, late};
    Masters masters;
    Parameters parameters{layers, masters, late,
                          !control.options().save_twin.empty() || !control.options().save_real.empty(),
                          control.identity().world_size > 1};
    KeptCasts kept_casts{layers, parameters, late, notes, now};
    Counters counters;
    RunningTotals running_totals;
    StandingUpdates standing_updates;
    Shortage shortage{control, notes, shadows, parameters};
};

}  // namespace mp::twin
