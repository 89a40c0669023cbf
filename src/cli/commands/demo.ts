import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pino, { type Logger } from "pino";

import type { Profile } from "../../chargers/profile/schema.ts";
import { explain } from "../../config/explain.ts";
import { configFrom } from "../../config/load.ts";
import type { Config } from "../../config/schema.ts";
import { profileChecks } from "../../daemon/chargerModels.ts";
import { start } from "../../daemon/daemon.ts";
import { realEdges, realMachine } from "../../daemon/real.ts";
import { loadProfiles } from "../../daemon/loadProfiles.ts";
import { shipped } from "../../platform/packageRoot.ts";
import { type ChargerSetup, SimulatedChargers } from "../../sim/chargers.ts";
import { OcppCharger } from "../../sim/ocppCharger.ts";
import { switchedOn } from "../../sim/charger.ts";
import { depotOf, mixedDepotOf, MixedFloor } from "../../sim/mixedFloor.ts";
import { wireEvent } from "../../sim/events.ts";
import { SimulatedPartner } from "../../sim/partner.ts";
import { runScript, loadScript } from "../../sim/script.ts";
import { after, type Instant, iso, minutes } from "../../domain/units.ts";
import { heldLogger } from "../logger.ts";
import { type ExitCode, fail, say } from "../output.ts";
import { stopSignal } from "../stopSignal.ts";

/** The configuration with its addresses, and with a clock time for each `{leaves+12}`: so many minutes after the start. */
const demoText = (partner: string, brokerPort: number, now: Instant): string =>
  readFileSync(shipped("config/demo.yaml"), "utf8")
    .replaceAll("{partner}", partner)
    .replaceAll("{broker}", String(brokerPort))
    .replaceAll(/\{leaves\+(\d+)\}/g, (_, later: string) =>
      iso(after(now, minutes(Number(later)))).slice(11, 16),
    );

/** Accepts setpoints and ignores them. */
const DEAF_BAY = "bay-10";

/** The story of the page: five buses follow, one charger ignores it, Bus 207 will be short. */
const morningPeak = (now: Instant) =>
  wireEvent(
    {
      id: "EV-1000",
      name: "Morning peak",
      start: now,
      durationMs: minutes(30),
      priority: 9,
      ask: { amperes: 16 },
      vehicles: ["bus-207", "bus-208", "bus-209", "bus-210", "bus-211", "bus-212"],
    },
    now,
  );

/** Runs daemon, broker, partner and chargers in one process, and the OCPP bridge in another, over real HTTP and MQTT on free ports, until Ctrl-C. */
export async function demo(level: string): Promise<ExitCode> {
  const stopped = stopSignal("SIGTERM", "SIGINT", "SIGHUP");
  const { log, release } = heldLogger(level);
  const world = realMachine(log);
  const { now, randomBytes } = world;
  // The script logs the actions of the simulated side as sentences.
  const silent = pino({ level: "silent" });
  const script = await loadScript(shipped("config/demo-script.yaml"));
  if (!script.ok) return fail(1, script.reason);
  await using stack = new AsyncDisposableStack();
  stack.defer(release);
  const state = mkdtempSync(join(tmpdir(), "setpointd-demo-"));
  stack.defer(() => rmSync(state, { recursive: true, force: true }));

  const secret = (): string => randomBytes(24).toString("base64url");
  const [clientSecret, webhookSecret] = [secret(), secret()];
  const partner = stack.use(
    await SimulatedPartner.start({
      host: "127.0.0.1",
      port: 0,
      clientId: "demo-depot",
      clientSecret,
      webhook: null,
      now,
      log: silent,
    }),
  );
  const brokerPort = await freePort();
  const text = demoText(partner.baseUrl, brokerPort, now());
  const loadedProfiles = loadProfiles(null);
  const loaded = configFrom(
    text,
    { directory: state, env: { DEMO_CLIENT_SECRET: clientSecret, DEMO_WEBHOOK_SECRET: webhookSecret } },
    profileChecks(loadedProfiles),
  );
  if (!loaded.ok) return fail(2, explain(loaded.mistakes, "config/demo.yaml"));
  const { config } = loaded;

  // The bridge connects to the broker when its charger connects to it, so it can start first.
  const bridge = startBridge(config, brokerPort, state, secret(), stack);

  const started = await start(config, realEdges(config, world, loadedProfiles.profiles));
  if (!started.ok) return fail(1, started.reason);
  const app = stack.use(started.app);
  partner.webhookTo({
    url: `http://127.0.0.1:${app.webhookPort}${config.webhook?.path ?? ""}`,
    secret: webhookSecret,
  });
  // The script begins with the first line, and its first event is for the OCPP bay as well.
  await bridge.ports;
  const page = `http://127.0.0.1:${app.operatorPort}/`;
  say(
    `Open ${page} to watch a depot: daemon, broker, partner and ${config.chargers.length} chargers of ${makesIn(config)} makes, all in this process. Ctrl-C stops it.`,
  );
  say(`Programs: ${page}api/v1/status, and mqtt://127.0.0.1:${app.brokerPort}`);
  release();

  const floor = { url: `mqtt://127.0.0.1:${app.brokerPort}`, now, log: silent };
  await floorOnline(config, loadedProfiles.profiles, bridge, floor, stack);
  // Beside the script, which repeats itself and forgets its events.
  partner.put(morningPeak(now()));
  const stop = new AbortController();
  const playing = runScript(script.script, partner, {
    now,
    signal: stop.signal,
    log: (sentence) => world.log.info(`partner: ${sentence}`),
  });
  await stopped;
  say("Stopping.");
  stop.abort();
  await playing;
  return 0;
}

