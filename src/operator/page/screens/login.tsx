import { useEffect, useRef, useState } from "preact/hooks";

import { post, Refused } from "../api.ts";
import { Title } from "../parts.tsx";
import { linkTo, query } from "../router.ts";
import { person, signedIn } from "../store.ts";
import { t } from "../texts.ts";

const words = t.login;

/** Signs in. With the code of the first link it adds the first user. */
export function Login() {
  const once = query.value.get("once");
  if (person.value?.via === "open")
    return (
      <div class="login">
        <p>{words.open}</p>
        <a class="button strong" href={linkTo("/")}>
          {words.toNow}
        </a>
      </div>
    );
  return (
    <div class="login">
      <Title>{once === null ? words.title : words.first}</Title>
      <Form once={once} />
    </div>
  );
}

/** Signs in again over the screen that is open. What was typed there stays. */
export function SessionEnded() {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog
      ref={element}
      class="dialog session-ended"
      aria-labelledby="session-ended"
      // Without a session there is nothing behind it to return to.
      onCancel={(event) => event.preventDefault()}
    >
      <h2 id="session-ended">{words.ended}</h2>
      <p>{words.kept}</p>
      <Form once={null} />
    </dialog>
  );
}

/** `once`: the code of the first link. */
function Form({ once }: { readonly once: string | null }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);

  const submit = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      await post("session", { name, password, ...(once === null ? {} : { once }) });
      await signedIn();
    } catch (error) {
      setTrouble(
        error instanceof Refused ? [error.message, error.detail].filter(Boolean).join(". ") : String(error),
      );
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      class="login-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label>
        <span>{words.name}</span>
        <input
          type="text"
          autoComplete="username"
          required
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
      <label>
        <span>{words.password}</span>
        <input
          type="password"
          autoComplete={once === null ? "current-password" : "new-password"}
          required
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
      </label>
      <p class="problem" role="alert">
        {trouble}
      </p>
      <button class="strong" disabled={isBusy}>
        {once === null ? words.submit : words.submitFirst}
      </button>
    </form>
  );
}
