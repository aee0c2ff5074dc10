#include "analyzer/driver/front_ends.hpp"
#include "analyzer/python/config_files.hpp"

namespace mp::lint {

FrontEnds real_front_ends() {
    return {.translate = make_invocation,
            .extract = extract,
            .version = extractor_version,
            .default_command = default_command,
            .load_database = CompileDatabase::load,
            .find_database = CompileDatabase::find,
            .extract_python = python::extract_file,
            .is_relevant = python::is_relevant,
            .configuration_files = python::configuration_files,
            .module_name = python::module_name,
            .rules = all_rules(),
            .rule_page = rule_page};
}

}  // namespace mp::lint
