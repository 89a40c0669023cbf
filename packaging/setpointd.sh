#!/bin/sh
# The installed command: the runtime and the daemon that came in the same package, wherever that was unpacked.
root=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)
# Node is quiet about url.parse() of the MQTT library only where that is in node_modules.
# A nursery of 32 MB: what an event for thousands of vehicles brings is mostly gone before it is copied. What a long
# list brings over the network is counted with the rest of the memory: by itself it has V8 go through all of the heap.
# SIGUSR1 opens no debugger.
exec "$root/lib/setpointd/node" --min-semi-space-size=32 --max-semi-space-size=32 --external-memory-accounted-in-global-limit --disable-sigusr1 --disable-warning=DEP0169 "$root/lib/setpointd/setpointd.mjs" "$@"
