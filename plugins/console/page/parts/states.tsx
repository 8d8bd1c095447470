// States of a screen without data: loading, failed, stale, empty, plugin disabled.
import type { ComponentChildren } from 'preact'
import type { Envelope, Reply, Unavailable } from '../../api.ts'
import { clock } from '../data/clock.ts'
import type { Resource } from '../data/resource.ts'
import { duration } from '../data/text.ts'
import { Badge } from './badge.tsx'
import { CodeBlock } from './copy.tsx'
import { Text } from './text.tsx'

/** Age in milliseconds after which data is marked as stale. */
const STALE = 10_000

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="card blank">
    <strong>{title}</strong>
    {children}
  </div>
)

/** A plugin is off, or a store cannot list. */
const Off = ({ reason, fix }: Unavailable) => (
  <Empty title={reason}>
    {fix !== undefined && (
      <>
        <p>Add to the config:</p>
        <CodeBlock text={fix} what="the setting" />
      </>
    )}
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

interface LoadedProps<T extends object> {
  readonly from: Resource<Reply<T>>
  readonly children: (data: T & Envelope) => ComponentChildren
}

/** Shows the data of a resource, or its state. */
export function Loaded<T extends object>({ from, children }: LoadedProps<T>) {
  const { data, error, at, reload } = from
  if (data === undefined) {
    if (error === undefined) return <Empty title="Loading…" />
    return (
      <div class="note fault" role="alert">
        <span>{error}</span>
        <button type="button" onClick={reload}>
          Try again
        </button>
      </div>
    )
  }
  return (
    <div class="stack">
      {error !== undefined && <Stale at={at} />}
      {data.available ? children(data) : <Off {...data} />}
    </div>
  )
}

const SCOPES: Readonly<Record<Envelope['scope'], string>> = {
  process: 'This process only',
  machine: 'All processes of this machine',
  cluster: 'All nodes',
}

export const Scope = ({ scope, node, nodeStates = [] }: Envelope) => {
  const silent = nodeStates.flatMap(({ name, state }) => (state === 'silent' ? name : []))
  const failed = nodeStates.flatMap(({ name, state }) => (state === 'failed' ? name : []))
  const shortened = nodeStates.flatMap(({ name, state }) => (state === 'shortened' ? name : []))
  return (
    <>
      <Badge>
        <Text value={scope === 'process' ? `${SCOPES.process}, node ${node}` : SCOPES[scope]} most={80} />
      </Badge>
      {silent.length > 0 && (
        <Badge tone="warn">
          <Text value={`No response: ${silent.join(', ')}`} most={120} />
        </Badge>
      )}
      {failed.length > 0 && (
        <Badge tone="warn">
          <Text value={`Cannot read data: ${failed.join(', ')}`} most={120} />
        </Badge>
      )}
      {shortened.length > 0 && (
        <Badge tone="warn">
          <Text value={`Shortened: ${shortened.join(', ')}`} most={120} />
        </Badge>
      )}
    </>
  )
}
