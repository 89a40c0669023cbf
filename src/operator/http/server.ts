import helmet from "@fastify/helmet";
import Fastify, { type FastifyError, type FastifyInstance } from "fastify";
import type { IncomingMessage, RequestListener, Server } from "node:http";
import { isIP } from "node:net";

import {
  Binding,
  limitConnections,
  createHttpServer,
  createHttpsServer,
  renewCertificate,
} from "../../platform/listener.ts";
import { type AccessOptions, checkOrigin, FirstLink, registerAccess } from "./access.ts";
import { accountRoutes } from "./accountRoutes.ts";
import {
  actionRoutes,
  alarmRoutes,
  configurationRoutes,
  departureRoutes,
  holdRoutes,
} from "./actionRoutes.ts";
import { documentRoute } from "./openapi.ts";
import type { SiteOfRequest } from "./fleet.ts";
import { chartRoutes, type PageFiles, pageRoutes, sendPage, supportRoutes } from "./page.ts";
import { failure, Refusal, sendProblem } from "./problem.ts";
import { addRoute, JSON_TYPE, methodsOf, type Route } from "./route.ts";
import { sessionRoutes } from "./session.ts";
import { type OperatorViews, viewRoutes } from "./views.ts";

/**
 * Checks the Host of a request. A foreign page can point its own name at this machine (DNS rebinding) to read our answers.
 * The Host still carries that name. An IP address cannot be pointed elsewhere.
 */
export function hostCheck(names: readonly string[]): (host: string | undefined) => boolean {
  const ours = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  return (host) => {
    // HTTP/1.0 has no Host. No browser sends it.
    if (host === undefined) return true;
    const [, six, other = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
    if (six !== undefined) return isIP(six) === 6;
    const name = other.toLowerCase().replace(/\.$/, "");
    return isIP(name) === 4 || ours.has(name) || name.endsWith(".localhost");
  };
}

export type ListenerKeyPair = { readonly cert: string; readonly key: string };

export interface ListenerOptions extends AccessOptions {
  readonly host: string;
  readonly port: number;
  readonly hosts: readonly string[];
  /** Null: plain HTTP. */
  readonly tls: ListenerKeyPair | null;
  /** Addresses whose X-Forwarded-For and X-Forwarded-Proto are trusted. True: any peer, for one hop. */
  readonly trustProxy: boolean | readonly string[];
  /** Null: the page was not built. */
  readonly page: PageFiles | null;
  /** For a fleet: the site that a request names, and routes of the fleet. */
  readonly fleet?: { readonly request: SiteOfRequest; readonly routes: readonly Route[] };
  /** See `WebhookOptions`. */
  readonly isAddressNeeded?: boolean;
  /** Reason why the address cannot be bound yet. Null: it is bound now. */
  readonly onBinding: (fault: string | null) => void;
  /** A request failed because of a bug. */
  readonly onError: (error: Error) => void;
  /** Reason of an error that may pass: a database that is away. The answer is 503. Null: the program is wrong. */
  readonly passing: (error: Error) => string | null;
}

/** Browsers, Prometheus and probes; each costs a file descriptor. A stream, and a connection of a signed-in person, is proven. */
const CONNECTIONS = { unproven: 64, proven: 160, onDropped: () => {} };
/** Ms. A slow sender is disconnected. */
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 30_000 };
const MAX_BODY = 256 * 1024;
/** Departures of 20,000 vehicles. */
const MAX_CSV = 2 * 1024 * 1024;

/** All routes of the listener. */
export const routesOf = (
  views: Promise<OperatorViews>,
  options: AccessOptions & Pick<ListenerOptions, "page" | "fleet">,
  firstLink: FirstLink | null,
): readonly Route[] => {
  const routes: readonly Route[] = [
    ...viewRoutes(views),
    ...chartRoutes(views),
    ...supportRoutes(views),
    ...configurationRoutes(views),
    ...holdRoutes(views),
    ...actionRoutes(views),
    ...alarmRoutes(views),
    ...departureRoutes(views),
    ...sessionRoutes(options, firstLink),
    ...accountRoutes(options),
    documentRoute(() => routes),
    ...pageRoutes(options.page, options.access.kind === "login"),
    ...(options.fleet?.routes ?? []),
  ];
  return routes;
};

