import { readFileSync } from "node:fs";
import type { Document } from "openapi-backend";
import { expect, onTestFinished, test } from "vitest";

import { OPENAPI_FILE, openApiText } from "../../../packaging/apiDocuments.ts";
import { LiveStream } from "../../../src/operator/http/stream.ts";
import { OperatorListener } from "../../../src/operator/http/server.ts";
import { apiContract } from "../../support/apiContract.ts";
import { someFleet } from "../../support/someAnswers.ts";
import { someAccounts, someListener, someViews, T0 } from "../../support/aListener.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}
interface Description {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const PASSWORD = "a long password";

/** Query, body and parts of the path of the requests that need them. */
const EXAMPLES: Readonly<
  Record<string, { readonly query?: string; readonly body?: unknown; readonly type?: string }>
> = {
  getAudit: { query: "?event=EV-1&limit=5&newest=true" },
  getEvents: { query: "?limit=1&after=EV-1" },
  getSites: { query: "?limit=10&after=depot&text=north&state=alarms" },
  getReadings: { query: "?charger=bay-01" },
  getHandover: { query: "?since=22:00" },
  getExplain: { query: "?charger=bay-01" },
  postHolds: {
    body: {
      scope: { vehicle: "veh-214" },
      kind: "level",
      level: { currentA: 16 },
      until: { at: "2026-11-21T05:40:00Z" },
      reason: "leaves early",
    },
  },
  postHoldsPreview: {
    body: {
      scope: { vehicle: "veh-214" },
      kind: "level",
      level: { currentA: 16 },
      until: { at: "2026-11-21T05:40:00Z" },
      reason: "leaves early",
    },
  },
  deleteHoldsId: { body: { reason: "back already" } },
  putMode: { body: { mode: "observe", reason: "work on the panel", until: "2026-11-21T06:00:00Z" } },
  postBrokerTrial: { body: { reason: "commissioning" } },
  postConfigurationApply: { body: { reason: "second panel", fingerprint: "0123456789ab", force: true } },
  postConfigurationRollback: { body: { reason: "bay 3 does not follow", fingerprint: "0123456789ab" } },
  postChargersIdTrial: { body: { reason: "commissioning", silence: true } },
  postChargersIdResend: { body: { reason: "it does not follow" } },
  postChargersIdReboot: { body: { reason: "it hangs" } },
  postChargersIdVehicle: { body: { vehicle: "veh-214", reason: "it stands there" } },
  deleteChargersIdVehicle: { body: { reason: "a mistake" } },
  postAlarmsKeyAcknowledge: { body: { note: "an electrician is on the way" } },
  putDeparturesVehicle: { body: { at: "05:40", energyWh: 18_000 } },
  postDeparturesVehicleSkip: { body: { date: "2026-11-24" } },
  postDepartures: { body: "vehicle,at,soc\nveh-214,05:40,80", type: "text/csv" },
  postUsers: { body: { name: "x", role: "viewer", password: PASSWORD } },
  postTokens: { body: { name: "x", role: "viewer", expires: "90d" } },
  postSession: { body: { name: "kari", password: PASSWORD } },
};

test("docs/openapi.json is fresh: npm run schema", () => {
  expect(readFileSync(OPENAPI_FILE, "utf8")).toBe(openApiText());
});

test("a proof is described in both of its forms", async () => {
  const listener = await OperatorListener.start(someListener({}), Promise.resolve(someViews));
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const { paths } = JSON.parse(openApiText()) as Description;
  const described = paths["/api/v1/events/{id}/proof"]?.["get"]?.responses["200"]?.content ?? {};
  for (const format of ["json", "csv"]) {
    const answer = await fetch(`http://127.0.0.1:${listener.port}/api/v1/events/x/proof?format=${format}`);
    expect(Object.keys(described)).toContain(answer.headers.get("content-type")?.split(";")[0]);
  }
});

test("every operation of the document answers as described, and every mistake as problem+json", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("kari", "integrator", PASSWORD, T0);
  const added = accounts.addToken("test", "integrator", null, T0);
  const stream = new LiveStream().follow({ epoch: 1, collect: () => {}, take: () => [] });
  const listener = await OperatorListener.start(
    someListener({ access: { kind: "login", accounts, isSecure: false }, fleet: someFleet }),
    Promise.resolve({ ...someViews, stream }),
  );
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const url = `http://127.0.0.1:${listener.port}`;
  const authorization = `Bearer ${added.ok ? added.token : ""}`;
  const served = await fetch(`${url}/api/v1/openapi.json`, { headers: { authorization } });
  const document = await served.text();
  expect(JSON.parse(document)).toEqual(JSON.parse(openApiText()));
  const { openapi, paths } = JSON.parse(document) as Description;
  expect(openapi).toBe("3.1.0");
  const faults = await apiContract(JSON.parse(document) as Document);
  const called: string[] = [];
  const wrong: string[] = [];
  for (const [path, operations] of Object.entries(paths))
    for (const [verb, { operationId, responses }] of Object.entries(operations)) {
      const { query = "", body, type: sentAs = "application/json" } = EXAMPLES[operationId] ?? {};
      const method = verb.toUpperCase();
      const call = async (search: string, headers: Readonly<Record<string, string>>, sent: unknown) => {
        const stop = new AbortController();
        const asked = {
          method,
          headers: { ...headers, ...(sent === undefined ? {} : { "content-type": sentAs }) },
        };
        const target = `${path.replaceAll(/\{\w+\}/g, "x")}${search}`;
        const response = await fetch(`${url}${target}`, {
          ...asked,
          signal: stop.signal,
          ...(sent === undefined ? {} : { body: typeof sent === "string" ? sent : JSON.stringify(sent) }),
        });
        const type = response.headers.get("content-type") ?? "";
        const answer = type.startsWith("text/event-stream") ? "" : await response.text();
        stop.abort();
        const { status } = response;
        const described = Object.keys(responses[status]?.content ?? {});
        if (status < 400 && type !== "" && !described.includes(type.split(";")[0] ?? ""))
          wrong.push(`${operationId}: ${status} ${type} is not described`);
        if (status >= 400 && !type.startsWith("application/problem+json"))
          wrong.push(`${operationId}: ${status} is no problem+json but ${type}`);
        wrong.push(
          ...faults({ method, path: target, headers: asked.headers, body: sent, status, answer, type }),
        );
        return status;
      };
      const success = await call(query, { authorization }, body);
      called.push(`${operationId} ${success}`);
      if (!Object.keys(responses).includes(String(success)) || success >= 400)
        wrong.push(`${operationId}: answered ${success}`);
      // Probes may add parameters of their own.
      if (!path.startsWith("/api/")) continue;
      await call(`${query === "" ? "?" : `${query}&`}nonsense=1`, { authorization }, body);
      await call(query, {}, body === undefined ? undefined : { nonsense: true });
    }
  expect(wrong).toEqual([]);
  expect(called).toEqual(
    expect.arrayContaining(["getStream 200", "getAudit 200", "postSession 201", "deleteSession 204"]),
  );
});
