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

// [hmp]: the op lists that the program passes to Habana's HMP, one op per line. Empty: HMP's own lists.
struct HmpLists {
    std::string bf16;
    std::string fp32;
    bool given() const { return !bf16.empty() || !fp32.empty(); }
};

// The content of mp-lint.toml or of [tool.mp-lint] in pyproject.toml. Absent keys stay empty. The driver
// sets defaults, and command line options have priority over the file.
struct Config {
    std::string path;       // the file; empty: none was found
    std::string directory;  // patterns and relative paths of the file are relative to it
    std::vector<std::string> select;
    std::vector<std::string> ignore;
    std::vector<std::string> exclude;
    std::vector<std::string> extra_args;
    std::vector<PerFileIgnore> per_file_ignores;
    std::string cuda;                   // auto, stubs or the path of a toolkit
    std::string torch_headers;          // auto, stubs or a directory with libtorch
    std::string torch;                  // version, "2.5"
    std::string device;                 // one of device_names()
    DType assume = DType::unknown;      // fp16 or bf16
    std::vector<std::string> policies;  // op lists that replace the built-in ones
    HmpLists hmp;
    std::string profile;            // training or inference
    std::optional<double> timeout;  // seconds per unit
    std::optional<int> jobs;
    RegionConfig regions;
};

// "cuda", "cpu", "hpu", "xpu", "mps", "xla".
std::span<const std::string_view> device_names();

// Parses the text of a configuration file. `pyproject`: only its table [tool.mp-lint]. Unknown keys, wrong
// types and unknown rules are errors: "mp-lint.toml:3: unknown key 'selct'", hint "did you mean ...".
Result<Config> parse_config(std::string_view text, const std::string& path, Rules rules,
                            bool pyproject = false);

Result<Config> load_config(const std::string& path, Rules rules);

// The nearest mp-lint.toml, .mp-lint.toml or pyproject.toml with [tool.mp-lint] in `directory` and its
// parents. Files are not merged. An empty Config when there is none.
Result<Config> find_config(const std::string& directory, Rules rules);

}  // namespace mp::lint
