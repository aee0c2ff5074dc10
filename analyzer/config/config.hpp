#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/config/selection.hpp"

namespace mp::lint {

struct PerFileIgnore {
    std::string pattern;
    std::vector<std::string> rules;
};

// [hmp]: the op lists that the program gives to Habana's HMP, one op per line. Empty: HMP's own.
struct HmpLists {
    std::string bf16;
    std::string fp32;
    bool given() const { return !bf16.empty() || !fp32.empty(); }
};

// What mp-lint.toml or [tool.mp-lint] of pyproject.toml says. Absent keys stay empty: defaults
// belong to the driver, and the command line wins over the file.
struct Config {
    std::string path;       // the file; empty: none was found
    std::string directory;  // patterns and relative paths of the file are relative to it
    std::vector<std::string> select;
    std::vector<std::string> ignore;
    std::vector<std::string> exclude;
    std::vector<std::string> extra_args;
    std::vector<PerFileIgnore> per_file_ignores;
    std::string cuda;                   // auto, stubs or the path of a toolkit
    std::string torch;                  // version, "2.5"
    std::string device;                 // of device_names()
    std::vector<std::string> policies;  // op lists that take the place of the built-in ones
    HmpLists hmp;
    std::string profile;            // training or inference
    std::optional<double> timeout;  // seconds per unit
    std::optional<int> jobs;
    RegionConfig regions;
};

// "cuda", "cpu", "hpu", "xpu", "mps", "xla".
std::span<const std::string_view> device_names();

// Reads the text of a configuration file. `pyproject`: only its [tool.mp-lint]. Unknown keys, wrong
// types and unknown rules are errors: "mp-lint.toml:3: unknown key 'selct'", hint "did you mean
// ...".
Result<Config> parse_config(std::string_view text, const std::string& path, Rules rules,
                            bool pyproject = false);

Result<Config> load_config(const std::string& path, Rules rules);

// The nearest of mp-lint.toml, .mp-lint.toml, pyproject.toml with [tool.mp-lint] in `directory` and
// its parents; nothing is merged. An empty Config when there is none.
Result<Config> find_config(const std::string& directory, Rules rules);

}  // namespace mp::lint
