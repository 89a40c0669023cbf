import { readFileSync } from "node:fs";
import { type Document, OpenAPIBackend } from "openapi-backend";
import { parse } from "yaml";

import type { Exchange } from "./recordingProxy.ts";

/** What is wrong with an exchange by the description of the partner's interface; nothing: it is as described. */
export type Contract = (exchange: Exchange) => readonly string[];

/** The description in partner.openapi.yaml, held against what passed by a validator that is not ours. */
export async function partnerContract(): Promise<Contract> {
  const text = readFileSync(new URL("partner.openapi.yaml", import.meta.url), "utf8");
  const definition: Document = parse(text, { merge: true });
  const api = new OpenAPIBackend({ definition, strict: true });
  await api.init();
  return ({ method, path, headers, body, status, answer }) => {
    const asked = { method, path, headers: { ...headers }, body: bodyOf(headers["content-type"], body) };
    const operation = api.router.matchOperation(asked);
    if (operation === undefined) return [`${method} ${path} is not described`];
    const named = (part: string, found: { readonly errors?: readonly Wrong[] | null }): readonly string[] =>
      (found.errors ?? []).map(
        ({ instancePath, message }) => `${operation.operationId} ${part}: ${instancePath} ${message}`,
      );
    const described = Object.keys(operation.responses ?? {});
    if (!described.includes(String(status)))
      return [`${operation.operationId}: the answer ${status} is not described`];
    return [
      ...named("request", api.validator.validateRequest(asked, operation)),
      ...(answer === ""
        ? []
        : named("answer", api.validator.validateResponse(JSON.parse(answer), operation, status))),
    ];
  };
}

interface Wrong {
  readonly instancePath: string;
  readonly message?: string;
}

function bodyOf(type: string | undefined, body: string): unknown {
  if (body === "") return undefined;
  return type === "application/x-www-form-urlencoded"
    ? Object.fromEntries(new URLSearchParams(body))
    : JSON.parse(body);
}