/** Health, metrics and the API for the people on site. */
export class OperatorListener implements AsyncDisposable {
  readonly port: number;
  /** Path of the link for the first user. Null: there are users, or no login. */
  readonly firstLink: string | null;
  readonly #app: FastifyInstance;
  readonly #binding: Binding;
  readonly #access: AccessOptions["access"];

  private constructor(
    app: FastifyInstance,
    binding: Binding,
    access: AccessOptions["access"],
    port: number,
    firstLink: string | null,
  ) {
    this.#app = app;
    this.#binding = binding;
    this.#access = access;
    this.port = port;
    this.firstLink = firstLink;
  }

  /**
   * Binds the address. Requests wait for the views. Rejects if the address cannot be bound. One that this machine lacks is
   * bound once it is there.
   */
  static async start(options: ListenerOptions, views: Promise<OperatorViews>): Promise<OperatorListener> {
    const { host, port, access, monotonic } = options;
    const firstLink =
      access.kind === "login" && access.accounts.isEmpty ? new FirstLink(access.accounts, monotonic) : null;
    const routes = routesOf(views, options, firstLink);
    const app = await listenerApp(options, routes);
    const binding = await Binding.open(
      () => app.listen({ host, port }),
      options.onBinding,
      options.isAddressNeeded,
    );
    const bound = app.server.address();
    return new OperatorListener(
      app,
      binding,
      access,
      typeof bound === "object" && bound !== null ? bound.port : port,
      firstLink === null ? null : `/login?once=${firstLink.code}`,
    );
  }

  /** Reason why users and tokens cannot be read, so that no user can sign in. Null: they can, or there is no login. */
  get accessFault(): string | null {
    return this.#access.kind === "open" ? null : this.#access.accounts.fault;
  }

