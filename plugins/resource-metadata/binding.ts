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
    const where = namesOf(otherwise)
    const why = required
      ? `nothing asks for proofs of possession (RFC 9449) on ${where}; set dpop: { mode: 'required' } of auth-jwt or ` +
        'auth-introspection there, and leave this out: the documents say it then'
      : `tokens that are bound to no key are refused on ${where}; leave this out: the documents say so`
    tell(why, 'dpopBoundAccessTokensRequired')
  }
  for (const route of routes) {
    const known = bindingOn(route).algorithms()
    const unknown = algorithms.filter(one => !known.includes(one))
    if (unknown.length === 0) continue
    const fits =
      known.length === 0 ? 'no plugin of the route checks proofs' : `proofs are accepted by ${known.join(', ')}`
    const text = 'dpopSigningAlgValuesSupported is published, but nothing here does what it promises'
    log.warn({ dpopSigningAlgValuesSupported: unknown, route: route.path, fix: fits }, text)
    return
  }
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
