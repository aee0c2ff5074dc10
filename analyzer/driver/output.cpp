#include "analyzer/driver/output.hpp"

#include <array>

#include "kernels/base/suggest.hpp"

namespace mp::lint {

bool keeps_notes(Format format) { return format == Format::json || format == Format::sarif; }

Result<Output> parse_output(std::string_view text) {
    static constexpr std::array<std::string_view, 8> kNames{"text",   "json",   "sarif", "github",
                                                            "gitlab", "rdjson", "junit", "markdown"};
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    Output out;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (name != kNames[i]) continue;
        out.format = static_cast<Format>(i);
        if (equals != std::string_view::npos) out.file = text.substr(equals + 1);
        if (equals != std::string_view::npos && out.file.empty()) {
            return Error{"--output " + std::string(text) + ": no file name after '='", ""};
        }
        if (out.file == "-") out.file.clear();
        return out;
    }
    std::string hint = did_you_mean(name, kNames);
    if (hint.empty()) hint = "'mp-lint --help' lists the formats";
    return Error{"--output: unknown format '" + std::string(name) + "'", hint};
}

}  // namespace mp::lint
