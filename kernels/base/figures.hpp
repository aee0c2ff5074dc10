#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Figures as sentences show them. Never in the program's locale.

namespace mp {

std::string figure(double);         // "71,304", "2.45", "0.000312", "1.2e+09", "inf"
std::string percent(double share);  // 0.463 -> "46 %", 0.0042 -> "0.42 %"
std::string phi(double floors);     // "8.0 φ"
std::string counted(std::uint64_t n,
                    std::string_view noun);  // "1 step", "1,204 steps"; n may be a signed count

}  // namespace mp
