#include "runtime/launch/words.hpp"

#include "kernels/base/text.hpp"

namespace mp::launch {

std::string printable(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        const std::string_view bytes = text.substr(0, c.length);
        text.remove_prefix(c.length);
        if (c.valid && !is_unsafe(c.value)) {
            out += bytes;
            continue;
        }
        for (const char byte : bytes) {
            out += "\\x";
            out += kHex[static_cast<unsigned char>(byte) >> 4];
            out += kHex[static_cast<unsigned char>(byte) & 15];
        }
    }
    return out;
}

}  // namespace mp::launch