/** Starts the chargers of the depot, and resolves once all are online. */
async function floorOnline(
  { chargers, vehicles, mqtt: { prefix }, site }: Config,
  profiles: ReadonlyMap<string, Profile>,
  bridge: RunningBridge,
  client: { readonly url: string; readonly now: () => Instant; readonly log: Logger },
  stack: AsyncDisposableStack,
): Promise<void> {
  const setups = depotOf(chargers, vehicles);
  const natives = stack.use(
    SimulatedChargers.start({
      ...client,
      prefix,
      site: site.id,
      chargers: setups
        .filter(({ traits }) => traits.id !== OCPP_BAY)
        .map((setup) => ({ ...setup, faults: { ignoresSetpoints: setup.traits.id === DEAF_BAY } })),
    }),
  );
  const ocppBay = setups.find(({ traits }) => traits.id === OCPP_BAY);
  const ocppStarted = ocppBay === undefined ? null : startOcppBay(ocppBay, bridge, client.now, stack);
  const others = stack.use(
    MixedFloor.start({ ...client, chargers: mixedDepotOf(chargers, vehicles, profiles) }),
  );
  await Promise.all([natives.whenOnline(), others.whenOnline(), ocppStarted]);
}

/** The bay that speaks OCPP 1.6: a bridge in a process of its own, and a charger that connects to it. */
const OCPP_BAY = "bay-02";

interface RunningBridge {
  readonly process: ChildProcess;
  readonly password: string;
  /** Null: it has ended. */
  readonly ports: Promise<{ readonly ocpp: number; readonly status: number } | null>;
}

function startBridge(
  { site, mqtt }: Config,
  brokerPort: number,
  state: string,
  password: string,
  stack: AsyncDisposableStack,
): RunningBridge {
  const file = join(state, "ocpp.yaml");
  const bay = {
    site: site.id,
    mqtt: { url: `mqtt://127.0.0.1:${brokerPort}`, prefix: mqtt.prefix },
    ocpp: { listen: "127.0.0.1:0", meterValues: { every: "1s" } },
    status: "127.0.0.1:0",
    stations: [
      { identity: "CP-2", password: { env: "PASSWORD" }, connectors: [{ id: 1, charger: OCPP_BAY }] },
    ],
  };
  writeFileSync(file, JSON.stringify(bay));
  const bridge = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", "ocpp", "-c", file], {
    env: { ...process.env, PASSWORD: password, LOG_LEVEL: "info" },
    // The channel ends the bridge with the demo, whatever ends that.
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    // Ctrl-C is for the demo, which then stops the bridge.
    detached: true,
  });
  const ended = once(bridge, "exit");
  stack.defer(async () => {
    bridge.kill("SIGTERM");
    await ended;
  });
  return { process: bridge, password, ports: portsOf(bridge.stdout) };
}

async function startOcppBay(
  { traits, vehicle }: ChargerSetup,
  bridge: RunningBridge,
  now: () => Instant,
  stack: AsyncDisposableStack,
): Promise<void> {
  const ended = once(bridge.process, "exit");
  const ports = await bridge.ports;
  if (ports === null) return;
  const charger = new OcppCharger({
    url: `ws://127.0.0.1:${ports.ocpp}/ocpp/CP-2`,
    identity: "CP-2",
    password: bridge.password,
    token: vehicle?.identity?.value ?? "",
    model: switchedOn(traits, vehicle, now()),
    now,
  });
  stack.use(charger);
  const stop = new AbortController();
  stack.defer(() => stop.abort());
  void ended.then(() => sayHowItEnds(charger, stop.signal));
  say(
    `${OCPP_BAY} speaks OCPP 1.6 with a central system: http://127.0.0.1:${ports.status}/api/v1/stations. It is a process of its own: kill ${bridge.process.pid ?? 0} shows what happens without it.`,
  );
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** The bridge has ended: the charger keeps its limit until the lease in it has passed. */
async function sayHowItEnds(charger: OcppCharger, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { order } = charger.model;
  const until = order === null ? "has no limit" : `keeps its limit until ${iso(order.expires).slice(11, 19)}`;
  say(`The OCPP bridge has ended. ${OCPP_BAY} ${until}.`);
  while (charger.model.order !== null && !signal.aborted)
    await sleep(250, null, { signal }).catch(() => null);
  if (order !== null && !signal.aborted) say(`${OCPP_BAY} has ended its limit by itself.`);
}

/** Ports of a bridge, from its log. Null: it has ended. */
async function portsOf(
  output: NodeJS.ReadableStream | null,
): Promise<{ readonly ocpp: number; readonly status: number } | null> {
  if (output === null) return null;
  for await (const line of createInterface({ input: output })) {
    const { ocpp, status } = JSON.parse(line) as Record<string, unknown>;
    if (typeof ocpp === "number" && typeof status === "number") {
      output.resume();
      return { ocpp, status };
    }
  }
  return null;
}

const makesIn = ({ chargers }: Config): number => new Set(chargers.map(({ profile }) => profile)).size;
