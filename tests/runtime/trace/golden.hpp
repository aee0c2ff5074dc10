#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakes/source_dir.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace::test {

// Compares with testdata/traces/NAME; MP_UPDATE_GOLDEN=1 rewrites it, never in CI.
inline void expect_golden(const std::string& text, const std::string& name) {
    const std::string path = std::string(mp_source_dir()) + "/testdata/traces/" + name;
    if (std::getenv("MP_UPDATE_GOLDEN") && !std::getenv("CI")) write_bytes(path, text);
    EXPECT_EQ(text, bytes_of(path)) << "MP_UPDATE_GOLDEN=1 rewrites " << name;
}

}  // namespace mp::trace::test
