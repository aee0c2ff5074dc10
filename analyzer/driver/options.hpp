#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/clang/extract.hpp"
#include "analyzer/config/config.hpp"

namespace mp::lint {

// Everything a run depends on besides the files it reads. The command line fills it. Then a configuration
// fills the fields that the command line did not set (apply_config).
struct LintOptions {
    std::vector<std::string> inputs;  // files and directories; empty: the working directory
    std::string working_directory;    // absolute
    std::string database;             // -p: a compile_commands.json or its directory; empty: searched
    // The words after `--`. If present, even empty, no compilation database is used.
    std::optional<std::vector<std::string>> flags;

    std::vector<std::string> select;
    std::vector<std::string> ignore;
    std::vector<std::string> exclude;
    std::vector<PerFileIgnore> per_file_ignores;
    std::string config_directory;  // `exclude` and `per_file_ignores` are relative to it
    RegionConfig regions;

    std::optional<CudaHeaders> cuda;
    std::string cuda_path;
    std::optional<TorchHeaders> torch_headers;
    std::string torch_path;
    bool exact = false;
    std::vector<std::string> extra_args;
    std::string torch;   // version of the autocast lists; empty: the newest
    std::string device;  // --device: the device of a program that does not name one; empty: unknown
    DType assume = DType::unknown;          // --assume: of tensors that code outside the sources passes
    std::vector<std::string> policy_files;  // --policy: the user's op lists, in the policy format
    HmpLists hmp;                           // [hmp] of the configuration: replaces HMP's own lists
    std::optional<bool> inference;

    // Every Python file is extracted, even in a large tree. Tests compare the slice with this.
    bool whole_tree = false;
    bool use_cache = true;
    std::string cache_directory;    // empty: default_cache_directory()
    std::optional<int> jobs;        // default: processors available
    std::optional<double> timeout;  // seconds per unit, default 120

    // A slice holds what names a dtype; with an assumption any file may have a finding.
    bool reads_all() const { return whole_tree || assume != DType::unknown; }

    // Called as units finish, with the number of finished units, the total, and the path of one unit.
    std::function<void(std::size_t, std::size_t, const std::string&)> progress;
};

void apply_config(LintOptions& options, const Config& config);

// "auto", "stubs" or the path of a toolkit.
void set_cuda(LintOptions& options, const std::string& value);
// "auto", "stubs" or a directory with libtorch.
void set_torch_headers(LintOptions& options, const std::string& value);

}  // namespace mp::lint
