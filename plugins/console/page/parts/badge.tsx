// Short coloured states. The text carries the meaning; the colour repeats it.
import type { ComponentChildren } from 'preact'

export type Tone = 'good' | 'warn' | 'fault' | 'info' | 'plain'

export const Badge = ({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

export const Dot = ({ tone }: { readonly tone: Tone }) => <span class={`dot ${tone}`} aria-hidden="true" />
