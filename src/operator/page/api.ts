import { failedChange, problemDetail, sentence } from "./format.ts";
import { linkTo } from "./router.ts";
import { t } from "./texts.ts";

/** The daemon refused, or was not reached. */
export class Refused extends Error {
  /** HTTP status. 0: no answer of the daemon. */
  readonly status: number;
  readonly detail: string;

  constructor(status: number, title: string, detail = "") {
    super(title);
    this.status = status;
    this.detail = detail;
  }
}

/** Instead of a list that this gateway does not have. */
export const absent =
  <T>(instead: T) =>
  (error: unknown) => {
    if (error instanceof Refused && error.status === 404) return instead;
    throw error;
  };

/** Reason of a failed request, for people. */
export const problemText = (error: unknown): string =>
  error instanceof Refused
    ? [error.message, sentence(error.detail)].filter(Boolean).join(". ")
    : String(error);

/** `problemText` for a request that was to change something. */
export const changeProblem = (error: unknown): string =>
  failedChange(error instanceof Refused ? error.status : null, problemText(error));

let zone = "UTC";
/** Problems have the times of this zone from now on. */
export const showTimesIn = (site: string): void => void (zone = site);

interface ProblemBody {
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly path: string; readonly expected: string }[];
}

/** Ms until a request is given up. */
const PATIENCE = 15_000;

async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  let response: Response;
  try {
    response = await fetch(linkTo(`/api/v1/${path}`), {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Refused(0, "no answer from the gateway");
  }
  if (response.ok) return (response.status === 204 ? null : await response.json()) as T;
  throw await refusal(response);
}

/** Emits `refused` when an answer says that the session has ended, or that its role is too small. */
export const session = new EventTarget();

async function refusal(response: Response): Promise<Refused> {
  if (response.status === 401 || response.status === 403) session.dispatchEvent(new Event("refused"));
  const problem = (await response.json().catch(() => ({}))) as ProblemBody;
  // Every refusal of the daemon has a title. A proxy in front of it may answer for it.
  if (problem.title === undefined)
    return new Refused(response.status < 500 ? response.status : 0, t.notOurs(response.status));
  const detail = problemDetail(zone, Date.now(), problem.detail ?? "", problem.errors ?? []);
  return new Refused(response.status, problem.title, detail);
}

/** Saves an answer as a file. Returns the number of its lines. */
export async function download(path: string, name: string): Promise<number> {
  let response: Response;
  try {
    response = await fetch(linkTo(`/api/v1/${path}`));
  } catch {
    throw new Refused(0, "no answer from the gateway");
  }
  if (!response.ok) throw await refusal(response);
  const content = await response.blob();
  saveFile(content, name, response.headers.get("content-type") ?? "text/plain");
  return (await content.text()).trimEnd().split("\n").length;
}

/** Hands a file to the browser. */
export function saveFile(content: string | Blob, name: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export const get = <T>(path: string): Promise<T> => call("GET", path);
export const post = <T>(
  path: string,
  body: unknown,
  headers?: Readonly<Record<string, string>>,
): Promise<T> => call("POST", path, body, headers);
export const put = <T>(path: string, body: unknown): Promise<T> => call("PUT", path, body);
export const remove = <T>(path: string, body?: unknown): Promise<T> => call("DELETE", path, body);

/** Key that makes a repeated request harmless. `crypto.randomUUID` needs HTTPS. */
export const requestKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
