import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { problemBody } from "./problem.ts";
import { route, type Route } from "./route.ts";

const COOKIE_AUTH = { session: [] };
const TOKEN_AUTH = { token: [] };

/** Prefix of the named schemas of the document. */
const COMPONENTS = "#/components/schemas/";

/** JSON Schema of a schema, and of the named schemas that it refers to. `io`: what a client sends, or what it gets. */
function schemaOf(
  schema: z.ZodType,
  io: "input" | "output",
): { readonly schema: Record<string, Json>; readonly parts: Readonly<Record<string, Json>> } {
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  const text = JSON.stringify(made).replaceAll('"#/$defs/', `"${COMPONENTS}`);
  const { $defs: parts = {}, ...rest } = JSON.parse(text) as Record<string, Json>;
  return { schema: rest, parts: parts as Readonly<Record<string, Json>> };
}

/** `/api/v1/holds/:id` as OpenAPI writes it. */
const pathOf = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}");

/** `get /api/v1/holds/:id` becomes `getHoldsId`. */
const operationId = ({ method, path }: Route): string =>
  [method.toLowerCase(), ...path.replace("/api/v1", "").split(/[^A-Za-z0-9]+/)]
    .filter((part) => part !== "")
    .map((part, index) => (index === 0 ? part : `${part[0]?.toUpperCase()}${part.slice(1)}`))
    .join("");

function queryParameters(query: z.ZodType): readonly Json[] {
  const { properties = {}, required = [] } = schemaOf(query, "input").schema;
  if (typeof properties !== "object" || properties === null) return [];
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as Record<string, Json>;
    return {
      name,
      in: "query",
      required: Array.isArray(required) && required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    };
  });
}

const pathParameters = (path: string): readonly Json[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));

const problem = (description: string): Json => ({
  description,
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
});

function operation(row: Route, components: Record<string, Json>): Json {
  const { role, summary, query, body, bodyType, answer, answerType, textType, status = 200 } = row;
  const shape = answer === undefined ? null : schemaOf(answer, "output");
  Object.assign(components, shape?.parts);
  const success = {
    description: "Done.",
    ...(answer === undefined && answerType === undefined
      ? {}
      : {
          content: {
            [answerType ?? "application/json"]: {
              schema: shape?.schema ?? { type: "string" },
            },
            ...(textType === undefined ? {} : { [textType]: { schema: { type: "string" } } }),
          },
        }),
  };
  return {
    operationId: operationId(row),
    summary,
    ...(role === null ? { security: [] } : { "x-role": role, security: [COOKIE_AUTH, TOKEN_AUTH] }),
    parameters: [...pathParameters(row.path), ...queryParameters(query)],
    ...(body === null
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { [bodyType ?? "application/json"]: { schema: schemaOf(body, "input").schema } },
          },
        }),
    responses: {
      [status]: success,
      "400": problem("The request has mistakes, each with its place."),
      ...(role === null
        ? {}
        : {
            "401": problem("Not signed in."),
            "403": problem("The role is too small, or a foreign Origin."),
          }),
      default: problem("Any other error."),
    },
  };
}

/** The route table as OpenAPI 3.1. Pages for browsers are left out. */
export function openApi(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  const components: Record<string, Json> = { Problem: schemaOf(problemBody, "output").schema };
  for (const row of routes) {
    if (row.isPage === true) continue;
    const path = (paths[pathOf(row.path)] ??= {});
    path[row.method.toLowerCase()] = operation(row, components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "setpointd operator API",
      version: "1",
      description:
        "Times are ISO 8601 in UTC, currents in A, powers in W. x-role is the least role that may call an operation: viewer, operator, integrator. With operator.access: open no login is needed.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        session: { type: "apiKey", in: "cookie", name: "setpointd_session" },
        token: { type: "http", scheme: "bearer" },
      },
    },
  };
}

/** Serves the document of all routes, itself included. */
export const documentRoute = (routes: () => readonly Route[]): Route =>
  route({
    method: "GET",
    path: "/api/v1/openapi.json",
    role: "viewer",
    summary: "This document.",
    answer: z.looseObject({}),
    handle: () => openApi(routes()),
  });
