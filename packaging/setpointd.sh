#!/bin/sh
# The installed command: the runtime and the daemon that came in the same package, wherever that was unpacked.
root=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)
# Node is quiet about url.parse() of the MQTT library only where that is in node_modules.
# A nursery of up to 16 MB: most of what an event for thousands of vehicles allocates is garbage before it would be
# copied. It has no minimum, so it shrinks when the site is idle. The rest of the heap may take 60 % of the memory, which
# under MemoryMax is that limit: with the 50 % of V8 a site of 20,000 chargers collects garbage all the time. The bytes
# of a long list are counted with the rest of the memory: counted alone they make V8 go through all of the heap.
# SIGUSR1 opens no debugger. Certificates are verified with the authorities of the system beside those of Node: a private one
# is installed there.
# Each address of a host name but the last has 2 s to connect: with the 500 ms of Node a slower link never connects.
# A process of a fleet has a nursery of up to 128 MB, and the rest of its heap doubles before it is collected. Thousands of
# sites are gigabytes: to go through them delays every site by seconds.
heap=
[ "${1-}" != fleet ] || heap="--max-semi-space-size=128 --heap-growing-percent=100"
exec "$root/lib/setpointd/node" --max-semi-space-size=16 --max-old-space-size-percentage=60 --external-memory-accounted-in-global-limit --disable-sigusr1 --use-system-ca --network-family-autoselection-attempt-timeout=2000 --disable-warning=DEP0169 $heap "$root/lib/setpointd/setpointd.mjs" "$@"
