// DPoP for plugins that verify tokens (RFC 9449): provides the slot `tokenBinding`, and checks the proof of each request.
import { isLoopback, NO_PROOFS, type ProofPolicy } from '../../../core/auth.ts'
import type { InternalHost, Services } from '../../../core/internal.ts'
import { parseDuration, type Route, StartError } from '../../../core/plugin.ts'
import type { GrantStore } from '../grant-store/index.ts'
import type { FilledDPoP } from './options.ts'
import { createNonces, createSharedProofs, createUsedProofs, type UseOnce } from './replay.ts'
import { createTargets } from './target.ts'

export { DPOP_SCHEMA } from './options.ts'

const PROOF_COUNTER = {
  name: 'mcp_host_dpop_proofs_total',
  help: 'DPoP proofs by outcome: accepted, refused, replayed, without a valid nonce, limited (too many of one key or user), or unavailable.',
  labels: ['plugin', 'outcome'],
}

const [MIN_AGE, MAX_AGE] = [1_000, 600_000]

const WAIVED_CHECKS: Partial<Record<InternalHost['config']['purpose'], ProofPolicy['waived']>> = {
  test: 'all',
  inspect: 'proof',
}

const parseSettings = ({ maxAge, clockTolerance, ...settings }: FilledDPoP) => ({
  ...settings,
  maxAge: parseDuration(maxAge),
  clockTolerance: parseDuration(clockTolerance),
})

type Settings = ReturnType<typeof parseSettings>

const SHARED: Readonly<Record<string, (services: Services, route: Route) => boolean>> = {
  sessions: ({ slot }, route) => slot('sessionStore', route).shared === true,
  tasks: ({ slot }, route) => slot('taskStore', route).shared === true,
  changes: ({ slot }, route) => slot('changeBus', route).shared === true,
  'events of streams': ({ slot }, route) => slot('eventStore', route).shared !== undefined,
}

/** Returns why proofs cannot be checked completely; undefined if they can. */
function findGap({ config: { http, processes }, routes, services }: InternalHost): string | undefined {
  if (http.publicUrl === undefined && !isLoopback(http.host)) {
    return `DPoP proofs contain the URL that they are for, but clients do not use ${http.host}; set http.publicUrl`
  }
  const unshared = routes.filter(route => !services.slot('grantStore', route).shared)
  const shared = Object.keys(SHARED).find(what => unshared.some(route => SHARED[what]?.(services, route)))
  const others = processes > 1 ? `each of ${processes} processes` : shared && `each node that shares the ${shared}`
  if (unshared.length === 0 || others === undefined) return undefined
  return `${others} would accept a DPoP proof that another process has seen; enable a plugin with a shared grantStore`
}

function checkOptions(
  { ownKeys, config: { at, processes }, report }: InternalHost,
  { maxAge, clockTolerance, nonce }: Settings,
) {
  const reportError = (why: string, key: string) => report(new StartError('MH2030', why, { at: [...at, 'dpop', key] }))
  if (maxAge < MIN_AGE || maxAge > MAX_AGE) {
    reportError('it is the time for which a proof is valid: write 1s to 10m; 60s is usual', 'maxAge')
  }
  if (clockTolerance > MAX_AGE) reportError('write 0 to 10m; 60s is usual', 'clockTolerance')
  if (nonce && ownKeys && processes > 1) {
    reportError('nonces of one process are unknown to the others; set secrets, such as MCP_HOST_SECRETS', 'nonce')
  }
}

/**
 * Sets up proof checks; must be called in `setup`. Without checks, startup fails for a configured `mode`, and bound
 * tokens are refused.
 */
export function enforceDPoP(host: InternalHost, options: FilledDPoP): () => ProofPolicy {
  const settings = parseSettings(options)
  const { mode, algorithms } = settings
  if (mode === 'off') return () => NO_PROOFS
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

  function createPossession(): ProofPolicy {
    const gap = findGap(host)
    if (gap !== undefined && mode !== undefined)
      host.report(new StartError('MH2031', gap, { at: [...host.config.at, 'dpop'] }))
    accepts = gap === undefined
    if (gap === undefined) {
      const check = createCheck(host, settings)
      return { accepts, required: mode === 'required', waived: WAIVED_CHECKS[host.config.purpose], check }
    }
    let isReported = false
    const reportMissed = () => {
      if (!isReported) host.log.warn({ code: 'MH2031', why: gap }, 'tokens that are bound to a key (DPoP) are refused')
      isReported = true
    }
    return { ...NO_PROOFS, missed: reportMissed }
  }

  let possession: ProofPolicy | undefined
  const getPossession = () => {
    possession ??= createPossession()
    return possession
  }
  host.onReady(() => void getPossession())
  return getPossession
}

function createCheck(host: InternalHost, settings: Settings): ProofPolicy['check'] {
  const { now } = host.clock
  const findTargets = createTargets(host.config.http)
  const count = host.metrics.counter(PROOF_COUNTER)
  const nonces = settings.nonce ? createNonces(host.config.keys('dpop nonces'), now) : undefined
  const localProofs = createUsedProofs(undefined, now)
  const startedAt = now()
  const byStore = new Map<GrantStore, UseOnce>()
  // jose is loaded for the first proof.
  const load = async () => (await import('./proof.ts')).createProofCheck({ ...settings, nonces, now })
  let loading: ReturnType<typeof load> | undefined

  function proofMemory(route: Route) {
    const store = host.services.slot('grantStore', route)
    if (!store.shared) return { since: startedAt, useOnce: localProofs }
    const useOnce = byStore.get(store) ?? createSharedProofs(store, localProofs)
    byStore.set(store, useOnce)
    return { since: undefined, useOnce }
  }

  return async (ctx, { route, ...token }) => {
    loading ??= load()
    const check = await loading
    const { outcome, flaw, nonce, cause } = await check({
      ...token,
      ...proofMemory(route),
      proof: ctx.req.headers['dpop'],
      method: ctx.method,
      targets: findTargets(ctx),
    })
    if (cause !== undefined)
      host.log.error({ code: 'MH2032', err: cause }, 'the store of used proofs (DPoP) does not respond')
    count(1, { plugin: host.name, outcome })
    if (nonce !== undefined) ctx.set('DPoP-Nonce', nonce)
    return flaw
  }
}
