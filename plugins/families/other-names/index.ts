// Alternative URIs of a resource, so that access rules for any of its names apply.
import type { ResourceDefinition } from '../../../core/index.ts'

/** On the definition, because plugins can be loaded separately. */
const OTHER_NAMES = Symbol.for('mcp-host.other-names')

export function setOtherNames(definition: ResourceDefinition, uris: readonly string[]): void {
  Object.defineProperty(definition, OTHER_NAMES, { value: uris })
}

export const otherNamesOf = (definition: object): readonly string[] =>
  (definition as { readonly [OTHER_NAMES]?: readonly string[] })[OTHER_NAMES] ?? []
