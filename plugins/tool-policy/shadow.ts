// Shadow mode: what a rule would have refused goes on, and one line of the log says so.

import { type CatalogItem, findResource } from '../../core/auth.ts'
import { type Call, isObject, type PluginHost } from '../../core/index.ts'
import { denialFor } from './requirement.ts'
import type { RouteAccess } from './route-access.ts'

/** Their `uri` is a resource's. */
const RESOURCE_METHODS = new Set(['resources/read', 'resources/subscribe', 'skills/get'])

/** The items that a call uses. */
function itemsOf({ method, params, view }: Call): CatalogItem[] {
  const resource = (uri: unknown) => (typeof uri === 'string' ? findResource(view, uri)?.item : undefined)
  const prompt = (name: unknown) => (typeof name === 'string' ? view.prompts.get(name) : undefined)
  const used = (): Array<CatalogItem | undefined> => {
    const { name } = params
    if (method === 'tools/call') return [typeof name === 'string' ? view.tools.get(name) : undefined]
    if (method === 'prompts/get') return [prompt(name)]
    if (RESOURCE_METHODS.has(method)) return [resource(params['uri'])]
    if (method === 'completion/complete' && isObject(params['ref'])) {
      const { name, uri } = params['ref']
      return [prompt(name) ?? view.templates.find(({ key }) => key === uri) ?? resource(uri)]
    }
    if (method !== 'subscriptions/listen' || !isObject(params['notifications'])) return []
    const uris = params['notifications']['resourceSubscriptions']
    return Array.isArray(uris) ? [...new Set(uris.map(resource))] : []
  }
  return used().filter(item => item !== undefined)
}

/** Logs each use of an item that a rule in shadow mode would have refused. */
export function logShadow(host: PluginHost, accessOf: (call: Call) => RouteAccess | undefined): void {
  host.around((call, next) => {
    const access = accessOf(call)
    for (const item of access ? itemsOf(call) : []) {
      const { shadow } = access?.ruleOf(item) ?? {}
      const denial = shadow && denialFor(shadow, access?.held(call.user))
      if (!denial) continue
      const { user, method, offer } = call
      host.log.info(
        {
          shadow: true,
          method,
          item: item.key,
          kind: item.kind,
          route: offer.route.path,
          issuer: user?.issuer,
          subject: user?.subject,
          reason: denial.reason,
          scopes: denial.scopes,
        },
        'a rule in shadow mode would have denied a call',
      )
    }
    return next()
  })
}
