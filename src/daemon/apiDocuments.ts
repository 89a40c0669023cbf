import { writeFileSync } from "node:fs";
import * as z from "zod";

import { asyncApi } from "../chargers/native/asyncApi.ts";
import type { Json } from "../domain/audit.ts";
import { instant } from "../domain/units.ts";
import { holdEndRequest, holdSchema } from "../operator/holdRequest.ts";
import { answers } from "../operator/http/answers.ts";
import { openApi } from "../operator/http/openapi.ts";
import { problemBody } from "../operator/http/problem.ts";
import { routesOf } from "../operator/http/server.ts";
import type { OperatorViews } from "../operator/http/views.ts";

export const ASYNCAPI_FILE = new URL("../../docs/asyncapi.json", import.meta.url);
export const OPENAPI_FILE = new URL("../../docs/openapi.json", import.meta.url);

const text = (document: Json): string => `${JSON.stringify(document, null, 2)}\n`;

/** The routes of a listener that never starts. */
const rows = () =>
  routesOf(
    Promise.withResolvers<OperatorViews>().promise,
    { access: { kind: "open" }, now: () => instant(0), monotonic: () => 0, record: () => {}, page: null },
    null,
  );

/** The HTTP API for the people on site, from the schemas that check its requests. */
export const openApiText = (): string => text(openApi(rows()));

/** A problem as MQTT carries it. */
const refusal = problemBody.pick({ title: true, status: true, detail: true, errors: true }).strict();

/** The native MQTT topics, from the schemas that read their payloads. */
export const asyncApiText = (): string =>
  text(
    asyncApi({
      hold: z.union([holdSchema, holdEndRequest]),
      holdResult: z.union([answers.openedHold, answers.hold, refusal]),
      alarm: answers.alarm,
    }),
  );

if (import.meta.main) {
  writeFileSync(OPENAPI_FILE, openApiText());
  writeFileSync(ASYNCAPI_FILE, asyncApiText());
}
