// DPoP for a plugin that verifies tokens (RFC 9449): whether this host can enforce it here, what challenges and documents say of it
// (the slot `tokenBinding`), and the check of each request's proof.
import { StartError } from '../../http/errors.ts'
import { isLoopback } from '../../http/guard.ts'
import type { KernelHost } from '../../kernel/kernel-host.ts'
import type { Route } from '../../kernel/route.ts'
import type { TokenBinding } from '../../mcp/access-decider.ts'
import { parseDuration } from '../../mcp/units.ts'
import type { GrantStore } from '../grant-store.ts'
import { NO_POSSESSION, type Possession } from '../possession.ts'
import { createProofCheck, type ProofOutcome, type ProvenRequest } from './check-proof.ts'
import { createNonces } from './nonces.ts'
import { DPOP_SCHEMA, type DPoPSettings, type ProofAlgorithm } from './options.ts'
import { createTargets } from './target.ts'
import { createUsedProofs, type UseOnce, usedIn } from './used-proofs.ts'

const PROOFS = {
  name: 'mcp_host_dpop_proofs_total',
  help: 'Proofs (DPoP) that came with tokens: accepted, refused, replayed, without a good nonce, too many of one key or user (limited), or not to be judged (unavailable).',
  labels: ['plugin', 'outcome'],
}

const [LEAST_AGE, MOST_AGE] = [1_000, 600_000]

/** Where nobody is served. */
const WAIVED: Partial<Record<KernelHost['purpose'], Possession['waived']>> = { test: 'all', inspect: 'proof' }

/** What enforcing takes of a host's services. */
export interface BindingServices {
  slot(name: 'grantStore', route: Route): GrantStore
  /** Whether other nodes serve the same sessions. */
  slot(name: 'sessionStore', route: Route): { readonly shared: boolean | 'host' }
  /** Whether other nodes run the same tasks. */
  slot(name: 'taskStore', route: Route): { readonly shared: boolean | 'host' }
  /** Whether other nodes write the same streams, where it is there. */
  slot(name: 'eventStore', route: Route): { readonly shared?: object }
  /** Whether other nodes hear of the same changes. */
  slot(name: 'changeBus', route: Route): { readonly shared?: boolean }
}

type BindingHost = Pick<
  KernelHost<{ tokenBinding: TokenBinding }>,
  | 'at'
  | 'clock'
  | 'figures'
  | 'fill'
  | 'http'
  | 'keys'
  | 'log'
  | 'name'
  | 'ownKeys'
  | 'processes'
  | 'purpose'
  | 'report'
  | 'routes'
>

/** Nobody knows before the first of them that there are bound tokens here. */
function tellOnce({ log }: BindingHost, why: string): () => void {
  let isTold = false
  return () => {
    if (!isTold) log.warn({ why }, 'tokens that are bound to a key (DPoP) are refused')
    isTold = true
  }
}

type Check = (request: ProvenRequest) => Promise<ProofOutcome>

const filled = ({ mode, algorithms, maxAge = '60s', clockTolerance = '60s', nonce = false }: DPoPSettings) => ({
  mode,
  algorithms: algorithms ?? (DPOP_SCHEMA.properties.algorithms.default as readonly ProofAlgorithm[]),
  maxAge: parseDuration(maxAge),
  clockTolerance: parseDuration(clockTolerance),
  nonce,
})

/** Why a proof could not be checked wholly here; undefined: it can. */
function gapOf({ http, processes, routes }: BindingHost, services: BindingServices): string | undefined {
  if (http.publicUrl === undefined && !isLoopback(http.host)) {
    return `proofs (DPoP) name the address that they are for, and ${http.host} is not how clients reach it; set http.publicUrl`
  }
  const apart = routes.filter(route => !services.slot('grantStore', route).shared)
  if (apart.length === 0) return undefined
  const shares = processes > 1 ? undefined : sharedWithOthers(services, apart)
  const others = processes > 1 ? `each of ${processes} processes` : shares && `each node that shares the ${shares}`
  if (others === undefined) return undefined
  return `${others} would take a proof (DPoP) that another has seen; switch on a plugin whose store for the slot grantStore they share`
}

