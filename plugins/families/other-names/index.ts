// Resources that are one and the same as others, by their URIs: who serves a file under several names says so here, and who
// decides what callers may use holds the rules over any of its names to be rules of the file.
import type { ResourceDefinition } from '../../../core/index.ts'

/** Of the definition itself: plugins that are loaded apart have no other thing in common. */
const OTHER_NAMES = Symbol.for('mcp-host.other-names')

/** Says by which other URIs, served or not, what a definition serves is known. */
export function setOtherNames(definition: ResourceDefinition, uris: readonly string[]): void {
  Object.defineProperty(definition, OTHER_NAMES, { value: uris })
}

/** The other URIs of what a definition serves. */
export const otherNamesOf = (definition: object): readonly string[] =>
  (definition as { readonly [OTHER_NAMES]?: readonly string[] })[OTHER_NAMES] ?? []
