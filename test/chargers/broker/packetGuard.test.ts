import * as fc from "fast-check";
import { expect, test } from "vitest";

import { packetGuard } from "../../../src/chargers/broker/embedded.ts";

/** A packet with its fixed header (MQTT 3.1.1, 2.2), and so many bytes behind it. */
function packet(type: number, bytes: number): Buffer {
  const length: number[] = [];
  let rest = bytes;
  do {
    length.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Buffer.concat([Buffer.from([type << 4, ...length]), Buffer.alloc(bytes)]);
}

const CONNECT = packet(1, 30);
const publish = (bytes: number): Buffer => packet(3, bytes);

test("ordinary packets pass, in any chunks", () => {
  const stream = Buffer.concat([CONNECT, publish(10), publish(200_000), publish(0), publish(130)]);
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (cuts) => {
      const guard = packetGuard(() => 0);
      const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
      for (const [index, end] of at.slice(1).entries())
        expect(guard(stream.subarray(at[index], end))).toBeNull();
    }),
  );
});

test("the first packet may be a CONNECT with its will, but not a megabyte", () => {
  expect(packetGuard(() => 0)(publish(5_000))).toBe("a packet of 5000 bytes, at most 4096 are taken");
});

test("a later packet is rejected by its header, before its bytes arrive", () => {
  const guard = packetGuard(() => 0);
  expect(guard(CONNECT)).toBeNull();
  expect(guard(publish(300_000).subarray(0, 6))).toBe("a packet of 300000 bytes, at most 262144 are taken");
});

test("too many packets in a second end the connection, the same number in two seconds does not", () => {
  let tick = 0;
  const guard = packetGuard(() => tick);
  const many = Buffer.concat(Array.from({ length: 999 }, () => publish(1)));
  expect(guard(Buffer.concat([CONNECT, many]))).toBeNull();
  tick = 1_000;
  expect(guard(many)).toBeNull();
  expect(guard(Buffer.concat([publish(1), publish(1)]))).toBe("more than 1000 packets in a second");
});

test("bytes that are not MQTT end the connection", () => {
  expect(packetGuard(() => 0)(Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff, 0x01]))).toContain("not MQTT");
});

test("any bytes get an answer", () => {
  fc.assert(fc.property(fc.uint8Array(), (bytes) => packetGuard(() => 0)(bytes) !== undefined));
});
