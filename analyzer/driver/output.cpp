#include "analyzer/driver/output.hpp"

namespace mp::lint {

bool keeps_notes(Format format) { return format == Format::json || format == Format::sarif; }

}  // namespace mp::lint
