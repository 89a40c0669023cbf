/** Enough for a CONNECT with its last will. An unauthenticated client must not fill the broker's buffers. */
const FIRST_PACKET_BYTES = 4 * 1024;
const PACKET_BYTES = 256 * 1024;
/** A charger that publishes 100 topics a second stays far below this. */
const PACKETS_PER_SECOND = 1_000;
/** Most bytes of the remaining length (MQTT 3.1.1, 2.2.3). */
const LENGTH_BYTES = 4;

/**
 * Checks the packet framing of one MQTT connection, chunk by chunk. Null: fine. Otherwise the reason to
 * close it: a packet that is too large, too many packets, or no MQTT. `now`: monotonic ms.
 */
export function packetGuard(now: () => number): (chunk: Uint8Array) => string | null {
  let isFirst = true;
  /** Payload bytes of the current packet that have not arrived yet. */
  let pending = 0;
  /** Bytes of the remaining length read so far. Null: the next byte is a packet type. */
  let lengthBytes: number | null = null;
  let length = 0;
  let second = Math.floor(now() / 1000);
  let packets = 0;

  const begins = (): string | null => {
    const most = isFirst ? FIRST_PACKET_BYTES : PACKET_BYTES;
    isFirst = false;
    lengthBytes = null;
    pending = length;
    const current = Math.floor(now() / 1000);
    packets = current === second ? packets + 1 : 1;
    second = current;
    if (length > most) return `a packet of ${length} bytes, at most ${most} are taken`;
    return packets > PACKETS_PER_SECOND ? `more than ${PACKETS_PER_SECOND} packets in a second` : null;
  };

  return (chunk) => {
    for (let at = 0; at < chunk.length;) {
      if (pending > 0) {
        const skipped = Math.min(pending, chunk.length - at);
        pending -= skipped;
        at += skipped;
        continue;
      }
      const byte = chunk[at] ?? 0;
      at += 1;
      if (lengthBytes === null) {
        [lengthBytes, length] = [0, 0];
        continue;
      }
      length += (byte & 0x7f) * 128 ** lengthBytes;
      lengthBytes += 1;
      if (byte < 0x80) {
        const fault = begins();
        if (fault !== null) return fault;
      } else if (lengthBytes === LENGTH_BYTES) return "not MQTT: a remaining length of more than four bytes";
    }
    return null;
  };
}
