"""Writes fp8_oracle.txt: the results of another implementation for the two fp8 formats.

    pip install ml_dtypes==0.6.0 numpy && python3 fp8_oracle.py > fp8_oracle.txt

decode FORMAT PATTERN VALUE: all 256 patterns. encode FORMAT VALUE PATTERN: the midpoint between each
pair of neighbours and the fp32 values next to it, and values beyond the largest one.
"""
import ml_dtypes
import numpy as np

FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def shown(value):
    if not np.isfinite(value):
        return str(float(value))
    return float(value).hex()


print("# Made by fp8_oracle.py with ml_dtypes", ml_dtypes.__version__)
for name, kind in FORMATS.items():
    patterns = np.arange(256, dtype=np.uint8)
    values = patterns.view(kind).astype(np.float32)
    for pattern, value in zip(patterns, values):
        print("decode", name, f"{pattern:02x}", shown(value))
    finite = np.unique(np.abs(values[np.isfinite(values)]))
    middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    top = finite[-1] + (finite[-1] - finite[-2]) / 2
    probes = [p for m in [*middles, np.float32(top)]
              for p in (np.nextafter(m, np.float32(0)), m, np.nextafter(m, np.float32(np.inf)))]
    for probe in [*probes, np.float32(1e30), np.float32(np.inf)]:
        pattern = np.array([probe], dtype=np.float32).astype(kind).view(np.uint8)[0]
        print("encode", name, shown(probe), f"{pattern:02x}")
