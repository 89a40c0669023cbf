import { Title } from "../parts.tsx";
import { t } from "../texts.ts";

export const Timeline = () => (
  <>
    <Title>{t.timeline.title}</Title>
    <p class="quiet">{t.soon}</p>
  </>
);
