#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

// The text of the files that findings refer to, by path. The driver fills it, so reports open no files.
class Sources {
public:
    void add(std::string path, std::string text);

    bool has(std::string_view path) const { return files_.contains(path); }
    // The whole text; empty when the file is not stored.
    std::string_view text(std::string_view path) const;
    // Lines count from 1, without line end; empty when the line does not exist.
    std::string_view line(std::string_view path, std::size_t number) const;
    // The offset in the text of a line and a column in bytes, both from 1; the column may be one past the
    // line. Nothing when the place does not exist.
    std::optional<std::size_t> offset(std::string_view path, std::size_t line, std::size_t column) const;
    std::size_t line_count(std::string_view path) const;

private:
    struct File {
        std::string text;
        std::vector<std::size_t> starts;  // of each line
    };
    std::map<std::string, File, std::less<>> files_;
};

}  // namespace mp::lint
