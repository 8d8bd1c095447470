// Startup checks for several processes or nodes that serve one config: sessions, changes and keys must be shared.

import { type Report, StartError } from '../http/errors.ts'
import type { SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import { isHandshakeRevision } from '../mcp/revisions.ts'
import type { CompiledRoute } from '../mcp/routes.ts'
import type { SessionStore } from './session-store.ts'

type SharedSlot = (typeof SESSION_SLOTS)[number]

interface SharedParts {
  readonly processes: number
  readonly routes: readonly CompiledRoute[]
  readonly isFilled: (slot: SharedSlot, route: Route) => boolean
  readonly isCarried: boolean
  readonly sharedOn: (route: Route) => SessionStore['shared']
  /** True for temporary keys of this process. */
  readonly ownKeys: boolean
  readonly suggest: SuggestPlugin
  readonly report: Report
}

const SESSION_SLOTS = ['sessionStore', 'eventStore', 'changeBus', 'peers'] as const

export const keepsSessions = ({ stateless, revisions }: CompiledRoute) =>
  !stateless && revisions.some(isHandshakeRevision)

/** True if no other process can serve the sessions during shutdown. */
export const isServedHereAlone = ({ shared }: SessionStore, processes: number) =>
  !shared || (shared === 'host' && processes === 1)

const names = (routes: readonly CompiledRoute[]) => routes.map(({ path }) => `routes['${path}']`).join(', ')

const CARRIED: readonly SharedSlot[] = ['changeBus', 'peers']

function sessionProblem({ routes, isFilled, isCarried, suggest }: SharedParts): string[] {
  const needed = SESSION_SLOTS.filter(slot => !isCarried || !CARRIED.includes(slot))
  const alone = (route: CompiledRoute) => needed.filter(slot => !isFilled(slot, route))
  const stateful = routes.filter(route => keepsSessions(route) && alone(route).length > 0)
  const missing = SESSION_SLOTS.filter(slot => stateful.some(route => alone(route).includes(slot)))
  if (stateful.length === 0) return []
  return [
    `the sessions of ${names(stateful)}, whose clients would be told "no such session" by every other process: set ` +
      `\`stateless: true\` on ${stateful.length === 1 ? 'that route' : 'those routes'}, or switch on ` +
      `${suggest(...needed)} (nothing provides ${missing.join(', ')})`,
  ]
}

function listenProblem({ routes, isFilled, isCarried, suggest }: SharedParts): string[] {
  if (isCarried) return []
  const listening = routes.filter(route => route.stateless && route.listen && !isFilled('changeBus', route))
  if (listening.length === 0) return []
  return [
    `the changes that subscriptions/listen on ${names(listening)} tells of: remove \`listen: true\`, or switch on ` +
      suggest('changeBus'),
  ]
}

const MAKE_SECRET =
  'make a secret with `openssl rand -base64 32` and put it into the environment as MCP_HOST_SECRETS, or into the ' +
  "config's `secrets`, or into a file that it names, the same on every machine: `secrets: { file: './state/secrets' }`"

export const NO_SECRETS =
  'no `secrets` in the config and no MCP_HOST_SECRETS: keys were made for this process alone, so the session ids that it ' +
  'signs and the requestState that it seals hold on no other node and not after a restart; ' +
  "`secrets: { file: './state/secrets' }` keeps them on this machine"

function checkShared({ routes, isFilled, sharedOn, ownKeys, suggest, report }: SharedParts): void {
  for (const route of routes.filter(keepsSessions)) {
    const shared = sharedOn(route)
    if (shared === false) continue
    const refuse = (why: string) =>
      report(
        new StartError('MH1402', `its sessions are kept for every node, but ${why}`, { at: ['routes', route.path] }),
      )
    if (shared === true && !isFilled('peers', route)) {
      const fix = `fill the slot \`peers\` there as well, or switch on ${suggest('peers')}`
      refuse(`nothing provides peers, which carry messages between the nodes; ${fix}`)
    }
    if (ownKeys) refuse(`the keys that sign their ids were made by this one; on every node, ${MAKE_SECRET}`)
  }
}

export function checkSharing(parts: SharedParts): void {
  checkShared(parts)
  if (parts.processes <= 1) return
  const problems = [...sessionProblem(parts), ...listenProblem(parts)]
  if (parts.ownKeys) problems.push(`the keys that sign session ids and seal requestState: ${MAKE_SECRET}`)
  if (problems.length === 0) return
  const what = [`${parts.processes} processes are to serve this config, but each would keep to itself`, ...problems]
  parts.report(new StartError('MH1403', what.join('\n- '), { exitCode: 2 }))
}
