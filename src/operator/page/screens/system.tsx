import { Title } from "../parts.tsx";
import { t } from "../texts.ts";

export const System = () => (
  <>
    <Title>{t.system.title}</Title>
    <p class="quiet">{t.soon}</p>
  </>
);