/** What of these routes is kept for other nodes too, which there are then. */
function sharedWithOthers(services: BindingServices, routes: readonly Route[]): string | undefined {
  const shared: Readonly<Record<string, (route: Route) => boolean>> = {
    sessions: route => services.slot('sessionStore', route).shared === true,
    tasks: route => services.slot('taskStore', route).shared === true,
    changes: route => services.slot('changeBus', route).shared === true,
    'events of streams': route => services.slot('eventStore', route).shared !== undefined,
  }
  return Object.keys(shared).find(what => routes.some(route => shared[what]?.(route) === true))
}

function checkOptions({ at, ownKeys, processes, report }: BindingHost, settings: ReturnType<typeof filled>) {
  const { maxAge, clockTolerance, nonce } = settings
  const tell = (why: string, key: string) => report(new StartError(why, { at: [...at, 'dpop', key] }))
  if (maxAge < LEAST_AGE || maxAge > MOST_AGE) {
    tell('it is the time in which a proof counts: write 1s to 10m; 60s is usual', 'maxAge')
  }
  if (clockTolerance > MOST_AGE) tell('write 0 to 10m; 60s is usual', 'clockTolerance')
  if (nonce && ownKeys && processes > 1) {
    tell('nonces of one process are unknown to the others; set secrets, such as MCP_HOST_SECRETS', 'nonce')
  }
}

/**
 * To be called in `setup`: fills the slot `tokenBinding` and reports what is wrong with the options. What it returns is called in
 * `serving`, and gives what `identifyBearer` takes. Fails closed: where proofs cannot be checked wholly, a `mode` that was asked
 * for stops the start, and without one bound tokens are refused.
 */
export function enforceDPoP(host: BindingHost, options: DPoPSettings): (services: BindingServices) => Possession {
  const settings = filled(options)
  const { mode, algorithms, maxAge, clockTolerance, nonce } = settings
  if (mode === 'off') return () => NO_POSSESSION
  checkOptions(host, settings)
  let accepts = true
  fillBinding(host, {
    algorithms: () => (accepts ? algorithms : []),
    required: () => mode === 'required',
    announced: () => mode !== undefined,
  })

  return services => {
    const gap = gapOf(host, services)
    if (gap !== undefined && mode !== undefined) host.report(new StartError(gap, { at: [...host.at, 'dpop'] }))
    accepts = gap === undefined
    if (gap !== undefined) return { ...NO_POSSESSION, missed: tellOnce(host, gap) }
    const ownKeys = nonce ? host.keys('dpop nonces') : []
    const { now } = host.clock
    const nonces = nonce ? createNonces(ownKeys, now) : undefined
    const check = createProofCheck({ algorithms, maxAge, clockTolerance, nonces, now })
    return {
      accepts,
      required: mode === 'required',
      waived: WAIVED[host.purpose],
      check: createCheck(host, services, check),
    }
  }
}

/** Of two plugins of a route that find out who calls, both have this: that there are two stops the start (check-routes.ts). */
function fillBinding(host: BindingHost, binding: TokenBinding) {
  try {
    host.fill('tokenBinding', binding)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
  }
}

function createCheck(host: BindingHost, services: BindingServices, check: Check): Possession['check'] {
  const targetsOf = createTargets(host.http)
  const count = host.figures.counter(PROOFS)
  const own = createUsedProofs(undefined, host.clock.now)
  const began = host.clock.now()
  const byStore = new Map<GrantStore, UseOnce>()

  function memoryOn(route: Route): Pick<ProvenRequest, 'since' | 'useOnce'> {
    const store = services.slot('grantStore', route)
    // What was used before is gone with the process that knew it.
    if (!store.shared) return { since: began, useOnce: own }
    const useOnce = byStore.get(store) ?? usedIn(store, own)
    byStore.set(store, useOnce)
    return { since: undefined, useOnce }
  }

  return async (ctx, { route, digest, thumbprint, user }) => {
    const { outcome, flaw, nonce, cause } = await check({
      proof: ctx.req.headers['dpop'],
      method: ctx.method,
      targets: targetsOf(ctx),
      digest,
      thumbprint,
      user,
      ...memoryOn(route),
    })
    if (cause !== undefined) host.log.error({ err: cause }, 'the store of used proofs (DPoP) does not answer')
    count(1, { plugin: host.name, outcome })
    if (nonce !== undefined) ctx.set('DPoP-Nonce', nonce)
    return flaw
  }
}
