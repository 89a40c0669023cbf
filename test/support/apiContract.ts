import { type Document, OpenAPIBackend } from "openapi-backend";

interface Wrong {
  readonly instancePath: string;
  readonly message?: string;
}

/** One request and its answer. */
export interface ApiExchange {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly status: number;
  readonly answer: string;
  readonly type: string;
}

/** The document of the API, held against requests and answers by a validator that is not ours. */
export async function apiContract(definition: Document) {
  // Quick: its check of whole documents knows OpenAPI 3.0 only.
  const api = new OpenAPIBackend({ definition, quick: true });
  await api.init();
  return ({ method, path, headers, body, status, answer, type }: ApiExchange): readonly string[] => {
    const asked = { method, path, headers: { ...headers }, body };
    const operation = api.router.matchOperation(asked);
    if (operation === undefined) return [`${method} ${path} is not described`];
    const named = (part: string, found: { readonly errors?: readonly Wrong[] | null }): readonly string[] =>
      (found.errors ?? []).map(
        ({ instancePath, message }) => `${operation.operationId} ${part}: ${instancePath} ${message}`,
      );
    return [
      ...(status < 400 ? named("request", api.validator.validateRequest(asked, operation)) : []),
      ...(type.includes("json")
        ? named("answer", api.validator.validateResponse(JSON.parse(answer), operation, status))
        : []),
    ];
  };
}
