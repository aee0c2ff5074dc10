#pragma once

namespace mp::cuda {

// How the fake driver of the tests answers.
struct FakeDriver {
    int version = 13000;
    int processors = 3;
    bool no_context = false;
    bool memory_refused = false;
    bool capturing = false;
    bool launch_fails = false;
    int launches = 0;
    unsigned blocks = 0;  // of the last launch
};
FakeDriver& fake();

}  // namespace mp::cuda
