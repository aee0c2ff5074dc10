#include "analyzer/driver/parts.hpp"

namespace mp::lint {

Parts real_parts() {
    return {.translate = make_invocation,
            .extract = extract,
            .version = extractor_version,
            .default_command = default_command,
            .load_database = CompileDatabase::load,
            .find_database = CompileDatabase::find,
            .rules = all_rules(),
            .rule_page = rule_page};
}

}  // namespace mp::lint
