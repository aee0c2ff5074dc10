#include "analyzer/driver/options.hpp"

#include "analyzer/driver/discover.hpp"

namespace mp::lint {
namespace {

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void apply_config(LintOptions& options, const Config& config) {
    if (options.select.empty()) options.select = config.select;
    append(options.ignore, config.ignore);
    append(options.exclude, config.exclude);
    append(options.per_file_ignores, config.per_file_ignores);
    append(options.extra_args, config.extra_args);
    options.config_directory = config.directory;
    options.regions = config.regions;
    if (!options.cuda && !config.cuda.empty()) {
        const bool path = config.cuda != "auto" && config.cuda != "stubs";
        set_cuda(options, path ? absolute_path(config.cuda, config.directory) : config.cuda);
    }
    if (!options.torch_headers && !config.torch_headers.empty()) {
        const bool path = config.torch_headers != "auto" && config.torch_headers != "stubs";
        set_torch_headers(
            options, path ? absolute_path(config.torch_headers, config.directory) : config.torch_headers);
    }
    if (options.torch.empty()) options.torch = config.torch;
    if (options.device.empty()) options.device = config.device;
    if (options.assume == DType::unknown) options.assume = config.assume;
    if (options.policy_files.empty()) {
        for (const std::string& file : config.policies)
            options.policy_files.push_back(absolute_path(file, config.directory));
    }
    if (!config.hmp.bf16.empty()) options.hmp.bf16 = absolute_path(config.hmp.bf16, config.directory);
    if (!config.hmp.fp32.empty()) options.hmp.fp32 = absolute_path(config.hmp.fp32, config.directory);
    if (!options.inference && !config.profile.empty()) options.inference = config.profile == "inference";
    if (!options.jobs) options.jobs = config.jobs;
    if (!options.timeout) options.timeout = config.timeout;
}

void set_cuda(LintOptions& options, const std::string& value) {
    options.cuda_path.clear();
    if (value == "auto") {
        options.cuda = CudaHeaders::automatic;
    } else if (value == "stubs") {
        options.cuda = CudaHeaders::stubs;
    } else {
        options.cuda = CudaHeaders::toolkit;
        options.cuda_path = absolute_path(value, options.working_directory);
    }
}

void set_torch_headers(LintOptions& options, const std::string& value) {
    options.torch_path.clear();
    if (value == "auto") {
        options.torch_headers = TorchHeaders::automatic;
    } else if (value == "stubs") {
        options.torch_headers = TorchHeaders::stubs;
    } else {
        options.torch_headers = TorchHeaders::directory;
        options.torch_path = absolute_path(value, options.working_directory);
    }
}

}  // namespace mp::lint
