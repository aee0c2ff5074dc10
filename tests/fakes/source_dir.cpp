#include "tests/fakes/source_dir.hpp"

const char* mp_source_dir() { return MP_SOURCE_DIR; }
