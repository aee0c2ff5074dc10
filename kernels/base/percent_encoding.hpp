#pragma once

#include <string>
#include <string_view>

namespace mp {

// A path as part of a URI (RFC 3986, 2.1): letters, digits and "-._~/" stay, every other byte becomes %XX.
std::string percent_encoded(std::string_view path);

}  // namespace mp
