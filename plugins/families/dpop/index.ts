// DPoP for plugins that verify tokens (RFC 9449): fills the slot `tokenBinding`, and checks the proof of each request.
import { isLoopback, NO_POSSESSION, type Possession } from '../../../core/auth.ts'
import type { InternalHost, Services } from '../../../core/internal.ts'
import { parseDuration, type Route, StartError } from '../../../core/plugin.ts'
import type { GrantStore } from '../grant-store/index.ts'
import type { FilledDPoP } from './options.ts'
import { createNonces, createUsedProofs, type UseOnce, usedIn } from './replay.ts'
import { createTargets } from './target.ts'

export { DPOP_SCHEMA } from './options.ts'

const PROOFS = {
  name: 'mcp_host_dpop_proofs_total',
  help: 'DPoP proofs by outcome: accepted, refused, replayed, without a valid nonce, limited (too many of one key or user), or unavailable.',
  labels: ['plugin', 'outcome'],
}

const [MIN_AGE, MAX_AGE] = [1_000, 600_000]

const WAIVED: Partial<Record<InternalHost['config']['purpose'], Possession['waived']>> = {
  test: 'all',
  inspect: 'proof',
}

const parsed = ({ maxAge, clockTolerance, ...settings }: FilledDPoP) => ({
  ...settings,
  maxAge: parseDuration(maxAge),
  clockTolerance: parseDuration(clockTolerance),
})

type Settings = ReturnType<typeof parsed>

const SHARED: Readonly<Record<string, (services: Services, route: Route) => boolean>> = {
  sessions: ({ slot }, route) => slot('sessionStore', route).shared === true,
  tasks: ({ slot }, route) => slot('taskStore', route).shared === true,
  changes: ({ slot }, route) => slot('changeBus', route).shared === true,
  'events of streams': ({ slot }, route) => slot('eventStore', route).shared !== undefined,
}

/** Returns why proofs cannot be checked completely; undefined if they can. */
function gapOf({ config: { http, processes }, routes, services }: InternalHost): string | undefined {
  if (http.publicUrl === undefined && !isLoopback(http.host)) {
    return `proofs (DPoP) name the address that they are for, and ${http.host} is not how clients reach it; set http.publicUrl`
  }
  const apart = routes.filter(route => !services.slot('grantStore', route).shared)
  const shared = Object.keys(SHARED).find(what => apart.some(route => SHARED[what]?.(services, route)))
  const others = processes > 1 ? `each of ${processes} processes` : shared && `each node that shares the ${shared}`
  if (apart.length === 0 || others === undefined) return undefined
  return `${others} would accept a DPoP proof that another process has seen; enable a plugin with a shared grantStore`
}

function checkOptions(
  { ownKeys, config: { at, processes }, report }: InternalHost,
  { maxAge, clockTolerance, nonce }: Settings,
) {
  const tell = (why: string, key: string) => report(new StartError('MH2030', why, { at: [...at, 'dpop', key] }))
  if (maxAge < MIN_AGE || maxAge > MAX_AGE) {
    tell('it is the time in which a proof counts: write 1s to 10m; 60s is usual', 'maxAge')
  }
  if (clockTolerance > MAX_AGE) tell('write 0 to 10m; 60s is usual', 'clockTolerance')
  if (nonce && ownKeys && processes > 1) {
    tell('nonces of one process are unknown to the others; set secrets, such as MCP_HOST_SECRETS', 'nonce')
  }
}

/**
 * Sets up proof checks; must be called in `setup`. Without checks, startup fails for a configured `mode`, and bound
 * tokens are refused.
 */
export function enforceDPoP(host: InternalHost, options: FilledDPoP): () => Possession {
  const settings = parsed(options)
  const { mode, algorithms } = settings
  if (mode === 'off') return () => NO_POSSESSION
  checkOptions(host, settings)
  let accepts = true
  try {
    host.provide('tokenBinding', {
      algorithms: () => (accepts ? algorithms : []),
      required: () => mode === 'required',
      announced: () => mode !== undefined,
    })
  } catch (error) {
    // The host reports two authentication plugins on a route.
    if (!(error instanceof StartError)) throw error
  }

  function create(): Possession {
    const gap = gapOf(host)
    if (gap !== undefined && mode !== undefined)
      host.report(new StartError('MH2031', gap, { at: [...host.config.at, 'dpop'] }))
    accepts = gap === undefined
    if (gap === undefined) {
      const check = createCheck(host, settings)
      return { accepts, required: mode === 'required', waived: WAIVED[host.config.purpose], check }
    }
    let isLogged = false
    const missed = () => {
      if (!isLogged) host.log.warn({ code: 'MH2031', why: gap }, 'tokens that are bound to a key (DPoP) are refused')
      isLogged = true
    }
    return { ...NO_POSSESSION, missed }
  }

  let possession: Possession | undefined
  const now = () => {
    possession ??= create()
    return possession
  }
  host.onReady(() => void now())
  return now
}

function createCheck(host: InternalHost, settings: Settings): Possession['check'] {
  const { now } = host.clock
  const targetsOf = createTargets(host.config.http)
  const count = host.metrics.counter(PROOFS)
  const nonces = settings.nonce ? createNonces(host.config.keys('dpop nonces'), now) : undefined
  const own = createUsedProofs(undefined, now)
  const started = now()
  const byStore = new Map<GrantStore, UseOnce>()
  // jose is loaded for the first proof.
  const load = async () => (await import('./proof.ts')).createProofCheck({ ...settings, nonces, now })
  let loaded: ReturnType<typeof load> | undefined

  function memoryOn(route: Route) {
    const store = host.services.slot('grantStore', route)
    if (!store.shared) return { since: started, useOnce: own }
    const useOnce = byStore.get(store) ?? usedIn(store, own)
    byStore.set(store, useOnce)
    return { since: undefined, useOnce }
  }

  return async (ctx, { route, ...shown }) => {
    loaded ??= load()
    const check = await loaded
    const { outcome, flaw, nonce, cause } = await check({
      ...shown,
      ...memoryOn(route),
      proof: ctx.req.headers['dpop'],
      method: ctx.method,
      targets: targetsOf(ctx),
    })
    if (cause !== undefined)
      host.log.error({ code: 'MH2032', err: cause }, 'the store of used proofs (DPoP) does not respond')
    count(1, { plugin: host.name, outcome })
    if (nonce !== undefined) ctx.set('DPoP-Nonce', nonce)
    return flaw
  }
}
