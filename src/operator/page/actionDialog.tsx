import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { changeProblem } from "./api.ts";
import { Dialog, ReasonField } from "./parts.tsx";
import { t } from "./texts.ts";

/** The consequences of an action, before it is done. */
export const Consequences = ({ lines }: { readonly lines: readonly string[] }) => (
  <div class="consequence" aria-live="polite">
    <h3>{t.hold.will}</h3>
    <ul>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  </div>
);

/** The last row of a form. It names what is missing, because on a phone the reasons may be out of sight. */
export const Buttons = ({
  submit,
  reason,
  isReady,
  onClose,
}: {
  readonly submit: string;
  readonly reason: string;
  readonly isReady: boolean;
  readonly onClose: () => void;
}) => (
  <div class="buttons">
    {reason.trim() === "" && <p class="hint">{t.hold.reasonFirst}</p>}
    <button type="button" class="plain" onClick={onClose}>
      {t.hold.cancel}
    </button>
    <button class="strong" disabled={!isReady || reason.trim() === ""}>
      {submit}
    </button>
  </div>
);

/**
 * A dialog that acts. It lists what will happen and to whom, and takes a reason. `act` returns what the dialog shows
 * afterwards. Null: it closes.
 */
export function ActionDialog({
  title,
  will,
  presets,
  label = t.hold.reason,
  first = "",
  submit,
  isReady = true,
  act,
  onClose,
  children,
}: {
  readonly title: string;
  readonly will: readonly string[];
  readonly presets: readonly string[];
  readonly label?: string;
  /** The reason that is chosen when the dialog opens. */
  readonly first?: string;
  readonly submit: string;
  /** False: a choice is missing. */
  readonly isReady?: boolean;
  readonly act: (reason: string) => Promise<ComponentChildren>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}) {
  const words = t.hold;
  const [reason, setReason] = useState(first);
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<ComponentChildren>(null);
  const run = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      const shown = await act(reason.trim());
      if (shown === null) onClose();
      else setResult(shown);
    } catch (error) {
      setTrouble(changeProblem(error));
    } finally {
      setBusy(false);
    }
  };
  if (result !== null)
    return (
      <Dialog title={title} onClose={onClose}>
        {result}
        <div class="buttons">
          <button type="button" class="strong" onClick={onClose}>
            {words.close}
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <Consequences lines={will} />
        {children}
        <ReasonField label={label} presets={presets} value={reason} onChange={setReason} />
        <p class="problem" role="alert">
          {trouble}
        </p>
        <Buttons submit={submit} reason={reason} isReady={isReady && !isBusy} onClose={onClose} />
      </form>
    </Dialog>
  );
}
