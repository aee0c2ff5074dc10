#pragma once

// JSON with places: the values of a text and where they stand in it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint::python {

// From the root to a value: the key in each object, an empty string for each array.
using JsonPath = std::vector<std::string>;

// Takes the values in the order of the text; offsets are in bytes. Strings without their quotes.
class JsonVisitor {
public:
    virtual ~JsonVisitor() = default;
    virtual void on_string(const JsonPath& path, std::string_view value, std::size_t begin, std::size_t end);
    // A number, true, false or null, as it is written.
    virtual void on_scalar(const JsonPath& path, std::string_view value, std::size_t begin);
    virtual void on_object_end(const JsonPath& path);
};

// Nothing when all of it was read, else the offset where it is no JSON any more.
std::optional<std::size_t> read_json(std::string_view text, JsonVisitor& visitor);

// One character of the inside of a JSON string that is known to be valid: what it means, and how
// many bytes it takes.
struct JsonCharacter {
    std::size_t raw = 1;
    std::string decoded{};
};
JsonCharacter decode_character(std::string_view raw);

// Lines of a text: where each begins; and the line and column (from 1, in bytes) of an offset.
std::vector<std::size_t> line_starts(std::string_view text);
struct Place {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
};
Place place_of(const std::vector<std::size_t>& starts, std::size_t offset);

}  // namespace mp::lint::python
