#include "analyzer/clang/headers.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernels/base/files.hpp"

namespace fs = std::filesystem;

namespace mp::lint {
namespace {

bool file_at(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed);
}

bool directory_at(const fs::path& path) {
    std::error_code failed;
    return fs::is_directory(path, failed);
}

std::string read(const fs::path& path) {
    std::string text;
    read_file(path.string(), text);
    return text;
}

std::string find_ours() {
    std::error_code failed;
    const auto program = fs::read_symlink("/proc/self/exe", failed);
    if (!failed) {
        const auto installed = program.parent_path().parent_path() / "share/mp-lint/headers";
        if (directory_at(installed / "cuda")) return installed.string();
    }
    return directory_at(MP_HEADERS_SOURCE_DIR) ? MP_HEADERS_SOURCE_DIR : "";
}

HeaderPlaces find_places() {
    const bool complete = file_at(fs::path(MP_CLANG_RESOURCE_DIR) / "include/stddef.h");
    return {.resource = complete ? MP_CLANG_RESOURCE_DIR : "", .ours = find_ours()};
}

// "#define CUDART_VERSION 13000" is 13.0, and 12040 is 12.4.
std::string toolkit_version(const fs::path& include) {
    const std::string text = read(include / "cuda_runtime_api.h");
    constexpr std::string_view name = "#define CUDART_VERSION";
    auto at = text.find(name);
    if (at == std::string::npos) return {};
    at = text.find_first_not_of(" \t", at + name.size());
    if (at == std::string::npos) return {};
    int number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (number <= 0) return {};
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

const HeaderPlaces& header_places() {
    static const HeaderPlaces found = find_places();
    return found;
}

std::string resource_hint() {
    return "clang's headers are missing from " MP_CLANG_RESOURCE_DIR ": install libclang-common-19-dev";
}

CudaToolkit find_toolkit(const std::vector<std::string>& candidates) {
    for (const auto& path : candidates) {
        const auto include = fs::path(path) / "include";
        if (path.empty() || !has_cuda_headers(include.string())) continue;
        return {.path = path, .version = toolkit_version(include)};
    }
    return {};
}

bool has_cuda_headers(const std::string& dir) {
    return file_at(fs::path(dir) / "cuda_runtime.h") && file_at(fs::path(dir) / "cuda_runtime_api.h");
}

bool has_torch_headers(const std::string& dir) {
    for (const auto* header : {"ATen/ATen.h", "c10/util/Half.h", "torch/torch.h", "torch/extension.h"}) {
        if (file_at(fs::path(dir) / header)) return true;
    }
    return false;
}

std::string our_headers_hash() {
    std::vector<fs::path> files;
    std::error_code failed;
    const fs::path root = header_places().ours;
    for (fs::recursive_directory_iterator it(root, failed), end; !failed && it != end; it.increment(failed)) {
        std::error_code unknown;
        if (it->is_regular_file(unknown)) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (const auto& file : files) {
        const std::string name = file.lexically_relative(root).string();
        const std::string text = read(file);
        XXH3_64bits_update(&state, name.c_str(), name.size() + 1);
        XXH3_64bits_update(&state, text.data(), text.size());
    }
    char hex[17] = {};
    const auto end = std::to_chars(hex, hex + 16, XXH3_64bits_digest(&state), 16);
    return {hex, end.ptr};
}

}  // namespace mp::lint
