#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp::lint {

enum class Format : unsigned char { text, json, sarif, github, gitlab, rdjson, junit, markdown };

// One --output: FORMAT or FORMAT=FILE ("-" is standard output).
struct Output {
    Format format = Format::text;
    std::string file;  // empty: standard output
};

Result<Output> parse_output(std::string_view text);

// A file that appears complete or not at all: written beside and renamed. Open it before the work,
// so that an unwritable place is known before and not after it.
class OutputFile {
public:
    static Result<OutputFile> open(std::string path);
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Status commit(std::string_view content);

private:
    OutputFile() = default;
    std::string path_;
    std::string temporary_;  // empty: write to the path itself (a device, a pipe)
    int fd_ = -1;
};

// All of it or an error: a full disk must not pass for success.
Status write_all(int fd, std::string_view content);

}  // namespace mp::lint
