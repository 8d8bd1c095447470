// Startup checks for several processes or nodes that serve one config: sessions, changes and keys must be shared.

import { type Report, StartError } from '../http/errors.ts'
import type { SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import type { CompiledRoute } from '../mcp/routes/routes.ts'
import { isHandshakeRevision } from '../mcp/wire/revisions.ts'
import type { LocalSessions, SessionStore } from './session-store.ts'

type SharedSlot = (typeof SESSION_SLOTS)[number]

interface SharedParts {
  readonly processes: number
  readonly routes: readonly CompiledRoute[]
  readonly isFilled: (slot: SharedSlot, route: Route) => boolean
  readonly hasNeighbours: boolean
  readonly sharedOn: (route: Route) => (SessionStore | LocalSessions)['shared']
  /** True for temporary keys of this process. */
  readonly ownKeys: boolean
  readonly suggest: SuggestPlugin
  readonly report: Report
}

const SESSION_SLOTS = ['sessionStore', 'eventStore', 'changeBus', 'peers'] as const

export const keepsSessions = ({ stateless, revisions }: CompiledRoute) =>
  !stateless && revisions.some(isHandshakeRevision)

/** True if no other process can serve the sessions during shutdown. */
export const isOnlyLocal = ({ shared }: SessionStore | LocalSessions, processes: number) =>
  !shared || (shared === 'host' && processes === 1)

const names = (routes: readonly CompiledRoute[]) => routes.map(({ path }) => `routes['${path}']`).join(', ')

function sessionProblem({ routes, isFilled, hasNeighbours, suggest }: SharedParts): string[] {
  const needed = SESSION_SLOTS.filter(slot => !hasNeighbours || !['changeBus', 'peers'].includes(slot))
  const unfilled = (route: CompiledRoute) => needed.filter(slot => !isFilled(slot, route))
  const stateful = routes.filter(route => keepsSessions(route) && unfilled(route).length > 0)
  const missing = SESSION_SLOTS.filter(slot => stateful.some(route => unfilled(route).includes(slot)))
  if (stateful.length === 0) return []
  return [
    `sessions of ${names(stateful)} exist in one process only, and other processes refuse them: set ` +
      `\`stateless: true\` on ${stateful.length === 1 ? 'that route' : 'those routes'}, or enable ` +
      `${suggest(...needed)} (nothing provides ${missing.join(', ')})`,
  ]
}

function listenProblem({ routes, isFilled, hasNeighbours, suggest }: SharedParts): string[] {
  if (hasNeighbours) return []
  const listening = routes.filter(route => route.stateless && route.listen && !isFilled('changeBus', route))
  if (listening.length === 0) return []
  return [
    `subscriptions/listen on ${names(listening)} reports changes of one process only: remove \`listen: true\`, or ` +
      `enable ${suggest('changeBus')}`,
  ]
}

const MAKE_SECRET =
  'make a secret with `openssl rand -base64 32`, and set it on every machine as MCP_HOST_SECRETS, in `secrets`, ' +
  "or in a secrets file: `secrets: { file: './state/secrets' }`"

export const NO_SECRETS =
  'Using temporary keys for session ids and requestState, which are invalid on other nodes and after a restart. ' +
  "Set MCP_HOST_SECRETS or `secrets`, such as `secrets: { file: './state/secrets' }`."

function checkShared({ routes, isFilled, sharedOn, ownKeys, suggest, report }: SharedParts): void {
  for (const route of routes.filter(keepsSessions)) {
    const shared = sharedOn(route)
    if (shared === false) continue
    const refuse = (why: string) =>
      report(
        new StartError('MH1402', `its sessions are shared between nodes, but ${why}`, { at: ['routes', route.path] }),
      )
    if (shared === true && !isFilled('peers', route)) {
      const fix = `provide \`peers\` on this route, or enable ${suggest('peers')}`
      refuse(`no plugin provides \`peers\`, which sends messages between nodes; ${fix}`)
    }
    if (ownKeys) refuse(`the keys that sign session ids are temporary keys of this process; ${MAKE_SECRET}`)
  }
}

export function checkSharing(parts: SharedParts): void {
  checkShared(parts)
  if (parts.processes <= 1) return
  const problems = [...sessionProblem(parts), ...listenProblem(parts)]
  if (parts.ownKeys) problems.push(`each process has its own keys for session ids and requestState: ${MAKE_SECRET}`)
  if (problems.length === 0) return
  const what = [
    `this config cannot be served by ${parts.processes} processes, which would not share their state`,
    ...problems,
  ]
  parts.report(new StartError('MH1403', what.join('\n- '), { exitCode: 2 }))
}
