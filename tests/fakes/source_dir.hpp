#pragma once

// The root of the checkout under test, without a trailing slash. A function in a separate library, because
// a path on the command line of every test would prevent other clones from sharing the compiler cache.
const char* mp_source_dir();