  /** See `renewCertificate`. */
  renew(tls: ListenerKeyPair): string | null {
    return renewCertificate(this.#app.server, contextOf(tls));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#binding[Symbol.dispose]();
    await this.#app.close();
  }
}

const contextOf = ({ cert, key }: ListenerKeyPair) => ({ cert, key, minVersion: "TLSv1.2" as const });

const serverOf = (tls: ListenerKeyPair | null, handler: RequestListener): Server =>
  tls === null
    ? createHttpServer(TIMEOUTS, handler)
    : createHttpsServer({ ...TIMEOUTS, ...contextOf(tls) }, handler);

async function listenerApp(options: ListenerOptions, routes: readonly Route[]): Promise<FastifyInstance> {
  const { host, hosts, tls, trustProxy } = options;
  const sites = new WeakMap<IncomingMessage, string>();
  const request = options.fleet?.request;
  const app = Fastify({
    forceCloseConnections: true,
    ...(request === undefined
      ? {}
      : {
          rewriteUrl: (raw: IncomingMessage) => {
            const { site, url } = request.rewrite(raw.url ?? "");
            if (site !== null) sites.set(raw, site);
            return url;
          },
        }),
    bodyLimit: MAX_BODY,
    // The key of an alarm spells each character of an id of 256 with up to ten.
    routerOptions: { maxParamLength: 4_096 },
    trustProxy:
      typeof trustProxy === "boolean"
        ? (_address: string, hop: number) => trustProxy && hop === 0
        : [...trustProxy],
    // A path that cannot be decoded, or that is too long.
    frameworkErrors: ({ statusCode = 400, message }, _request, reply) =>
      void sendProblem(reply.headers(UNROUTED), new Refusal(statusCode, message)),
    serverFactory: (handler) => serverOf(tls, handler),
  });
  app.setErrorHandler((error: FastifyError, { headers }, reply) => {
    if (error instanceof Refusal) return sendProblem(reply, error);
    const status = error.statusCode ?? 500;
    if (status === 415) {
      const found = headers["content-type"] ?? "a body without content-type";
      return sendProblem(
        reply,
        new Refusal(415, `${found}; expected ${JSON_TYPE}, or text/csv for departures`),
      );
    }
    if (status < 500) return sendProblem(reply, new Refusal(status, error.message));
    const passing = options.passing(error);
    if (passing === null) options.onError(error);
    return sendProblem(reply, failure(passing));
  });
  if (request !== undefined)
    app.addHook("onRequest", ({ raw }, _reply, done) => {
      const site = sites.get(raw);
      if (site === undefined) done();
      else request.run(site, done);
    });
  const prove = limitConnections(app.server, CONNECTIONS);
  const isOurs = hostCheck([host, ...hosts]);
  // The order counts: Host before anything else, the person before the route.
  app.addHook("onRequest", async (request) => {
    // `request.host` is X-Forwarded-Host behind a proxy, and empty where there is neither.
    if (isOurs(request.headers.host) && isOurs(request.host || undefined)) return;
    throw new Refusal(421, "the Host of this request is not a name of this gateway: operator.hosts");
  });
  app.addHook("onRequest", async (request) => checkOrigin(request));
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    hsts: tls === null ? false : { maxAge: 180 * 86_400, includeSubDomains: false },
    referrerPolicy: { policy: "no-referrer" },
  });
  const personOf = await registerAccess(app, options);
  addBodyParsers(app);
  for (const one of routes) addRoute(app, one, { personOf, access: options.access, prove });
  const methodsAt = methodsOf(routes);
  app.setNotFoundHandler(async ({ method, url, headers }, reply) => {
    // A person with a wrong link sees the screens, which say that there is no such one.
    const isPerson = headers.accept?.includes("text/html") === true && !/^\/(api|assets)\//.test(url);
    if (isPerson && (method === "GET" || method === "HEAD"))
      return sendPage(options.page, reply.code(404), null);
    const allowed = methodsAt(url.split("?")[0] ?? "").join(", ");
    const refusal =
      allowed === ""
        ? new Refusal(404, "not found")
        : new Refusal(405, `${allowed} here, not ${method}`, { headers: { allow: allowed } });
    return sendProblem(reply, refusal);
  });
  return app;
}

/** The library's own text names no place. */
const NOT_JSON = new Refusal(400, "body: no JSON that can be read; expected a JSON object", {
  errors: [{ path: "", found: "no JSON that can be read", expected: "a JSON object" }],
});

/** Bodies are JSON or, for departures, CSV. Plain text is answered 415. */
function addBodyParsers(app: FastifyInstance): void {
  app.removeContentTypeParser(["text/plain", "application/json"]);
  const json = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    // Programs name the type in each request. One without a body is as one without the type.
    if (body === "") done(null, undefined);
    else void json(request, String(body), (error, value) => done(error === null ? null : NOT_JSON, value));
  });
  app.addContentTypeParser(
    "application/x-www-form-urlencoded",
    { parseAs: "string" },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  app.addContentTypeParser("text/csv", { parseAs: "string", bodyLimit: MAX_CSV }, (_request, body, done) =>
    done(null, String(body)),
  );
}

/** Headers of an answer before any hook, in which the others are set. */
const UNROUTED = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Scripts, styles and images of this listener only; no script in a page itself. */
const CONTENT_SECURITY_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'", "data:"],
  fontSrc: ["'self'"],
  connectSrc: ["'self'"],
  manifestSrc: ["'self'"],
  workerSrc: ["'self'"],
  formAction: ["'self'"],
  baseUri: ["'none'"],
  frameAncestors: ["'none'"],
};
