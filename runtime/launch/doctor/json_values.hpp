#pragma once

#include <limits>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

// Values of a JSON text from another process. A member that is missing or has another type counts as
// absent. Nothing here throws.
namespace mp::launch::doctor {

inline const nlohmann::json& member(const nlohmann::json& object, const char* name) {
    static const nlohmann::json kNull;
    if (!object.is_object()) return kNull;
    const auto found = object.find(name);
    return found == object.end() ? kNull : *found;
}

inline std::string text_of(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : std::string();
}

inline int number_of(const nlohmann::json& value) {
    if (!value.is_number_integer()) return 0;
    const auto wide = value.get<std::int64_t>();
    constexpr auto kMost = std::numeric_limits<int>::max();
    return wide > kMost || wide < -kMost ? 0 : static_cast<int>(wide);
}

inline std::string text_in(const nlohmann::json& object, const char* name) {
    return text_of(member(object, name));
}
inline int number_in(const nlohmann::json& object, const char* name) {
    return number_of(member(object, name));
}
inline std::optional<bool> flag_in(const nlohmann::json& object, const char* name) {
    const nlohmann::json& value = member(object, name);
    if (!value.is_boolean()) return std::nullopt;
    return value.get<bool>();
}

}  // namespace mp::launch::doctor
