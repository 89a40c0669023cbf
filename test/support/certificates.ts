import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where one certificate and its key stand, as PEM files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** An authority of its own, made for one test and gone with it. */
export class Authority implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "setpointd-tls-"));
  readonly ca: string;

  constructor() {
    this.ca = this.#path("ca.pem");
    this.#openssl(
      "req",
      "-x509",
      ...newKey,
      "-keyout",
      this.#path("ca-key.pem"),
      "-out",
      this.ca,
      "-subj",
      "/CN=test authority",
    );
  }

  /** For `localhost` and 127.0.0.1, good for a client as well; a second one of a name takes the place of the first. */
  issue(name: string, days = 2): Certificate {
    const { cert, key, request, extensions } = {
      cert: this.#path(`${name}.pem`),
      key: this.#path(`${name}-key.pem`),
      request: this.#path(`${name}.csr`),
      extensions: this.#path(`${name}.ext`),
    };
    writeFileSync(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    this.#openssl("req", ...newKey, "-keyout", key, "-out", request, "-subj", `/CN=${name}`);
    const signedBy = ["-CA", this.ca, "-CAkey", this.#path("ca-key.pem"), "-CAcreateserial"];
    this.#openssl(
      "x509",
      "-req",
      "-in",
      request,
      ...signedBy,
      "-days",
      String(days),
      "-extfile",
      extensions,
      "-out",
      cert,
    );
    return { cert, key };
  }

  get caText(): string {
    return readFileSync(this.ca, "utf8");
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.directory, name);
  }

  #openssl(...words: string[]): void {
    execFileSync("openssl", words, { stdio: "pipe" });
  }
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
