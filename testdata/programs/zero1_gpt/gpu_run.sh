#!/usr/bin/env bash
# Builds zero1_gpt in DIR with nvcc and runs it there on a real GPU, one rank: each precision twice, which must print the
# same bits, and each defect once. $WRAP goes before each run, e.g. WRAP="mp-trace -o run --".
#
#     gpu_run.sh DIR
set -euo pipefail
source_dir=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
if [ ! -x zero1_gpt ]; then
  nvcc -std=c++17 -O2 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_90,code=compute_90 -cudart shared -Xlinker -export-dynamic \
    "$source_dir"/{train.cu,main.cpp,matmul.cpp,options.cpp,ranks.cpp} -lcublasLt -lcublas -lnccl -o zero1_gpt
fi
for precision in fp32 bf16 fp16; do
  for n in 1 2; do ${WRAP:-} ./zero1_gpt --precision $precision --steps 20 >$precision.$n; done
  cmp $precision.1 $precision.2
  echo "$precision: same bits in 2 runs; $(tail -n 1 $precision.1)"
done
while read -r flags; do
  echo "== $flags"
  # shellcheck disable=SC2086
  ${WRAP:-} ./zero1_gpt --steps 6 $flags
done <<'FLAGS'
--precision fp16 --half-accumulator
--precision bf16 --split-k
--precision bf16 --no-master --lr 1e-4
--precision bf16 --average
--precision fp16 --overflow-at 3 1
--precision bf16 --overflow-at 3 1 --no-guard
--precision bf16 --graph
FLAGS
