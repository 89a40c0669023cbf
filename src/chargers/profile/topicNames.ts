/** What may stand in an MQTT topic. Configuration refuses other ids already; this is the second lock on the door (F67). */

const LEVEL = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** MQTT 5, 1.5.4: a UTF-8 string carries its length in two bytes. */
const LONGEST_TOPIC_BYTES = 65_535;

/** Wildcards and control characters make brokers hang up: one such publish would cost the connection. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const FORBIDDEN = /[+#\u0000-\u001f\u007f-\u009f]/;

/** The id as one topic level, or null: such an id can never be part of a topic. */
export const topicLevel = (id: string): string | null => (LEVEL.test(id) ? id : null);

/** Why this topic must not be handed to the library, which checks nothing itself; null: it may. */
export function topicFault(topic: string): string | null {
  if (topic === "") return "the topic is empty";
  if (topic.startsWith("$")) return "the topic starts with $";
  if (FORBIDDEN.test(topic)) return "the topic holds a wildcard or a control character";
  if (!topic.isWellFormed()) return "the topic is not well-formed Unicode";
  if (Buffer.byteLength(topic) > LONGEST_TOPIC_BYTES) return "the topic is longer than 65535 bytes";
  return null;
}
