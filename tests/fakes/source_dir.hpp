#pragma once

// The root of the checkout under test, without a slash at its end. A function of its own library, because a
// path on the command line of every test would keep another clone from sharing the compiler cache.
const char* mp_source_dir();
