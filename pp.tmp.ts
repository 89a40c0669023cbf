import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, millis } from "./src/domain/units.ts";
import { Mosquitto } from "./test/support/mosquitto.ts";
import { waitFor } from "./test/support/waitFor.ts";
import { Side } from "./test/bench/side.ts";
import { Daemon } from "./test/bench/daemon.ts";
import { benchDepot, scratchDirectory, vehicles } from "./test/bench/depot.ts";
import { eventFor, now } from "./test/bench/partner.ts";
import { cpuOf, quiet } from "./test/bench/process.ts";
const CH = 200;
const change = process.argv[2] === "change";
const opts = process.argv.slice(3);
await using broker = await Mosquitto.start();
const fleet = vehicles(CH);
const list = Array.from({ length: 10000 }, (_, i) =>
  eventFor(fleet.slice(i % CH, (i % CH) + 1), { start: after(now(), millis(86400000)) }),
);
using scratch = scratchDirectory();
const file = join(scratch.path, "list.json");
writeFileSync(file, JSON.stringify(list));
console.log("bytes", JSON.stringify(list).length);
await using partner = await Side.start<any>("listPartner", [file]);
using depot = await benchDepot({
  chargers: CH,
  broker: broker.url,
  partner: partner.ready.url,
  pollEvery: "1s",
});
await using d = await Daemon.start(depot, { options: opts });
await using bare = await Side.start<number>("floor/parser", [file]);
await waitFor(async () => (await d.metric("setpointd_dispatches")) === 10000, { timeoutMs: 60000 });
await sleep(8000);
for (let r = 0; r < 3; r++) {
  const b = [cpuOf(d.pid), (await partner.order("go")).lists];
  for (let s = 0; s < 10; s++) {
    if (change) {
      const i = (s * 997 + r * 31) % 10000;
      list[i] = eventFor(fleet.slice(i % CH, (i % CH) + 1), {
        start: after(now(), millis(86400000 + s * 1000)),
      });
      writeFileSync(file, JSON.stringify(list));
      await partner.order("go");
    }
    await sleep(1000);
  }
  const polls = (await partner.order("go")).lists - b[1]!;
  console.log(
    "cpu/poll",
    ((cpuOf(d.pid) - b[0]!) / polls).toFixed(1),
    "polls",
    polls,
    "JSON.parse",
    (await bare.order("go")).toFixed(1),
  );
}
