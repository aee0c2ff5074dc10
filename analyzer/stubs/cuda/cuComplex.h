#pragma once
#include "cuda_runtime.h"
MP_HD cuFloatComplex make_cuFloatComplex(float, float);
MP_HD cuFloatComplex make_cuComplex(float, float);
MP_HD cuDoubleComplex make_cuDoubleComplex(double, double);
MP_HD float cuCrealf(cuFloatComplex);
MP_HD float cuCimagf(cuFloatComplex);
MP_HD cuFloatComplex cuCaddf(cuFloatComplex, cuFloatComplex);
MP_HD cuFloatComplex cuCmulf(cuFloatComplex, cuFloatComplex);
