import { map, mergeMap, NEVER, of } from "rxjs";

import type { Telemetry } from "../../src/domain/telemetry.ts";
import { chargerId, instant } from "../../src/domain/units.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import type { Plant } from "./simGateway.ts";

/** Bugs that a day must find, laid between a run of the daemon and what it reaches. */

/** A release is said to have gone out, and never does. */
export const lostRelease: Plant = () => ({
  ports: (ports) => ({
    ...ports,
    send: async (...sending) =>
      sending[0].desired.kind === "release" ? { ok: true } : ports.send(...sending),
  }),
});

/** While commits fail nothing is said at an event's end: a release counts as gone, and never goes out. */
export const boundToTheDisk: Plant = () => whileRefused(async () => ({ ok: true }));

/** While commits fail whoever is to be released is told once more what it was told for the event. */
export const renewedPastItsEnd: Plant = () => {
  const before = new Map<string, Parameters<ControlPorts["send"]>>();
  return whileRefused(
    (send, sending) => {
      const pause = before.get(sending[0].charger);
      return pause === undefined ? send(...sending) : send(...pause);
    },
    ([command, ...more]) => {
      if (command.desired.kind === "pause") before.set(command.charger, [command, ...more]);
    },
  );
};

/** What becomes of a release after a failed commit, until one succeeds. */
function whileRefused(
  release: (
    send: ControlPorts["send"],
    sending: Parameters<ControlPorts["send"]>,
  ) => ReturnType<ControlPorts["send"]>,
  saw: (sending: Parameters<ControlPorts["send"]>) => void = () => {},
): ReturnType<Plant> {
  let isRefused = false;
  return {
    ports: (ports) => ({
      ...ports,
      durable: async (when) => {
        const committed = await ports.durable(when);
        isRefused = !committed.ok;
        return committed;
      },
      send: async (...sending) => {
        saw(sending);
        return isRefused && sending[0].desired.kind === "release"
          ? release(ports.send, sending)
          : ports.send(...sending);
      },
    }),
  };
}

/** Each start has another site key. */
export const offsetsRedrawn: Plant = (run) => ({
  opened: (state) => ({ ...state, siteKey: Buffer.alloc(32, 6 + run) }),
});

/** Each start knows of no evaluation in the hour before the last one. */
export const evaluationsForgotten: Plant = () => ({
  opened: ({ storedState, ...state }) => {
    const { evaluatedAt } = storedState;
    return {
      ...state,
      storedState: {
        ...storedState,
        evaluatedAt: evaluatedAt === null ? null : instant(evaluatedAt - 60 * 60_000),
      },
    };
  },
});

/** What could not be sent is kept, and goes out once something can be: what an MQTT library does unless it is kept from it. */
export const replayed: Plant = () => {
  const kept: Parameters<ControlPorts["send"]>[] = [];
  return {
    ports: (ports) => ({
      ...ports,
      send: async (...sending) => {
        const sent = await ports.send(...sending);
        if (!sent.ok) kept.push(sending);
        else for (const old of kept.splice(0)) await ports.send(...old);
        return sent;
      },
    }),
  };
};

/** A webhook counts as newer than all before it, whatever its modification time. */
export const staleWins: Plant = (run) => {
  let news = run * 1_000_000;
  return {
    post: (body) => {
      if (typeof body !== "object" || body === null || !("modificationDateTime" in body)) return body;
      news += 1;
      return { ...body, modificationDateTime: new Date(Date.UTC(2027, 0, 1) + news).toISOString() };
    },
  };
};

/** After a restart nobody says that new starts may happen. */
export const missedWakeUp: Plant = (run) => ({
  sources: (sources) => (run === 1 ? sources : { ...sources, startsAllowed$: NEVER }),
});

/** Each time that a charger says it is online counts as a return. */
export const greetedAnew: Plant = () => ({
  sources: (sources) => ({
    ...sources,
    charger$: sources.charger$.pipe(
      mergeMap((message) =>
        message.kind === "online" && message.online && !message.snapshot
          ? of({ ...message, online: false }, message)
          : of(message),
      ),
    ),
  }),
});

/** Each third report is said to have been taken, and never goes out. */
export const lostReport: Plant = () => {
  let count = 0;
  return {
    report: (post) => (body) => {
      count += 1;
      const taken = { kind: "answered", status: 201, text: "", retryAfter: null } as const;
      return count % 3 === 0 ? Promise.resolve(taken) : post(body);
    },
  };
};

/** What waits to be sent does not survive a restart. */
export const forgottenOutbox: Plant = () => ({
  opened: (state) => ({ ...state, storedState: { ...state.storedState, outbox: [] } }),
});

/** Reports are stamped when they go out, so that none comes twice as it was. */
export const restamped: Plant = () => {
  let count = 0;
  return {
    report: (post) => (body) => {
      count += 1;
      return post(body.replace('"clientName":"', `"clientName":"${count} `));
    },
  };
};

/** A charger that names a vehicle frees the bay of that vehicle: `v1` stands at `bay-001`. */
export const bayFreedByAClaim: Plant = () => ({
  sources: (sources) => ({
    ...sources,
    charger$: sources.charger$.pipe(
      mergeMap((message) => {
        const named = message.kind === "telemetry" ? message.telemetry.vehicle : null;
        const home = chargerId(`bay-${(named ?? "").slice(1).padStart(3, "0")}`);
        if (message.kind !== "telemetry" || typeof named !== "string" || home === message.charger)
          return of(message);
        const telemetry: Telemetry = { at: message.telemetry.at, state: "unplugged" };
        return of(message, { kind: "telemetry" as const, charger: home, telemetry });
      }),
    ),
  }),
});

/** No make says that nobody is plugged in, or what it draws. */
export const makesSayNothing: Plant = () => ({
  sources: (sources) => ({
    ...sources,
    charger$: sources.charger$.pipe(
      map((message) => {
        if (message.kind !== "telemetry" || message.lastKnown === undefined) return message;
        const { at } = message.telemetry;
        return { ...message, telemetry: { at }, lastKnown: { at } };
      }),
    ),
  }),
});
