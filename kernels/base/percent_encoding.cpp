#include "kernels/base/percent_encoding.hpp"

namespace mp {

std::string percent_encoded(std::string_view path) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("-._~/").find(c) != std::string_view::npos;
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += kDigits[static_cast<unsigned char>(c) >> 4];
            out += kDigits[static_cast<unsigned char>(c) & 15];
        }
    }
    return out;
}

}  // namespace mp
