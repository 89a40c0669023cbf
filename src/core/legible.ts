/** Of what a partner writes, so much is repeated to people. */
const MOST = 128;
const CONTROLS = /\p{Cc}|\p{Zl}|\p{Zp}/gu;

/** What a partner writes, in a sentence: no line of its own, no escape that a terminal would obey, no page of it. */
export function legible(text: string): string {
  const line = text.slice(0, MOST).toWellFormed().replaceAll(CONTROLS, "\uFFFD");
  return text.length > MOST ? `${line}...` : line;
}
