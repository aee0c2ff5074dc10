#!/bin/sh
# ranks.sh RANKS PORT COMMAND...: starts the ranks that torchrun would start, without its import of torch, which takes
# as long as a short training. The exit status is that of the last rank that failed.
export WORLD_SIZE="$1" MASTER_ADDR=localhost MASTER_PORT="$2"
shift 2
rank=0
started=
while [ "$rank" -lt "$WORLD_SIZE" ]; do
    RANK=$rank LOCAL_RANK=$rank "$@" &
    started="$started $!"
    rank=$((rank + 1))
done
status=0
for process in $started; do
    wait "$process" || status=$?
done
exit "$status"
