// Resources that are one and the same as others, by their URIs: who serves a file under several names says so here, and who
// decides what callers may use holds the rules over any of its names to be rules of the file.
import type { ResourceDefinition } from '../../../core/index.ts'

const names = new WeakMap<ResourceDefinition, readonly string[]>()

/** Says by which other URIs, served or not, what a definition serves is known. */
export function setOtherNames(definition: ResourceDefinition, uris: readonly string[]): void {
  names.set(definition, uris)
}

/** The other URIs of what a definition serves. */
export const otherNamesOf = (definition: object): readonly string[] => names.get(definition as ResourceDefinition) ?? []
