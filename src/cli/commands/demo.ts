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
import { SimulatedChargers } from "../../sim/chargers.ts";
import { depotOf, mixedDepotOf, MixedFloor } from "../../sim/mixedFloor.ts";
import { SimulatedPartner } from "../../sim/partner.ts";
import { runScript, loadScript } from "../../sim/script.ts";
import { plainLogger } from "../logger.ts";
import { complain, type ExitCode, say } from "../output.ts";
import { stopSignal } from "../stopSignal.ts";

/** Runs daemon, broker, partner and chargers in one process, over real HTTP and MQTT on free ports, until Ctrl-C. */
export async function demo(level: string): Promise<ExitCode> {
  const stopped = stopSignal("SIGTERM", "SIGINT", "SIGHUP");
  const world = realMachine(plainLogger(level));
  const { now, randomBytes } = world;
  // The script logs the actions of the simulated side as sentences.
  const silent = pino({ level: "silent" });
  const script = await loadScript(shipped("config/demo-script.yaml"));
  if (!script.ok) {
    complain(script.reason);
    return 1;
  }
  await using stack = new AsyncDisposableStack();
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
  const text = readFileSync(shipped("config/demo.yaml"), "utf8").replaceAll("{partner}", partner.baseUrl);
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

  const chargers = stack.use(
    SimulatedChargers.start({
      url: `mqtt://127.0.0.1:${app.brokerPort}`,
      prefix: config.mqtt.prefix,
      site: config.site.id,
      chargers: depotOf(config.chargers, config.vehicles),
      now,
      log: silent,
    }),
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

const makesIn = ({ chargers }: Config): number => new Set(chargers.map(({ profile }) => profile)).size;
