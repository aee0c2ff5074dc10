#include <string>

#include "analyzer/rules/rule.hpp"
#include "embedded_rule_pages.hpp"

namespace mp::lint {

std::string_view rule_page(std::string_view id) { return embedded_rule_pages(std::string(id) + ".md"); }

}  // namespace mp::lint
