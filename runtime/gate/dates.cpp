#include "runtime/gate/dates.hpp"

#include <chrono>

namespace mp::trace {
namespace {

// -1 when there is a character that is not a digit.
int number(std::string_view text) {
    int value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return -1;
        value = value * 10 + (c - '0');
    }
    return value;
}

std::string padded(unsigned value, std::size_t width) {
    std::string out = std::to_string(value);
    return out.size() < width ? std::string(width - out.size(), '0') + out : out;
}

}  // namespace

bool is_date(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    const int year = number(text.substr(0, 4)), month = number(text.substr(5, 2)),
              day = number(text.substr(8, 2));
    if (year < 1970 || month < 1 || day < 1) return false;
    using namespace std::chrono;
    return year_month_day(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                          std::chrono::day(static_cast<unsigned>(day)))
        .ok();
}

std::string date_text(int year, unsigned month, unsigned day) {
    return year < 0 ? std::string()
                    : padded(static_cast<unsigned>(year), 4) + "-" + padded(month, 2) + "-" + padded(day, 2);
}

}  // namespace mp::trace
