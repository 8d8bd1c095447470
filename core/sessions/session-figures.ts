// What the sessions of this node are measured by: how many there are and of which revision, how long they lived, and how many
// were ended because too many idled.
import type { Figures } from '../kernel/figures.ts'
import type { Session } from './session.ts'
import type { SessionIds } from './session-id.ts'

export interface SessionFigures {
  /** Counts those of a node: of what several nodes have, one does. */
  watch(node: string, sessions: ReadonlyMap<string, Session>): void
  opened(session: Session): void
  /** For every node, not only here. */
  ended(session: Session): void
  evicted(count: number): void
}

/** A session whose `initialize` was not answered has none. */
const revisionOf = ({ revision }: Session) => revision ?? 'none'

const LABELS = ['route', 'protocol_version', 'transport']

const labelsOf = (session: Session) => ({
  route: session.offer.route.path,
  protocol_version: revisionOf(session),
  transport: session.transport,
})

/** How many the node is home to, of each combination of labels. */
function countByLabels(node: string, sessions: ReadonlyMap<string, Session>) {
  const counts = new Map<string, [number, ReturnType<typeof labelsOf>]>()
  for (const session of sessions.values()) {
    if (session.home !== node) continue
    const labels = labelsOf(session)
    const key = Object.values(labels).join('\n')
    const known = counts.get(key)
    if (known) known[0]++
    else counts.set(key, [1, labels])
  }
  return counts.values()
}

export function createSessionFigures(figures: Figures, ids: SessionIds): SessionFigures {
  const opened = figures.counter({
    name: 'mcp_host_sessions_opened_total',
    help: 'Sessions that were opened at this node.',
    labels: ['route', 'transport'],
  })
  const evicted = figures.counter({
    name: 'mcp_host_sessions_evicted_total',
    help: 'Idle sessions that were ended because there were more than sessions.maxIdle, or than there is room for.',
  })
  const lived = figures.histogram({
    name: 'mcp_server_session_duration_seconds',
    help: 'From the opening of a session to its end.',
    labels: ['mcp_protocol_version'],
  })
  return {
    watch: (node, sessions) =>
      figures.gauge({ name: 'mcp_host_sessions', help: 'Sessions that this node is home to.', labels: LABELS }, () =>
        countByLabels(node, sessions),
      ),
    opened: ({ offer, transport }) => opened(1, { route: offer.route.path, transport }),
    ended(session) {
      const facts = ids.read(session.id)
      const seconds = facts && Math.max(0, Date.now() - facts.createdAt) / 1_000
      if (seconds !== undefined) lived(seconds, { mcp_protocol_version: revisionOf(session) })
    },
    evicted: count => evicted(count),
  }
}
