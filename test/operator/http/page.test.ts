import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { request } from "undici";
import { expect, onTestFinished, test } from "vitest";

import { PAGE_PATHS, readPage } from "../../../src/operator/http/page.ts";
import { OperatorListener } from "../../../src/operator/http/server.ts";
import { someAccounts, someListener, someViews } from "../../support/aListener.ts";

const HTML =
  '<!doctype html><title>setpointd</title><div id="app"><noscript>no script</noscript></div><script src="/assets/page-1.js"></script>';
const SCRIPT = "console.log(1);".repeat(100);

/** A built page in a folder of the test's own. */
function someFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "setpointd-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "index.html"), HTML);
  writeFileSync(join(folder, "page-1.js"), SCRIPT);
  writeFileSync(join(folder, "secret.txt"), "not for the web");
  return folder;
}

async function served(over: Parameters<typeof someListener>[0]) {
  const listener = await OperatorListener.start(someListener(over), Promise.resolve(someViews));
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return async (path: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") => {
    const {
      statusCode,
      headers: answered,
      body,
    } = await request(`http://127.0.0.1:${listener.port}${path}`, { method, headers });
    return { status: statusCode, headers: answered, body: Buffer.from(await body.arrayBuffer()) };
  };
}

test("every address of the page gives the same HTML, fresh each time, under the strict policy", async () => {
  const get = await served({ page: readPage(someFolder()) });
  for (const path of [...PAGE_PATHS, "/login"]) {
    const { status, headers, body } = await get(path.replace(":id", "a%20b"));
    expect([path, status, body.toString()]).toEqual([path, 200, HTML]);
    expect(headers["cache-control"]).toBe("no-cache");
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(headers["content-security-policy"]).toContain("script-src 'self'");
    expect(headers["content-security-policy"]).not.toContain("unsafe");
  }
  expect((await get("/elsewhere")).status).toBe(404);
});

test("a wrong address shows a person the page, and a program a problem", async () => {
  const get = await served({ page: readPage(someFolder()) });
  const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  for (const path of ["/elsewhere", "/vehicles", "/events/a/b"]) {
    const { status, body } = await get(path, browser);
    expect([path, status, body.toString()]).toEqual([path, 404, HTML]);
    const head = await get(path, browser, "HEAD");
    expect([path, head.status, head.headers["content-type"]]).toEqual([
      path,
      404,
      "text/html; charset=utf-8",
    ]);
  }
  for (const [path, headers] of [
    ["/elsewhere", { accept: "*/*" }],
    ["/api/v1/elsewhere", browser],
    ["/assets/elsewhere", browser],
  ] as const) {
    const { status, headers: answered } = await get(path, headers);
    expect([path, status, answered["content-type"]]).toEqual([
      path,
      404,
      "application/problem+json; charset=utf-8",
    ]);
  }
});

test("assets are packed for browsers that accept that, kept for a year, and no other file is served", async () => {
  const get = await served({ page: readPage(someFolder()) });
  const packed = await get("/assets/page-1.js", { "accept-encoding": "br;q=1, gzip;q=0.8" });
  expect(packed.headers["content-encoding"]).toBe("gzip");
  expect(packed.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  expect(packed.headers["vary"]).toBe("accept-encoding");
  expect(gunzipSync(packed.body).toString()).toBe(SCRIPT);
  for (const encoding of ["identity", "gzip;q=0", "br, gzip; q=0.0"]) {
    const plain = await get("/assets/page-1.js", { "accept-encoding": encoding });
    expect([encoding, plain.headers["content-encoding"], plain.body.toString()]).toEqual([
      encoding,
      undefined,
      SCRIPT,
    ]);
  }
  for (const path of ["secret.txt", "index.html", "..%2Findex.html", "page-2.js"])
    expect([path, (await get(`/assets/${path}`)).status]).toEqual([path, 404]);
});

test("without a built page its addresses name the remedy, and the API works", async () => {
  const get = await served({ page: readPage("/nowhere") });
  expect((await get("/")).body.toString()).toContain("npm run page");
  expect((await get("/api/v1/status")).status).toBe(200);
});

test("with a login the page needs no session, its data does, and the form to sign in works without script", async () => {
  const { accounts } = someAccounts();
  const page = readPage(someFolder());
  const get = await served({ page, access: { kind: "login", accounts, isSecure: false } });
  expect((await get("/")).body.toString()).toBe(HTML);
  expect((await get("/api/v1/status")).status).toBe(401);
  const login = (await get("/login")).body.toString();
  expect(login).toContain('src="/assets/page-1.js"');
  expect(login).toContain('<form method="post" action="/login">');
  expect(login).not.toContain("noscript");
});
