// Written by the build of a CUDA libtorch; absent from one built for the CPU.
#pragma once
