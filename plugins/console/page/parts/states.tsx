// States of a screen without data: loading, failed, stale, empty, plugin disabled.
import type { ComponentChildren } from 'preact'
import { clock } from '../data/clock.ts'
import type { Resource } from '../data/resource.ts'
import { duration } from '../data/text.ts'
import { CodeBlock } from './copy.tsx'

/** Age in milliseconds after which data is marked as stale. */
const STALE = 10_000

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="card blank">
    <strong>{title}</strong>
    {children}
  </div>
)

export const PluginOff = ({ name, shows }: { readonly name: string; readonly shows: string }) => (
  <Empty title={`The plugin ${name} is off`}>
    <p>Add it to the config to see {shows} here.</p>
    <CodeBlock text={`plugins: { ${/^\w+$/.test(name) ? name : `'${name}'`}: {} }`} what="the setting" />
  </Empty>
)

export const Stale = ({ at }: { readonly at: number | undefined }) => {
  const age = at === undefined ? 0 : clock.value - at
  return age > STALE ? (
    <p class="note warn" role="status">
      Last update {duration(age)} ago. The host may be stopped or unreachable.
    </p>
  ) : null
}

interface LoadedProps<T> {
  readonly from: Resource<T>
  readonly children: (data: T) => ComponentChildren
}

/** Shows the data of a resource, or its state. */
export function Loaded<T>({ from, children }: LoadedProps<T>) {
  const { data, error, at } = from
  if (data === undefined) {
    if (error === undefined) return <Empty title="Loading…" />
    return (
      <div class="note fault" role="alert">
        <span>{error}</span>
        <button type="button" onClick={from.reload}>
          Try again
        </button>
      </div>
    )
  }
  return (
    <div class="stack">
      <Stale at={at} />
      {children(data)}
    </div>
  )
}
