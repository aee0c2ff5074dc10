#pragma once

// Reads JSON with the place of each value in the text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint::python {

// The path from the root to a value: the key for each object, an empty string for each array.
using JsonPath = std::vector<std::string>;

// Receives the values in the order of the text. Offsets are in bytes. Strings come without quotes.
class JsonVisitor {
public:
    virtual ~JsonVisitor() = default;
    virtual void on_string(const JsonPath& path, std::string_view value, std::size_t begin, std::size_t end);
    // A number, true, false or null, as written.
    virtual void on_scalar(const JsonPath& path, std::string_view value, std::size_t begin);
    virtual void on_object_end(const JsonPath& path);
};

// Nothing when the whole text is valid JSON, else the offset of the first error.
std::optional<std::size_t> read_json(std::string_view text, JsonVisitor& visitor);

// One character inside a JSON string that is known to be valid: its decoded text, and its length in bytes.
struct JsonCharacter {
    std::size_t raw = 1;
    std::string decoded{};
};
JsonCharacter decode_character(std::string_view raw);

// The offset at which each line begins; and the line and column (from 1, in bytes) of an offset.
std::vector<std::size_t> line_starts(std::string_view text);
struct Place {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
};
Place place_of(const std::vector<std::size_t>& starts, std::size_t offset);

}  // namespace mp::lint::python
