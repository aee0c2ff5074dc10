// Clang's CUDA wrapper still includes this name; CUDA 13 no longer ships it. Only for such toolkits: with an
// older one the real header must be found.
#pragma once
