/**
 * A body as it comes, piece by piece. As long as it comes as the expected one did, nothing of it is kept: megabytes that
 * live until the end of an answer, every 30 s, cost whole collections of garbage.
 */
export class Body {
  readonly #expected: Buffer;
  /** Bytes that came as they were expected. */
  #same = 0;
  readonly #rest: Buffer[] = [];

  constructor(expected: Buffer | null) {
    this.#expected = expected ?? Buffer.alloc(0);
  }

  add(piece: Buffer): void {
    const end = this.#same + piece.length;
    const isAsExpected =
      this.#rest.length === 0 &&
      end <= this.#expected.length &&
      piece.compare(this.#expected, this.#same, end) === 0;
    if (isAsExpected) this.#same = end;
    else this.#rest.push(piece);
  }

  /** All of it, in one piece: the expected buffer itself where it came byte for byte. */
  whole(): Buffer {
    if (this.#rest.length === 0 && this.#same === this.#expected.length) return this.#expected;
    return Buffer.concat([this.#expected.subarray(0, this.#same), ...this.#rest]);
  }
}
