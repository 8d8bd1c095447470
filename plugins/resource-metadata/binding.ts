// What documents say of tokens that are bound to a key (RFC 9449 section 5.1 and RFC 9728 section 2): what the plugin that verifies
// tokens does on the same routes, and nothing else.
import type { TokenBinding } from '../../core/auth.ts'
import { type PluginHost, type Route, StartError } from '../../core/index.ts'
import type { FilledResourceMetadata } from './options.ts'

type Said = Pick<FilledResourceMetadata, 'dpopSigningAlgValuesSupported' | 'dpopBoundAccessTokensRequired'>

const namesOf = (routes: readonly Route[]) => routes.map(({ path }) => `routes['${path}']`).join(', ')

/** Reports that the options demand proofs and nobody asks for them, and warns of algorithms that are not accepted. */
function checkSaid({ at, log, report, routes }: PluginHost, said: Said, bindingOn: (route: Route) => TokenBinding) {
  const tell = (why: string, key: keyof Said) => report(new StartError(why, { at: [...at, key] }))
  const { dpopBoundAccessTokensRequired: required, dpopSigningAlgValuesSupported: algorithms = [] } = said
  const otherwise = required === undefined ? [] : routes.filter(route => bindingOn(route).required() !== required)
  if (otherwise.length > 0) {
    const on = namesOf(otherwise)
    const why = required
      ? `nothing asks for proofs of possession (RFC 9449) on ${on}; set dpop: { mode: 'required' } of auth-jwt or ` +
        'auth-introspection there, and leave this out: the documents say it then'
      : `tokens that are bound to no key are refused on ${on}; leave this out: the documents say so`
    tell(why, 'dpopBoundAccessTokensRequired')
  }
  const unknownOn = (route: Route) => algorithms.filter(one => !bindingOn(route).algorithms().includes(one))
  const where = routes.filter(route => unknownOn(route).length > 0)
  if (where.length === 0) return
  const facts = { dpopSigningAlgValuesSupported: [...new Set(where.flatMap(unknownOn))], routes: namesOf(where) }
  log.warn(facts, 'dpopSigningAlgValuesSupported is published, but nothing here does what it promises')
}

/** What a document of these routes says; what the options say goes before. */
export function sayBinding(host: PluginHost, options: FilledResourceMetadata): (routes: readonly Route[]) => Said {
  let bindingOn: ((route: Route) => TokenBinding) | undefined
  host.serving(services => {
    bindingOn = route => services.slot('tokenBinding', route)
  })
  // Whether proofs can be checked is known once every plugin has its services.
  host.checking(() => {
    if (bindingOn) checkSaid(host, options, bindingOn)
  })

  return routes => {
    const [first, ...others] = routes.map(route => bindingOn?.(route)).filter(binding => binding !== undefined)
    if (!first || ![first, ...others].every(binding => binding.announced())) return {}
    const algorithms = first.algorithms().filter(one => others.every(other => other.algorithms().includes(one)))
    const required = [first, ...others].every(binding => binding.required())
    return {
      // An empty list must not be in a document (RFC 9728 section 3.2).
      ...(algorithms.length > 0 && { dpopSigningAlgValuesSupported: algorithms }),
      ...(required && { dpopBoundAccessTokensRequired: true }),
    }
  }
}
