#pragma once

#include <string>
#include <string_view>

namespace mp::trace {

bool is_date(std::string_view);  // "2027-01-31", an existing day
std::string date_text(int year, unsigned month, unsigned day);

}  // namespace mp::trace
