import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";

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
import { startOcpp } from "../../ocpp/start.ts";
import { ocppConfigFrom } from "../../config/ocpp.ts";
import type { Machine } from "../../daemon/edges.ts";
import { depotOf, mixedDepotOf, MixedFloor } from "../../sim/mixedFloor.ts";
import { wireEvent } from "../../sim/events.ts";
import { SimulatedPartner } from "../../sim/partner.ts";
import { runScript, loadScript } from "../../sim/script.ts";
import { after, type Instant, iso, minutes } from "../../domain/units.ts";
import { heldLogger } from "../logger.ts";
import { complain, type ExitCode, say } from "../output.ts";
import { stopSignal } from "../stopSignal.ts";

/** Clock time so many minutes after the start, for `{leaves+12}` in the configuration. */
const leaving = (text: string, now: Instant): string =>
  text.replaceAll(/\{leaves\+(\d+)\}/g, (_, later: string) =>
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

/** Runs daemon, broker, partner and chargers in one process, over real HTTP and MQTT on free ports, until Ctrl-C. */
export async function demo(level: string): Promise<ExitCode> {
  const stopped = stopSignal("SIGTERM", "SIGINT", "SIGHUP");
  const { log, release } = heldLogger(level);
  const world = realMachine(log);
  const { now, randomBytes } = world;
  // The script logs the actions of the simulated side as sentences.
  const silent = pino({ level: "silent" });
  const script = await loadScript(shipped("config/demo-script.yaml"));
  if (!script.ok) {
    complain(script.reason);
    return 1;
  }
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
  const text = leaving(
    readFileSync(shipped("config/demo.yaml"), "utf8").replaceAll("{partner}", partner.baseUrl),
    now(),
  );
  const loadedProfiles = loadProfiles(null);
  const loaded = configFrom(
    text,
    { directory: state, env: { DEMO_CLIENT_SECRET: clientSecret, DEMO_WEBHOOK_SECRET: webhookSecret } },
    profileChecks(loadedProfiles),
  );
  if (!loaded.ok) {
    complain(explain(loaded.mistakes, "config/demo.yaml"));
    return 2;
  }
  const { config } = loaded;

  const started = await start(config, realEdges(config, world, loadedProfiles.profiles));
  if (!started.ok) {
    complain(started.reason);
    return 1;
  }
  const app = stack.use(started.app);
  partner.webhookTo({
    url: `http://127.0.0.1:${app.webhookPort}${config.webhook?.path ?? ""}`,
    secret: webhookSecret,
  });
  const page = `http://127.0.0.1:${app.operatorPort}/`;
  say(
    `Open ${page} to watch a depot: daemon, broker, partner and ${config.chargers.length} chargers of ${makesIn(config)} makes, all in this process. Ctrl-C stops it.`,
  );
  say(`Programs: ${page}api/v1/status, and mqtt://127.0.0.1:${app.brokerPort}`);
  release();

  const natives = depotOf(config.chargers, config.vehicles);
  const chargers = stack.use(
    SimulatedChargers.start({
      url: `mqtt://127.0.0.1:${app.brokerPort}`,
      prefix: config.mqtt.prefix,
      site: config.site.id,
      chargers: natives
        .filter(({ traits }) => traits.id !== OCPP_BAY)
        .map((setup) => ({ ...setup, faults: { ignoresSetpoints: setup.traits.id === DEAF_BAY } })),
      now,
      log: silent,
    }),
  );
  const ocppBay = natives.find(({ traits }) => traits.id === OCPP_BAY);
  if (ocppBay !== undefined)
    await startOcppBay(
      ocppBay,
      `mqtt://127.0.0.1:${app.brokerPort}`,
      config,
      { ...world, log: silent },
      state,
      stack,
    );
  const others = stack.use(
    MixedFloor.start({
      url: `mqtt://127.0.0.1:${app.brokerPort}`,
      chargers: mixedDepotOf(config.chargers, config.vehicles, loadedProfiles.profiles),
      now,
      log: silent,
    }),
  );
  await Promise.all([chargers.whenOnline(), others.whenOnline()]);
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

/** The bay that speaks OCPP 1.6: a bridge, and a charger that connects to it. */
const OCPP_BAY = "bay-02";

async function startOcppBay(
  { traits, vehicle }: ChargerSetup,
  url: string,
  { site, mqtt }: Config,
  machine: Machine,
  state: string,
  stack: AsyncDisposableStack,
): Promise<void> {
  const password = machine.randomBytes(24).toString("base64url");
  const bay = {
    site: site.id,
    mqtt: { url, prefix: mqtt.prefix },
    ocpp: { listen: "127.0.0.1:0", meterValues: { every: "1s" } },
    status: "127.0.0.1:0",
    stations: [
      { identity: "CP-2", password: { env: "PASSWORD" }, connectors: [{ id: 1, charger: OCPP_BAY }] },
    ],
  };
  const loaded = ocppConfigFrom(JSON.stringify(bay), { directory: state, env: { PASSWORD: password } });
  if (!loaded.ok) throw new Error(explain(loaded.mistakes, "the OCPP bay of the demo"));
  const bridge = stack.use(await startOcpp(loaded.config, machine));
  const { now } = machine;
  const charger = new OcppCharger({
    url: `ws://127.0.0.1:${bridge.port}/ocpp/CP-2`,
    identity: "CP-2",
    password,
    token: vehicle?.identity?.value ?? "",
    model: switchedOn(traits, vehicle, now()),
    now,
  });
  stack.use(charger);
  say(
    `${OCPP_BAY} speaks OCPP 1.6 with a central system: http://127.0.0.1:${bridge.statusPort}/api/v1/stations`,
  );
}

const makesIn = ({ chargers }: Config): number => new Set(chargers.map(({ profile }) => profile)).size;
