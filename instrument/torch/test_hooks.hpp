#pragma once

#include <cstdio>
#include <string_view>

namespace mp::twin {

// Switches for tests. Only the test adapter has them: a second library that MP_TEST_ADAPTER_OUT builds, with
// MP_TEST_HOOKS. In the adapter that users load all of them are constants, so no environment variable can change
// what it does. `rule_disabled`: rules and single traits that a test switches off, one at a time, to show that the
// truth suite needs them (MP_TRACE_TEST_DISABLE_RULE). "measure" is all measuring; a
// benchmark switches it off. The base name of an op makes the twin's op throw.
// `op_log`: one line per op, for the test that compares our layers with those that hooks see (MP_TRACE_TEST_OPLOG).
// `late_steps`: if above 0, tensors of the CPU are measured as those of a device, and their figures come so many steps
// late (MP_TRACE_TEST_LATE).
// `fake_device`: the device of tests/fakes/torch is taken for a GPU (MP_TRACE_TEST_DEVICE).
#ifdef MP_TEST_HOOKS
int late_steps() noexcept;
bool fake_device() noexcept;
bool rule_disabled(std::string_view rule) noexcept;
std::FILE* op_log() noexcept;
#else
constexpr int late_steps() noexcept { return 0; }
constexpr bool fake_device() noexcept { return false; }
constexpr bool rule_disabled(std::string_view) noexcept { return false; }
constexpr std::FILE* op_log() noexcept { return nullptr; }
#endif

}  // namespace mp::twin
